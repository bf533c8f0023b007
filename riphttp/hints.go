package riphttp

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// hint reads how long a service asks its caller to stay away, most precise first: a wait in milliseconds,
// Retry-After (RFC 9110 §10.2.3), then what the rate limit fields say of an exhausted limit. The first of these that
// can be read decides, even when it says zero. What cannot be read, or makes no sense, counts as absent and never as
// zero: a caller that takes junk for "at once" is worse than one that never heard of the header. What no Duration
// can hold becomes the longest one.
func hint(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	if wait, ok := asked(h, now); ok {
		return wait, true
	}
	return exhausted(h, now)
}

// asked reads the fields that speak of this very request: when to send it again.
func asked(h http.Header, now time.Time) (time.Duration, bool) {
	if wait, ok := longest(h, milliseconds, "Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After"); ok {
		return wait, true
	}
	return retryAfter(h, now)
}

// exhausted reads the fields that speak of the caller's quota: how long until a spent one is filled again. They
// count only where the quota is spent, since services send them with every response. On a response that a cache kept
// they are about somebody's past.
func exhausted(h http.Header, now time.Time) (time.Duration, bool) {
	if age := h.Get("Age"); digits(age) && !zero(age) {
		return 0, false
	}
	if wait, ok := rateLimit(h); ok {
		return wait, true
	}
	reset := func(s string) (time.Duration, bool) { return resetTime(s, clock(h, now)) }
	if spent(h, "Ratelimit-Remaining") {
		if wait, ok := longest(h, reset, "Ratelimit-Reset"); ok {
			return wait, true
		}
	}
	if !spent(h, "X-Ratelimit-Remaining") {
		return 0, false
	}
	if wait, ok := longest(h, seconds, "X-Ratelimit-Reset-After"); ok {
		return wait, true
	}
	return longest(h, reset, "X-Ratelimit-Reset")
}

// retryAfter reads Retry-After. The field should stand there once; where origin and proxy both wrote one, the
// longest holds, so that neither is disappointed.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	for _, line := range h.Values("Retry-After") {
		for parts := strings.Split(line, ","); len(parts) > 0; parts = parts[1:] {
			d, valid := delay(trim(parts[0]), h, now)
			if !valid && len(parts) > 1 { // two of the three forms of a date have a comma of their own
				d, valid = delay(trim(parts[0]+","+parts[1]), h, now)
			}
			if valid {
				wait, ok = max(wait, d), true
			}
		}
	}
	return wait, ok
}

// delay reads a single value of Retry-After. Some services write 1.5 where whole seconds are due.
func delay(s string, h http.Header, now time.Time) (time.Duration, bool) {
	if at, ok := httpDate(s, now); ok {
		return until(at, clock(h, now))
	}
	d, ok := seconds(s)
	return ceil(d, time.Second), ok
}

// resetTime reads the moment at which a quota is filled again. Services write seconds from now or, most of them,
// seconds since 1970, and the two are told apart by size: 1e9 seconds are 31 years, or the year 2001.
func resetTime(s string, clock time.Time) (time.Duration, bool) {
	d, ok := seconds(s)
	if !ok || d < 1e9*time.Second {
		return d, ok
	}
	return until(time.Unix(0, int64(d)), clock)
}

// clock is the clock to measure a moment against: the service's own, if the response says what it shows, so that
// two clocks which differ do not change the wait.
func clock(h http.Header, now time.Time) time.Time {
	if date, ok := httpDate(h.Get("Date"), now); ok {
		return date
	}
	return now
}

// until returns the time left until a moment, zero if it has passed. A moment more than a century ahead was computed
// in a wrong unit and is not believed.
func until(at, clock time.Time) (time.Duration, bool) {
	if at.After(clock.AddDate(100, 0, 0)) {
		return 0, false
	}
	return max(at.Sub(clock), 0), true
}

// httpDate reads the three forms of a date in RFC 9110 §5.6.7, to the letter: always GMT, two digits for a day, the
// right day of the week. Neither time.Parse alone will do, which takes any zone's name for GMT, nor http.ParseTime,
// which puts two-digit years from 69 on into the last century.
func httpDate(s string, now time.Time) (time.Time, bool) {
	if len(s) < len(time.ANSIC) { // the shortest of them; time.Parse is slow at saying no
		return time.Time{}, false
	}
	for _, layout := range [...]string{http.TimeFormat, rfc850, time.ANSIC} {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if layout == rfc850 {
			t = nearCentury(t, now)
		}
		return t, t.Format(layout) == s
	}
	return time.Time{}, false
}

const rfc850 = "Monday, 02-Jan-06 15:04:05 GMT"

// nearCentury moves t, whose year came with two digits, into the last year with those digits that is not more than
// 50 years ahead.
func nearCentury(t, now time.Time) time.Time {
	limit := now.UTC().AddDate(50, 0, 0)
	near := limit.Year() - (limit.Year()-t.Year()%100)%100
	if at := inYear(t, near); !at.After(limit) {
		return at
	}
	return inYear(t, near-100)
}

func inYear(t time.Time, year int) time.Time {
	return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// longest returns the longest of the waits that read finds in the named fields, on lines of their own or behind
// commas.
func longest(h http.Header, read func(string) (time.Duration, bool), names ...string) (wait time.Duration, ok bool) {
	for _, name := range names {
		for _, line := range h.Values(name) {
			for s := range strings.SplitSeq(line, ",") {
				if d, valid := read(trim(s)); valid {
					wait, ok = max(wait, d), true
				}
			}
		}
	}
	return wait, ok
}

// spent reports whether one of the quotas in the named field has nothing left.
func spent(h http.Header, name string) bool {
	for _, line := range h.Values(name) {
		for s := range strings.SplitSeq(line, ",") {
			if zero(trim(s)) {
				return true
			}
		}
	}
	return false
}

func seconds(s string) (time.Duration, bool) { return decimal(s, time.Second) }

func milliseconds(s string) (time.Duration, bool) {
	d, ok := decimal(s, time.Millisecond)
	return ceil(d, time.Millisecond), ok
}

// decimal reads digits, with or without a fraction, as so many units, rounded up to a nanosecond. It is stricter than
// strconv.ParseFloat, which takes Inf, NaN, exponents, hexadecimals and signs.
func decimal(s string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, false
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n >= math.MaxInt64/int64(unit) {
		return math.MaxInt64, true
	}
	d := time.Duration(n) * unit
	for i := range len(fraction) {
		unit /= 10
		if unit == 0 {
			if !zero(fraction[i:]) {
				d++
			}
			break
		}
		d += time.Duration(fraction[i]-'0') * unit
	}
	return d, true
}

// ceil rounds up to whole units, and to the longest Duration where that overflows.
func ceil(d, unit time.Duration) time.Duration {
	over := d % unit
	switch {
	case over == 0:
		return d
	case d > math.MaxInt64-unit:
		return math.MaxInt64
	}
	return d - over + unit
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func zero(s string) bool { return s != "" && strings.Trim(s, "0") == "" }

func trim(s string) string { return strings.Trim(s, " \t") }
