package deadline

import (
	"crypto/rand"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Fields of others that say how long a caller waits.
const (
	grpcHeader  = "Grpc-Timeout"
	envoyHeader = "X-Envoy-Expected-Rq-Timeout-Ms"
)

// believed are the fields that count only if a trusted caller sent them.
var believed = []string{TimeoutHeader, DeadlineHeader, grpcHeader, envoyHeader, AttemptHeader, CorrelationHeader}

// relative says how to read the fields that name a time from arrival on.
var relative = []struct {
	name string
	read func(string) (time.Duration, bool)
}{
	{TimeoutHeader, milliseconds},
	{envoyHeader, milliseconds},
	{grpcHeader, grpcTimeout},
}

// allowed returns how long a request with these fields may be worked on that arrived now: above zero, at most limit.
func allowed(h http.Header, now time.Time, limit time.Duration) time.Duration {
	told := endless
	for _, field := range relative {
		// Not split at commas: what 1,000 means is anybody's guess, and the guess of 1 would end the request.
		for _, value := range h[field.name] {
			if d, ok := field.read(value); ok {
				told = min(told, d)
			}
		}
	}
	if told == endless {
		return limit // a point in time alone says nothing, since nobody knows by which clock
	}
	left := told
	for _, value := range h[DeadlineHeader] {
		if d, ok := until(value, now); ok && near(d, told) {
			left = min(left, d)
		}
	}
	return min(left, limit)
}

// near reports whether d, the time left by the caller's clock, is less than what the caller told by no more than a
// request may have spent on its way. A larger difference is one between the clocks.
func near(d, told time.Duration) bool { return d >= told-min(told/2, time.Second) }

// milliseconds reads a whole number of milliseconds above zero.
func milliseconds(s string) (time.Duration, bool) { return units(s, 18, time.Millisecond) }

// grpcTimeout reads a timeout of gRPC over HTTP/2: at most eight digits and a unit.
func grpcTimeout(s string) (time.Duration, bool) {
	if s == "" {
		return 0, false
	}
	var unit time.Duration
	number := len(s) - 1
	switch s[number] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	default:
		return 0, false
	}
	return units(s[:number], 8, unit)
}

// units reads a whole number of units above zero. What no Duration can hold is no figure that anybody meant.
func units(s string, length int, unit time.Duration) (time.Duration, bool) {
	n, ok := number(s, length)
	if !ok || n == 0 || n > math.MaxInt64/int64(unit) {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

// until reads a point in time, in Unix milliseconds, as the time until then.
func until(s string, now time.Time) (time.Duration, bool) {
	n, ok := number(s, 18)
	return time.UnixMilli(n).Sub(now), ok
}

// number reads plain digits, at most so many: no sign, no fraction, no exponent.
func number(s string, length int) (int64, bool) {
	if len(s) > length || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// attemptNumber reads which attempt a request is, zero if it does not say.
func attemptNumber(h http.Header) (attempt int) {
	for _, value := range h[AttemptHeader] {
		if n, ok := number(value, 9); ok {
			attempt = max(attempt, int(n))
		}
	}
	return attempt
}

// correlationID returns the first plain id of those given, or a new one.
func correlationID(given ...string) string {
	for _, id := range given {
		if plain(id) {
			return id
		}
	}
	return rand.Text()
}

// plain reports whether an id is a token (RFC 9110 §5.6.2) of at most 128 characters, which can be logged, searched for
// and sent on as it is.
func plain(id string) bool {
	for i := range len(id) {
		if c := id[i]; c >= utf8.RuneSelf || !token[c] {
			return false
		}
	}
	return 0 < len(id) && len(id) <= 128
}

// token is the set of characters that a token is made of.
var token = func() (set [utf8.RuneSelf]bool) {
	const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for _, c := range alphanumeric + "!#$%&'*+-.^_`|~" {
		set[c] = true
	}
	return set
}()
