package riphttp

import (
	"bufio"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A Thursday.
var testNow = time.Date(2026, time.August, 27, 11, 10, 53, 0, time.UTC)

const absent = -1 * time.Second

// fields makes a header of lines as they stand on the wire.
func fields(t testing.TB, lines ...string) http.Header {
	t.Helper()
	wire := "HTTP/1.1 503 Service Unavailable\r\n" + strings.Join(append(lines, "Content-Length: 0"), "\r\n") + "\r\n\r\n"
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(wire)), nil)
	if err != nil {
		t.Fatalf("ReadResponse(%q): %v", wire, err)
	}
	return resp.Header
}

type hintTest struct {
	name   string
	header []string
	want   time.Duration
}

func testHints(t *testing.T, now time.Time, tests []hintTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wait, ok := hint(fields(t, test.header...), now)
			if !ok {
				wait = absent
			}
			if wait != test.want {
				t.Errorf("hint(%q) = %v, want %v (%v means absent)", test.header, wait, test.want, absent)
			}
		})
	}
}

func TestRetryAfterCountsSeconds(t *testing.T) {
	testHints(t, testNow, []hintTest{
		{"no header", nil, absent},
		{"digits", []string{"Retry-After: 60"}, time.Minute},
		{"zero is a value", []string{"Retry-After: 0"}, 0},
		{"blanks around", []string{"Retry-After: \t120 "}, 2 * time.Minute},
		{"leading zeros", []string{"Retry-After: 007"}, 7 * time.Second},
		{"beyond every ceiling", []string{"Retry-After: 198300"}, 198300 * time.Second},
		{"a fraction is rounded up", []string{"Retry-After: 1.5"}, 2 * time.Second},
		{"a fraction of nothing", []string{"Retry-After: 2.0"}, 2 * time.Second},
		{"the smallest fraction is not zero", []string{"Retry-After: 0.0000000000001"}, time.Second},
		{"more than a Duration holds", []string{"Retry-After: 9223372037"}, math.MaxInt64},
		{"more than an integer holds", []string{"Retry-After: 99999999999999999999999999"}, math.MaxInt64},
	})
}

func TestRetryAfterThatIsNotSecondsIsAbsentAndNeverZero(t *testing.T) {
	for _, value := range []string{
		"", "soon", "-3", "+3", "-0", "0x10", "1e3", "Inf", "+Inf", "infinity", "NaN", "1_000", "120s", "2m", "1.5.2",
		".5", "5.", ".", "1 000", "٣", "5;", "\"5\"",
	} {
		if wait, ok := hint(fields(t, "Retry-After: "+value), testNow); ok {
			t.Errorf("hint(Retry-After: %q) = %v, want absent", value, wait)
		}
	}
}

func TestRetryAfterTakesEveryFormOfADate(t *testing.T) {
	now := time.Date(1994, time.November, 6, 8, 48, 37, 0, time.UTC)
	for _, value := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994",
	} {
		wait, ok := hint(fields(t, "Retry-After: "+value), now)
		if !ok || wait != time.Minute {
			t.Errorf("hint(Retry-After: %s) = %v, %v, want 1m0s, true", value, wait, ok)
		}
	}
}

func TestRetryAfterTakesADateToTheLetter(t *testing.T) {
	for _, value := range []string{
		"Sat, 06 Nov 2094 08:49:37 PST",
		"Sat, 06 Nov 2094 08:49:37 UTC",
		"Sat, 06 Nov 2094 08:49:37 +0000",
		"Sat, 06 Nov 2094 08:49:37",
		"Sat, 6 Nov 2094 08:49:37 GMT",
		"Sat, 06 Nov 2094 8:49:37 GMT",
		"Sat, 06 Nov 2094 08:49:37.5 GMT",
		"Sat, 06 nov 2094 08:49:37 GMT",
		"sat, 06 Nov 2094 08:49:37 GMT",
		"Sun, 06 Nov 2094 08:49:37 GMT", // a Saturday
		"Sat, 31 Nov 2094 08:49:37 GMT",
		"Saturday, 06-Nov-2094 08:49:37 GMT",
		"Sat Nov 6 08:49:37 2094",
		"Sat Nov 06 08:49:37 2094",
		"2094-11-06T08:49:37Z",
	} {
		if wait, ok := hint(fields(t, "Retry-After: "+value), testNow); ok {
			t.Errorf("hint(Retry-After: %s) = %v, want absent", value, wait)
		}
	}
}

