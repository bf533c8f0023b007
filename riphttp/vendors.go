package riphttp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/riprap-go/riprap"
)

// errorBody is how far a preset looks into the body of an error. The machine codes stand within the first kilobyte.
const errorBody = 16 << 10

// JudgeModels is a Judge for the APIs of language models in the manner of OpenAI, Anthropic and Google. Use it for a
// Transport that calls them, together with a Policy whose AttemptTimeout is minutes, and whose Timeout is a multiple
// of that: a completion that is not streamed may take minutes to its first byte, and the default of ten seconds would
// end it and pay for it again.
//
// These services reject a request that is over a limit before they work on it, so 429, 503 and Anthropic's 529
// (overloaded) come with [ErrNotProcessed], and a POST is sent again without a key. Beyond what [Judge] reads, the
// wait is taken from the limits that have nothing left:
//
//   - x-ratelimit-remaining-* with x-ratelimit-reset-*, for requests and tokens, in the form "6m0s" or "20ms" or as
//     seconds (https://platform.openai.com/docs/guides/rate-limits);
//   - anthropic-ratelimit-*-remaining with anthropic-ratelimit-*-reset, for requests, tokens, input and output
//     tokens, as a time in RFC 3339 (https://platform.claude.com/docs/en/api/rate-limits);
//   - retryDelay of a google.rpc.RetryInfo in the body (https://google.aip.dev/193).
//
// A 429 for an account without money or quota is permanent, since waiting does not fill it: it is known by its
// machine code, insufficient_quota or one of the codes that OpenAI and Anthropic document beside it, never by words
// in the message. Google's RESOURCE_EXHAUSTED stays an ordinary 429. All other statuses are judged as by [Judge].
func JudgeModels(resp *http.Response) error { return judgeModels(resp, time.Now()) }

func judgeModels(resp *http.Response, now time.Time) error {
	code := resp.StatusCode
	switch code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
	default:
		return judge(resp, now)
	}
	if retry, told := shouldRetry(resp.Header, "X-Should-Retry", "Stripe-Should-Retry"); told && !retry || replayed(resp.Header) {
		return judge(resp, now)
	}
	if code == http.StatusTooManyRequests && parseAPIError(Peek(resp, errorBody)).outOfQuota() {
		return riprap.Permanent(&StatusError{Code: code})
	}
	failure := unprocessed(code)
	if wait, ok := hint(resp.Header, now); ok {
		return riprap.After(wait, failure)
	}
	if wait, ok := modelLimits(resp.Header, now); ok {
		return riprap.After(wait, failure)
	}
	if wait, ok := parseAPIError(Peek(resp, errorBody)).retryDelay(); ok {
		return riprap.After(wait, failure)
	}
	return failure
}

// modelLimits returns the longest wait for a limit of a model that has nothing left.
func modelLimits(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	atTime := func(s string) (time.Duration, bool) {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return 0, false
		}
		return until(at, clock(h, now))
	}
	for name := range h {
		if !spent(h, name) {
			continue
		}
		var d time.Duration
		var valid bool
		if what, found := strings.CutPrefix(name, "X-Ratelimit-Remaining-"); found {
			d, valid = longest(h, span, "X-Ratelimit-Reset-"+what)
		} else if limit, found := strings.CutSuffix(name, "-Remaining"); found && strings.HasPrefix(limit, "Anthropic-Ratelimit-") {
			d, valid = longest(h, atTime, limit+"-Reset")
		}
		if valid {
			wait, ok = max(wait, d), true
		}
	}
	return wait, ok
}

