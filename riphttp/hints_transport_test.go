package riphttp_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// A hint in a response, and the wait before the second attempt: what it asks for, or the transport's own second.
type waitTest struct {
	name   string
	header []string
	want   time.Duration
}

// testWaits answers with the code and each header once, then with 200.
func testWaits(t *testing.T, code int, judge func(*http.Response) error, tests []waitTest) {
	for _, test := range tests {
		inBubble(t, test.name, func(t *testing.T) {
			header := append([]string{}, test.header...)
			for i, v := range header { // dates are relative to the bubble's clock
				if after, ok := strings.CutPrefix(v, "now+"); ok {
					d, _ := time.ParseDuration(after)
					header[i] = time.Now().Add(d).UTC().Format(http.TimeFormat)
				}
			}
			service := script(reply(code, "busy", header...), 200)
			policy := even()
			policy.Timeout = -1
			client := &riphttp.Transport{Base: service, Policy: policy, Judge: judge}
			wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 200, "OK")
			wantGaps(t, service, test.want)
		})
	}
}

func TestRetryAfterIsTheLeastWait(t *testing.T) {
	testWaits(t, 503, nil, []waitTest{
		{"seconds", []string{"Retry-After", "7"}, 7 * time.Second},
		{"a minute in seconds, not in another unit", []string{"Retry-After", "60"}, time.Minute},
		{"less than the own backoff", []string{"Retry-After", "0.25"}, time.Second},
		{"a fraction rounds up", []string{"Retry-After", "1.5"}, 2 * time.Second},
		{"a date", []string{"Retry-After", "now+20s"}, 20 * time.Second},
		{"a date in the past", []string{"Retry-After", "Wed, 21 Oct 1987 07:28:00 GMT"}, time.Second},
		{"a date in the old form", []string{"Retry-After", "Saturday, 01-Jan-00 00:00:30 GMT"}, 30 * time.Second},
		{"a date in the form of asctime", []string{"Retry-After", "Sat Jan  1 00:00:30 2000"}, 30 * time.Second},
		{"zero", []string{"Retry-After", "0"}, time.Second},
		{"nothing", nil, time.Second},
	})
}

func TestHintThatCannotBeReadLeavesTheOwnBackoff(t *testing.T) {
	var tests []waitTest
	for _, junk := range []string{
		"soon", "-3", "+3", "0x10", "1e3", "Inf", "NaN", "1_000", "120s", "", "Sun, 6 Nov 2094 08:49:37 GMT",
		"Sat, 01 Jan 2000 00:00:30 PST",
	} {
		tests = append(tests, waitTest{"Retry-After " + junk, []string{"Retry-After", junk}, time.Second})
	}
	testWaits(t, 503, nil, tests)
}

func TestMillisecondsAreMorePreciseThanSeconds(t *testing.T) {
	testWaits(t, 429, nil, []waitTest{
		{"both", []string{"RETRY-AFTER-MS", "4321", "Retry-After", "5"}, 4321 * time.Millisecond},
		{"the finer one is junk", []string{"retry-after-ms", "abc", "Retry-After", "5"}, 5 * time.Second},
		{"another spelling", []string{"x-ms-retry-after-ms", "1500"}, 1500 * time.Millisecond},
	})
}

func TestRateLimitFieldGivesTheWaitOfAnExhaustedPolicy(t *testing.T) {
	const exhausted = `"burst";r=0;t=7, "day";r=100;t=80000`
	testWaits(t, 429, nil, []waitTest{
		{"exhausted", []string{"RateLimit", exhausted}, 7 * time.Second},
		{"Retry-After comes first", []string{"RateLimit", exhausted, "Retry-After", "3"}, 3 * time.Second},
		{"malformed", []string{"RateLimit", "default r=0"}, time.Second},
		{"from a cache", []string{"RateLimit", exhausted, "Age", "9"}, time.Second},
	})
}

func TestHintsOnAnAnswerDoNotDelayIt(t *testing.T) {
	for _, test := range []struct {
		method string
		code   int
		header []string
	}{
		{"POST", 201, []string{"Retry-After", "10"}},
		{"GET", 200, []string{"RateLimit", `"a";r=0;t=10`}},
		{"GET", 202, []string{"Retry-After", "10"}},
		{"GET", 301, []string{"RateLimit", `"a";r=0;t=10`, "Location", "/b"}},
		{"GET", 304, []string{"Retry-After", "10"}},
		{"GET", 404, []string{"Retry-After", "10"}},
	} {
		inBubble(t, test.method+http.StatusText(test.code), func(t *testing.T) {
			start := time.Now()
			service := script(reply(test.code, "it", test.header...))
			client := &riphttp.Transport{Base: service, Policy: even()}
			wantAnswer(t, client, newRequest(t, test.method, serviceURL, nil, "Idempotency-Key", "k"), test.code, "it")
			wantCalls(t, service, 1)
			if took := time.Since(start); took != 0 {
				t.Errorf("it took %v, want no time", took)
			}
		})
	}
}

