package riphttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/riprap-go/riprap"
)

// ErrNotProcessed, in the error of a Judge, says that the service surely did not process the request, so that any
// request may be sent again, whatever its method and without a key. A Judge of your own wraps it only for responses
// of which the service promises that:
//
//	fmt.Errorf("%w: %w", riphttp.ErrNotProcessed, &riphttp.StatusError{Code: resp.StatusCode})
var ErrNotProcessed = errors.New("request not processed")

// A StatusError is the failure that a response stands for. It holds nothing of the request and of the response but
// the status code, so that no log of it gives away a secret.
type StatusError struct {
	Code int // the status code of the response
}

// Error returns the status code with its name, as in "503 Service Unavailable", or "status 599" for a code that has
// none.
func (e *StatusError) Error() string {
	if name := http.StatusText(e.Code); name != "" {
		return strconv.Itoa(e.Code) + " " + name
	}
	return "status " + strconv.Itoa(e.Code)
}

// Judge is the default verdict on a response. It returns nil for an answer, which is the caller's: every status below
// 400 and most of those below 500, a 404 and a 422 too. It returns a [riprap.Permanent] error for a failure that no
// repetition can cure: 501, 505, 506, 507, 508, 510 and 511. Any other error is a failure that may be repeated:
//
//   - 408, 425 and 429;
//   - 409, if the request carried an Idempotency-Key: an earlier attempt with that key is still running;
//   - 413, if Retry-After says that it is a matter of time;
//   - all other 5xx, and as RFC 9110 §15 has it, a code outside of 100 to 599.
//
// That a failure may be repeated does not mean that the request may be: a POST without a key is not sent again for a
// 503.
//
// A service that knows better says so with X-Should-Retry or Stripe-Should-Retry: true makes a repeatable failure of
// any status from 400 on, false a permanent one, and false wins where both stand. Other values are ignored. What carries
// Idempotent-Replayed: true is final too: it is the kept answer to an earlier send of the request, and another send would
// get it again.
//
// What the response says of the time to wait comes with the error as [riprap.After]. Retry-After is read in seconds,
// of which a fraction is rounded up to a whole one, and in all three forms of a date against the service's own clock;
// before it the fields that count in milliseconds, Retry-After-Ms, X-Ms-Retry-After-Ms and X-Amz-Retry-After; after it
// RateLimit, RateLimit-Reset, X-RateLimit-Reset-After and X-RateLimit-Reset, where nothing remains. What cannot be read
// is ignored, and what no Duration can hold becomes the longest one.
//
// Judge does not read the body. It is safe for concurrent use.
func Judge(resp *http.Response) error {
	if 100 <= resp.StatusCode && resp.StatusCode < 400 {
		return nil // without a look at the clock
	}
	return judge(resp, time.Now())
}

func judge(resp *http.Response, now time.Time) error {
	code := resp.StatusCode
	valid := 100 <= code && code <= 599
	if valid && code < 400 {
		return nil
	}
	failure := &StatusError{Code: code}
	if retry, told := shouldRetry(resp.Header, "X-Should-Retry", "Stripe-Should-Retry"); told {
		if !retry || replayed(resp.Header) {
			return riprap.Permanent(failure)
		}
		return hinted(resp.Header, now, failure)
	}
	again := !valid || code >= 500
	switch code {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates,
		http.StatusInsufficientStorage, http.StatusLoopDetected, http.StatusNotExtended,
		http.StatusNetworkAuthenticationRequired:
		return riprap.Permanent(failure)
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		again = true
	case http.StatusConflict:
		again = resp.Request != nil && hasKey(resp.Request)
	case http.StatusRequestEntityTooLarge:
		_, again = asked(resp.Header, now)
	}
	switch {
	case !again:
		return nil
	case replayed(resp.Header):
		return riprap.Permanent(failure)
	}
	return hinted(resp.Header, now, failure)
}

// hinted adds to a failure the wait that the service asks for.
func hinted(h http.Header, now time.Time, failure error) error {
	if wait, ok := hint(h, now); ok {
		return riprap.After(wait, failure)
	}
	return failure
}

// shouldRetry reads the service's own verdict from the named fields. Only the two words that services document count.
func shouldRetry(h http.Header, names ...string) (retry, told bool) {
	for _, name := range names {
		for _, v := range h.Values(name) {
			switch v {
			case "false":
				return false, true
			case "true":
				retry, told = true, true
			}
		}
	}
	return retry, told
}

func unprocessed(code int) error {
	return fmt.Errorf("%w: %w", ErrNotProcessed, &StatusError{Code: code})
}