// span reads a duration as Go prints one, or seconds.
func span(s string) (time.Duration, bool) {
	if d, ok := seconds(s); ok {
		return d, true
	}
	if s == "" || !isDigit(s[0]) { // no sign
		return 0, false
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// JudgeGitHub is a Judge for the REST API of GitHub. Use it for a Transport that calls api.github.com or a GitHub
// Enterprise Server: there 403 may mean that a limit was exceeded, which [Judge] takes for an answer.
//
// A 403 or 429 is a limit if it carries Retry-After, if x-ratelimit-remaining is 0, or if its body speaks of the
// secondary rate limit; a 429 always is. It comes with [ErrNotProcessed]. The wait is what Retry-After says, else
// the time until x-ratelimit-reset if nothing remains, else a minute, which is what GitHub asks for at the least
// (https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api). A reset may be an hour away: where
// it exceeds the MaxWait of the Policy, the response comes back at once. Any other 403 is an answer. All other
// statuses are judged as by [Judge].
func JudgeGitHub(resp *http.Response) error { return judgeGitHub(resp, time.Now()) }

func judgeGitHub(resp *http.Response, now time.Time) error {
	code := resp.StatusCode
	if code != http.StatusForbidden && code != http.StatusTooManyRequests {
		return judge(resp, now)
	}
	if retry, told := shouldRetry(resp.Header, "X-Should-Retry", "Stripe-Should-Retry"); told && !retry || replayed(resp.Header) {
		return judge(resp, now)
	}
	if wait, ok := hint(resp.Header, now); ok {
		return riprap.After(wait, unprocessed(code))
	}
	if code == http.StatusTooManyRequests || spent(resp.Header, "X-Ratelimit-Remaining") ||
		secondaryLimit(Peek(resp, errorBody)) {
		return riprap.After(time.Minute, unprocessed(code))
	}
	return judge(resp, now)
}

// secondaryLimit reports whether the body of an error names GitHub's secondary limit. There is no machine code for
// it: the message says it in words, and the link to the documentation in its anchor.
func secondaryLimit(body []byte) bool {
	body = bytes.ToLower(body)
	return bytes.Contains(body, []byte("secondary rate limit")) || bytes.Contains(body, []byte("secondary-rate-limit"))
}

// JudgeStripe is a Judge for the API of Stripe. Use it for a Transport that calls api.stripe.com, and give every POST
// an Idempotency-Key: only that makes it safe to send a payment again.
//
// Stripe-Should-Retry decides from 400 on, if it is there. Without it:
//
//   - 409 may be repeated: the request met another one, most often with the same key, and was not begun;
//   - 429 may be repeated. With the code rate_limit the limiter turned the request away before anything else saw it,
//     and the error carries [ErrNotProcessed]; with lock_timeout or another code the request had begun, and needs its
//     key.
//
// All other statuses are judged as by [Judge]. See https://docs.stripe.com/error-low-level and
// https://docs.stripe.com/rate-limits.
func JudgeStripe(resp *http.Response) error { return judgeStripe(resp, time.Now()) }

func judgeStripe(resp *http.Response, now time.Time) error {
	code := resp.StatusCode
	retry, told := shouldRetry(resp.Header, "Stripe-Should-Retry")
	if !told {
		retry, told = shouldRetry(resp.Header, "X-Should-Retry")
	}
	var failure error = &StatusError{Code: code}
	switch {
	case code < 400:
		return judge(resp, now)
	case told && !retry:
		return riprap.Permanent(failure)
	case replayed(resp.Header):
		return judge(resp, now)
	case code == http.StatusTooManyRequests:
		if parseAPIError(Peek(resp, errorBody)).has("rate_limit") {
			failure = unprocessed(code)
		}
	case told, code == http.StatusConflict:
	default:
		return judge(resp, now)
	}
	return hinted(resp.Header, now, failure)
}

// An apiError is what the error of a vendor's API says for machines.
type apiError struct {
	Code    any             // a string, at Google a number
	Type    any             // a string at OpenAI, Anthropic and Stripe
	Details json.RawMessage // Anthropic: an object; Google: a list
}

// parseAPIError reads the start of a body. A body that is not JSON, or does not fit, says nothing.
func parseAPIError(body []byte) (e apiError) {
	var envelope struct{ Error apiError }
	// Google wraps the errors of streams in a list.
	if json.NewDecoder(bytes.NewReader(bytes.TrimLeft(body, "[ \t\r\n"))).Decode(&envelope) != nil {
		return apiError{}
	}
	return envelope.Error
}

// has reports whether the error's code is one of these.
func (e apiError) has(codes ...string) bool {
	for _, code := range codes {
		if e.Code == code {
			return true
		}
	}
	return false
}

// outOfQuota reports whether the account must be paid, or its limit raised, before a request can succeed.
func (e apiError) outOfQuota() bool {
	if e.Type == "insufficient_quota" || e.has("insufficient_quota", "credit_balance_exhausted",
		"organization_spend_limit_exceeded", "project_spend_limit_exceeded", "organization_usage_limit_exceeded") {
		return true
	}
	var details struct {
		Code string `json:"error_code"`
	}
	return json.Unmarshal(e.Details, &details) == nil && details.Code == "enforced_spend_limit_reached"
}

// retryDelay returns the longest retryDelay in the details of a google.rpc.Status: decimal seconds with an s.
func (e apiError) retryDelay() (wait time.Duration, ok bool) {
	var details []struct{ RetryDelay string }
	if json.Unmarshal(e.Details, &details) != nil {
		return 0, false
	}
	for _, d := range details {
		if s, unit := strings.CutSuffix(d.RetryDelay, "s"); unit {
			if d, valid := seconds(s); valid {
				wait, ok = max(wait, d), true
			}
		}
	}
	return wait, ok
}