func TestRedirectWithRetryAfterIsFollowedAndNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(302, "", "Location", "/b", "Retry-After", "1"), 200)
		client := &http.Client{Transport: &riphttp.Transport{Base: service, Policy: even()}}
		resp, err := client.Get("http://service.test/a")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		wantCalls(t, service, 2)
		if got := service.sent[1].url; got != "http://service.test/b" {
			t.Errorf("the second request went to %s, want /b", got)
		}
		wantGaps(t, service, 0)
	})
}

func TestClientNeverComesBackSoonerWithAHintThanWithout(t *testing.T) {
	for _, hint := range []string{"0", "0.001", "1", "2", "30", "now", "-1", "99999999999999999999"} {
		inBubble(t, hint, func(t *testing.T) {
			gap := func(header ...string) time.Duration {
				service := script(reply(503, "", header...), 200)
				policy := even()
				policy.Timeout = -1
				client := &riphttp.Transport{Base: service, Policy: policy}
				if _, _, err := result(t, client, newRequest(t, "GET", serviceURL, nil)); err != nil {
					t.Fatal(err)
				}
				if service.calls() == 1 {
					return time.Duration(1<<63 - 1) // never
				}
				return service.gaps()[0]
			}
			if with, without := gap("Retry-After", hint), gap(); with < without {
				t.Errorf("wait with the hint: %v, without: %v", with, without)
			}
		})
	}
}

func TestThousandClientsToldTheSameDoNotReturnTogether(t *testing.T) {
	for name, header := range map[string]string{"a wait": "30", "a date in the past": "Wed, 21 Oct 1987 07:28:00 GMT"} {
		inBubble(t, name, func(t *testing.T) {
			least := time.Duration(1)
			if name == "a wait" {
				least = 30 * time.Second
			}
			seen := make(map[time.Duration]int)
			for range 1000 {
				service := script(reply(503, "", "Retry-After", header), 200)
				client := &riphttp.Transport{Base: service, Policy: &riprap.Policy{Timeout: -1}}
				result(t, client, newRequest(t, "GET", serviceURL, nil))
				gap := service.gaps()[0]
				if gap < least {
					t.Fatalf("a client came back after %v, want at least %v", gap, least)
				}
				seen[gap]++
			}
			for gap, n := range seen {
				if n > 3 {
					t.Errorf("%d of 1000 clients came back after %v", n, gap)
				}
			}
		})
	}
}

func TestRetryAfterZeroDoesNotMakeAHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(reply(429, "", "Retry-After", "0"))
		policy := &riprap.Policy{MaxAttempts: 6, Timeout: -1, Backoff: riprap.Backoff{Jitter: riprap.Equal}}
		client := &riphttp.Transport{Base: service, Policy: policy}
		if code, _, err := result(t, client, newRequest(t, "GET", serviceURL, nil)); code != 429 {
			t.Fatalf("got %d, %v, want the 429", code, err)
		}
		limit := 500 * time.Millisecond
		for i, gap := range service.gaps() {
			if gap < limit/2 || gap > limit {
				t.Errorf("wait %d is %v, want one between %v and %v", i+1, gap, limit/2, limit)
			}
			limit *= 2
		}
		wantCalls(t, service, 6)
	})
}

func TestTenThousandAttemptsNeverComeWithoutAWait(t *testing.T) {
	for jitter, least := range map[riprap.Jitter]time.Duration{riprap.Equal: 50 * time.Millisecond, riprap.Full: 1} {
		inBubble(t, jitter.String(), func(t *testing.T) {
			const attempts = 10_000
			service := script(503)
			client := &riphttp.Transport{Base: service, Policy: &riprap.Policy{
				MaxAttempts: attempts, Timeout: -1, Budget: &riprap.Budget{Ratio: math.Inf(1)},
				Backoff: riprap.Backoff{Base: 100 * time.Millisecond, Max: 20 * time.Second, Jitter: jitter},
			}}
			result(t, client, newRequest(t, "GET", serviceURL, nil))
			wantCalls(t, service, attempts)
			for i, gap := range service.gaps() {
				if gap < least || gap > 20*time.Second {
					t.Fatalf("gap %d is %v, want one of %v to 20s", i+1, gap, least)
				}
			}
		})
	}
}