func TestTwoDigitYearIsAtMostFiftyYearsAhead(t *testing.T) {
	day := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 8, 49, 37, 0, time.UTC)
	}
	for _, test := range []struct {
		value     string
		now, want time.Time
	}{
		{"Thursday, 06-Nov-70 08:49:37 GMT", testNow, day(2070, time.November, 6)},
		{"Sunday, 06-Nov-94 08:49:37 GMT", testNow, day(1994, time.November, 6)},
		{"Thursday, 06-Aug-76 08:49:37 GMT", testNow, day(2076, time.August, 6)},
		{"Saturday, 06-Nov-76 08:49:37 GMT", testNow, day(1976, time.November, 6)}, // 2076 is 50 years and 10 weeks
		{"Monday, 02-Jan-06 08:49:37 GMT", testNow, day(2006, time.January, 2)},
		{"Thursday, 06-Jan-00 08:49:37 GMT", day(1999, time.December, 1), day(2000, time.January, 6)},
		{"Saturday, 06-Jan-00 08:49:37 GMT", day(1949, time.December, 1), day(1900, time.January, 6)},
	} {
		got, ok := httpDate(test.value, test.now)
		if !ok || !got.Equal(test.want) {
			t.Errorf("httpDate(%q, %v) = %v, %v, want %v", test.value, test.now, got, ok, test.want)
		}
	}
}

func TestRetryAfterDateIsMeasuredAgainstTheServersClock(t *testing.T) {
	fast := testNow.Add(700 * time.Millisecond)
	testHints(t, fast, []hintTest{
		{"our clock when the response has none", []string{"Retry-After: Thu, 27 Aug 2026 11:12:53 GMT"}, 119300 * time.Millisecond},
		{"the server's clock", []string{"Date: Thu, 27 Aug 2026 10:00:00 GMT", "Retry-After: Thu, 27 Aug 2026 10:02:00 GMT"}, 2 * time.Minute},
		{"our clock when the server's is no date", []string{"Date: now", "Retry-After: Thu, 27 Aug 2026 11:12:53 GMT"}, 119300 * time.Millisecond},
		{"less than a second is not nothing", []string{"Retry-After: Thu, 27 Aug 2026 11:10:54 GMT"}, 300 * time.Millisecond},
		{"the past is zero", []string{"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}, 0},
		{"now is zero", []string{"Date: Wed, 21 Oct 2015 07:28:00 GMT", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}, 0},
		{"44 years", []string{"Date: Thu, 27 Aug 2026 11:10:53 GMT", "Retry-After: Mon, 27 Aug 2068 11:10:53 GMT"}, 15341 * 24 * time.Hour},
		{"a year computed in a wrong unit", []string{"Retry-After: Wed, 27 Aug 5000 11:10:53 GMT"}, absent},
	})
}

func TestAMomentThatHasPassedIsNoWait(t *testing.T) {
	if wait, ok := until(testNow.Add(-time.Hour), testNow); wait != 0 || !ok {
		t.Errorf("until(an hour ago) = %v, %v, want 0s, true", wait, ok)
	}
}

func TestOfSeveralRetryAfterTheLongestHolds(t *testing.T) {
	testHints(t, testNow, []hintTest{
		{"two lines", []string{"Retry-After: 1", "Retry-After: 30"}, 30 * time.Second},
		{"two lines, the longer first", []string{"Retry-After: 30", "Retry-After: 1"}, 30 * time.Second},
		{"one line", []string{"Retry-After: 1, 30"}, 30 * time.Second},
		{"a date line", []string{"Retry-After: 5", "Retry-After: Thu, 27 Aug 2026 11:12:53 GMT"}, 2 * time.Minute},
		{"a date and a number joined", []string{"Retry-After: Thu, 27 Aug 2026 11:12:53 GMT, 5"}, 2 * time.Minute},
		{"a number and a date joined", []string{"Retry-After: 150, Thursday, 27-Aug-26 11:12:53 GMT"}, 150 * time.Second},
		{"two dates joined", []string{"Retry-After: Thu, 27 Aug 2026 11:11:53 GMT, Thu, 27 Aug 2026 11:12:53 GMT"}, 2 * time.Minute},
		{"dates with and without a comma", []string{"Retry-After: Thu Aug 27 11:13:53 2026,Thu, 27 Aug 2026 11:12:53 GMT"}, 3 * time.Minute},
		{"junk beside a number", []string{"Retry-After: soon, 5"}, 5 * time.Second},
		{"a past date beside a number", []string{"Retry-After: 5", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}, 5 * time.Second},
		{"commas and nothing else", []string{"Retry-After: ,,"}, absent},
	})
}

func TestMillisecondsComeBeforeRetryAfter(t *testing.T) {
	testHints(t, testNow, []hintTest{
		{"OpenAI", []string{"retry-after-ms: 4321", "Retry-After: 5"}, 4321 * time.Millisecond},
		{"any case", []string{"RETRY-AFTER-MS: 4321", "Retry-After: 5"}, 4321 * time.Millisecond},
		{"Azure", []string{"x-ms-retry-after-ms: 1500"}, 1500 * time.Millisecond},
		{"Amazon", []string{"x-amz-retry-after: 250"}, 250 * time.Millisecond},
		{"a fraction is rounded up", []string{"retry-after-ms: 0.25"}, time.Millisecond},
		{"several, the longest", []string{"retry-after-ms: 100", "x-ms-retry-after-ms: 200"}, 200 * time.Millisecond},
		{"what cannot be read falls through", []string{"retry-after-ms: abc", "Retry-After: 5"}, 5 * time.Second},
		{"a sign cannot be read", []string{"retry-after-ms: -1", "Retry-After: 5"}, 5 * time.Second},
		{"zero does not fall through", []string{"retry-after-ms: 0", "Retry-After: 5"}, 0},
		{"more than a Duration holds", []string{"retry-after-ms: 9223372036855"}, math.MaxInt64},
	})
}

func TestRateLimitFieldSpeaksWhereAPolicyIsExhausted(t *testing.T) {
	testHints(t, testNow, []hintTest{
		{"the exhausted policy", []string{`RateLimit: "burst";r=0;t=7, "day";r=100;t=80000`}, 7 * time.Second},
		{"the longest of two, first", []string{`RateLimit: "day";r=0;t=80000, "burst";r=0;t=7`}, 80000 * time.Second},
		{"the longest of two", []string{`RateLimit: "burst";r=0;t=7, "day";r=0;t=80000`}, 80000 * time.Second},
		{"on two lines", []string{`RateLimit: "burst";r=0;t=7`, `RateLimit: "day";r=0;t=9`}, 9 * time.Second},
		{"Retry-After comes first", []string{`RateLimit: "burst";r=0;t=7, "day";r=100;t=80000`, "Retry-After: 3"}, 3 * time.Second},
		{"nothing exhausted", []string{`RateLimit: "burst";r=1;t=7`}, absent},
		{"no time given", []string{`RateLimit: "burst";r=0`}, absent},
		{"no time for one of two", []string{`RateLimit: "burst";r=0, "day";r=0;t=5`}, 5 * time.Second},
		{"other parameters", []string{`RateLimit: default;r=0;pk=:c2VjcmV0:;t=7;x;y=?1;z="a, \"b\"";w=1.5`}, 7 * time.Second},
		{"longer than a Duration", []string{`RateLimit: d;r=0;t=999999999999999`}, time.Duration(math.MaxInt64).Truncate(time.Second)},
		{"malformed", []string{"RateLimit: default r=0"}, absent},
		{"malformed behind a good one", []string{`RateLimit: "burst";r=0;t=7, "day`}, absent},
		{"from a cache", []string{`RateLimit: "burst";r=0;t=7`, "Age: 3"}, absent},
		{"past a cache that was empty", []string{`RateLimit: "burst";r=0;t=7`, "Age: 0"}, 7 * time.Second},
		{"Retry-After from a cache", []string{"Retry-After: 7", "Age: 3"}, 7 * time.Second},
	})
}

func TestOlderRateLimitFields(t *testing.T) {
	testHints(t, testNow, []hintTest{
		{"seconds", []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 50"}, 50 * time.Second},
		{"something remains", []string{"RateLimit-Remaining: 1", "RateLimit-Reset: 50"}, absent},
		{"nothing said of what remains", []string{"RateLimit-Reset: 50"}, absent},
		{"x: seconds since 1970", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1787829113"}, time.Minute},
		{"x: seconds since 1970, on the server's clock", []string{"Date: Thu, 27 Aug 2026 11:11:53 GMT", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1787829143"}, 30 * time.Second},
		{"x: seconds since 1970 with a fraction", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1787829053.25"}, 250 * time.Millisecond},
		{"x: past", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000000"}, 0},
		{"x: seconds from now", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60"}, time.Minute},
		{"x: milliseconds since 1970", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1787829113000"}, absent},
		{"x: nanoseconds since 1970", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1787829113000000000"}, absent},
		{"x: something remains", []string{"X-RateLimit-Remaining: 4990", "X-RateLimit-Reset: 3500"}, absent},
		{"x: less than nothing remains", []string{"X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 3500"}, absent},
		{"x: from now, with a fraction", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1787829113", "X-RateLimit-Reset-After: 0.65"}, 650 * time.Millisecond},
		{"x: from a cache", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60", "Age: 60"}, absent},
		{"x: no number", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: tomorrow"}, absent},
		{"Retry-After comes first", []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60", "Retry-After: 2"}, 2 * time.Second},
	})
}

func FuzzHintIsAbsentOrAWait(f *testing.F) {
	for _, value := range []string{
		"", "0", "5", "1.5", "-3", "1e3", "0x10", "Inf", "NaN", "1, 30", "9223372036854775807", "9223372036", "1787829113",
		"Thu, 27 Aug 2026 11:12:53 GMT", "Thursday, 27-Aug-26 11:12:53 GMT", "Thu Aug 27 11:12:53 2026",
		`"burst";r=0;t=7, "day";r=100;t=80000`, `a;r=0;t=999999999999999`, "Fri, 31 Dec 9999 23:59:59 GMT", "6m0s",
	} {
		f.Add(value, int64(1787829053))
	}
	f.Fuzz(func(t *testing.T, value string, unix int64) {
		now := time.Unix(unix%(1<<40), unix&(1<<29-1))
		for _, name := range []string{
			"Retry-After-Ms", "Retry-After", "Ratelimit", "Ratelimit-Reset", "X-Ratelimit-Reset", "X-Ratelimit-Reset-After",
		} {
			for _, date := range []string{"", value} {
				h := http.Header{
					"Ratelimit-Remaining":   {"0"},
					"X-Ratelimit-Remaining": {"0"},
					"Date":                  {date},
					name:                    {value, value},
				}
				wait, ok := hint(h, now)
				if wait < 0 || !ok && wait != 0 {
					t.Errorf("hint(%s: %q, Date: %q) = %v, %v, want absent or a wait", name, value, date, wait, ok)
				}
			}
		}
	})
}

func FuzzDecimalIsExactAndRoundsUp(f *testing.F) {
	f.Add(uint32(1), uint32(500_000_000))
	f.Add(uint32(math.MaxUint32), uint32(1))
	f.Fuzz(func(t *testing.T, whole, nanos uint32) {
		nanos %= 1e9
		want := time.Duration(whole)*time.Second + time.Duration(nanos)
		value := fmt.Sprintf("%d.%09d", whole, nanos)
		got, ok := decimal(value, time.Second)
		if !ok || got != want {
			t.Errorf("decimal(%s, 1s) = %v, %v, want %v", value, got, ok, want)
		}
		if up := ceil(got, time.Second); up < got || up-got >= time.Second || up%time.Second != 0 {
			t.Errorf("ceil(%v, 1s) = %v, want the next whole second", got, up)
		}
	})
}