func TestWaitBeyondMaxWaitEndsAtOnceWithTheResponse(t *testing.T) {
	for _, test := range []struct {
		header, value string
		asked         time.Duration
	}{
		{"Retry-After", "61", 61 * time.Second},
		{"Retry-After", "198300", 198300 * time.Second},
		{"Retry-After", "9223372037", 1<<63 - 1}, // more than any Duration holds
		{"Retry-After", "Saturday, 01-Jan-50 00:00:00 GMT", time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC).Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))},
		{"Retry-After-Ms", "60001", 60001 * time.Millisecond},
	} {
		inBubble(t, test.value, func(t *testing.T) {
			start := time.Now()
			service := script(reply(429, "later", test.header, test.value, "Content-Type", "text/html"))
			var log events
			policy := traced(even(), &log)
			policy.Timeout = -1
			client := &riphttp.Transport{Base: service, Policy: policy}
			resp, err := roundTrip(t, client, newRequest(t, "GET", serviceURL, nil))
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(resp.Body); string(body) != "later" || err != nil {
				t.Errorf("body = %q, %v, want it whole", body, err)
			}
			if got := resp.Header.Get(test.header); got != test.value {
				t.Errorf("%s = %q, want %q", test.header, got, test.value)
			}
			wantCalls(t, service, 1)
			if took := time.Since(start); took != 0 {
				t.Errorf("it took %v, want no time", took)
			}
			if e := log.ended(t); e.Reason != riprap.ErrWait || e.Asked != test.asked || statusOf(e.Err) != 429 {
				t.Errorf("Done: reason %v, asked %v, err %v, want ErrWait, %v and the 429", e.Reason, e.Asked, e.Err, test.asked)
			}
		})
	}
}

func TestOfSeveralRetryAfterLinesTheLongestIsWaited(t *testing.T) {
	for _, test := range []struct {
		lines string
		want  time.Duration
	}{
		{"Retry-After: 1\r\nRetry-After: 30\r\n", 30 * time.Second},
		{"Retry-After: 30\r\nRetry-After: 1\r\n", 30 * time.Second},
		{"Retry-After: 1, 30\r\n", 30 * time.Second},
		{"Retry-After: 5\r\nRetry-After: Sat, 01 Jan 2000 00:00:20 GMT\r\n", 20 * time.Second},
		{"Retry-After:  12 \r\n", 12 * time.Second},
	} {
		inBubble(t, test.lines, func(t *testing.T) {
			var at [3]time.Time
			service := memhttp.Play(func(_ int, p *memhttp.Peer) {
				for n := 1; p.ReadRequest() != nil; n++ {
					at[n] = time.Now()
					if n == 1 {
						p.Say("HTTP/1.1 503 Busy\r\n" + test.lines + "Content-Length: 0\r\n\r\n")
					} else {
						p.Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			})
			policy := even()
			policy.Timeout = -1
			client := &riphttp.Transport{Base: service.Transport(), Policy: policy}
			wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "ok")
			client.CloseIdleConnections()
			service.Stop()
			if got := at[2].Sub(at[1]); got != test.want {
				t.Errorf("the second request came after %v, want %v", got, test.want)
			}
		})
	}
}

func TestJudgeOfOnesOwnStillHonorsRetryAfter(t *testing.T) {
	errBusy := errors.New("busy")
	busy := func(resp *http.Response) error {
		if resp.StatusCode == 200 {
			return nil
		}
		return errBusy
	}
	testWaits(t, 418, busy, []waitTest{
		{"asked", []string{"Retry-After", "7"}, 7 * time.Second},
		{"not asked", nil, time.Second},
	})
	longer := func(resp *http.Response) error { return riprap.After(9*time.Second, busy(resp)) }
	testWaits(t, 418, longer, []waitTest{
		{"less than the judge's own", []string{"Retry-After", "7"}, 9 * time.Second},
		{"more than the judge's own", []string{"Retry-After", "11"}, 11 * time.Second},
	})
}

func TestVendorJudgesThroughATransport(t *testing.T) {
	testWaits(t, 403, riphttp.JudgeGitHub, []waitTest{
		{"a secondary limit", []string{"Retry-After", "60", "X-RateLimit-Remaining", "4990", "X-RateLimit-Reset", "946688300"}, time.Minute},
		{"a spent limit", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "30"}, 30 * time.Second},
	})
	for _, test := range []struct {
		name  string
		judge func(*http.Response) error
		body  string
		calls int
		wait  time.Duration
	}{
		{"secondary limit by its words", riphttp.JudgeGitHub, `{"message":"You have exceeded a secondary rate limit."}`, 2, time.Minute},
		{"a denial", riphttp.JudgeGitHub, `{"message":"Must have admin rights"}`, 1, 0},
		{"the limit without the preset", nil, `{"message":"You have exceeded a secondary rate limit."}`, 1, 0},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(reply(403, test.body, "X-RateLimit-Remaining", "4990", "X-RateLimit-Reset", "946688300"))
			policy := even()
			policy.MaxAttempts, policy.Timeout = 2, -1
			client := &riphttp.Transport{Base: service, Policy: policy, Judge: test.judge}
			wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 403, test.body)
			wantCalls(t, service, test.calls)
			if test.calls > 1 {
				wantGaps(t, service, test.wait)
			}
		})
	}
}
