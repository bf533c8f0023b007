package riphttp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

type vendorTest struct {
	name   string
	code   int
	header []string
	body   string
	want   kind
	wait   time.Duration
	clean  bool // the request was surely not processed
}

func testVendor(t *testing.T, judge func(*http.Response, time.Time) error, tests []vendorTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			resp := response(t, test.code, test.body, test.header...)
			err := judge(resp, testNow)
			got, wait := verdict(t, err)
			if got != test.want || wait != test.wait {
				t.Errorf("verdict on %d %q %q is %s after %v, want %s after %v",
					test.code, test.header, test.body, got, wait, test.want, test.wait)
			}
			if clean := errors.Is(err, ErrNotProcessed); clean != test.clean {
				t.Errorf("verdict on %d %q %q = %v, is ErrNotProcessed: %v, want %v",
					test.code, test.header, test.body, err, clean, test.clean)
			}
			if body, err := io.ReadAll(resp.Body); string(body) != test.body || err != nil {
				t.Errorf("the body reads %d bytes, %v, want all %d bytes", len(body), err, len(test.body))
			}
		})
	}
}

func TestJudgeModelsWaitsForTheLimit(t *testing.T) {
	testVendor(t, judgeModels, []vendorTest{
		{name: "a plain 429", code: 429, want: again, clean: true},
		{name: "503", code: 503, want: again, clean: true},
		{name: "overloaded", code: 529, body: `{"type":"error","error":{"type":"overloaded_error"}}`, want: again, clean: true},
		{name: "500 may have been processed", code: 500, want: again},
		{name: "502 may have been processed", code: 502, want: again},
		{name: "a completion", code: 200, header: []string{"x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 6m0s"}, want: answer},
		{name: "a bad request", code: 400, want: answer},
		{name: "milliseconds", code: 429, header: []string{"retry-after-ms: 1250", "retry-after: 2"}, want: again, wait: 1250 * time.Millisecond, clean: true},
		{name: "retry-after before the limits", code: 429, header: []string{"retry-after: 2", "x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 6m0s"},
			want: again, wait: 2 * time.Second, clean: true},
		{name: "requests exhausted", code: 429, header: []string{
			"x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 6m0s",
			"x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-tokens: 20h0m0s",
		}, want: again, wait: 6 * time.Minute, clean: true},
		{name: "tokens exhausted", code: 429, header: []string{
			"x-ratelimit-remaining-requests: 59", "x-ratelimit-reset-requests: 1s",
			"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 20ms",
		}, want: again, wait: 20 * time.Millisecond, clean: true},
		{name: "both exhausted", code: 429, header: []string{
			"x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 1s",
			"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 8m38.4s",
		}, want: again, wait: 8*time.Minute + 38400*time.Millisecond, clean: true},
		{name: "seconds", code: 429, header: []string{"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 17"}, want: again, wait: 17 * time.Second, clean: true},
		{name: "no limit at all", code: 429, header: []string{"x-ratelimit-remaining-tokens: -1", "x-ratelimit-reset-tokens: 17"}, want: again, clean: true},
		{name: "a sign", code: 429, header: []string{"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: -17s"}, want: again, clean: true},
		{name: "no duration", code: 429, header: []string{"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: soon"}, want: again, clean: true},
		{name: "Anthropic", code: 429, header: []string{
			"anthropic-ratelimit-requests-remaining: 10", "anthropic-ratelimit-requests-reset: 2026-08-27T12:10:53Z",
			"anthropic-ratelimit-input-tokens-remaining: 0", "anthropic-ratelimit-input-tokens-reset: 2026-08-27T11:11:23Z",
			"anthropic-ratelimit-output-tokens-remaining: 0", "anthropic-ratelimit-output-tokens-reset: 2026-08-27T11:10:58Z",
		}, want: again, wait: 30 * time.Second, clean: true},
		{name: "Anthropic, on its own clock", code: 429, header: []string{
			"Date: Thu, 27 Aug 2026 11:11:13 GMT",
			"anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 2026-08-27T11:11:23Z",
		}, want: again, wait: 10 * time.Second, clean: true},
		{name: "Anthropic, past", code: 429, header: []string{
			"anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 2026-08-27T11:00:00Z",
		}, want: again, clean: true},
		{name: "Anthropic, no time", code: 429, header: []string{
			"anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 30",
		}, want: again, clean: true},
		{name: "Google", code: 429, body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"x","links":[]},{"@type":"y","retryDelay":"34.5s"}]}}`,
			want: again, wait: 34500 * time.Millisecond, clean: true},
		{name: "Google, a stream", code: 503, body: "[{\n \"error\": {\"code\":503,\"details\":[{\"retryDelay\":\"9s\"}]}}\n]", want: again, wait: 9 * time.Second, clean: true},
		{name: "Google, no duration", code: 429, body: `{"error":{"code":429,"details":[{"retryDelay":"1e3s"}]}}`, want: again, clean: true},
		{name: "told not to", code: 429, header: []string{"x-should-retry: false"}, want: permanent},
		{name: "told to", code: 429, header: []string{"x-should-retry: true", "retry-after: 2"}, want: again, wait: 2 * time.Second, clean: true},
	})
}

func TestSpanTakesWhatGoPrintsAndSeconds(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"6m0s": 6 * time.Minute, "20ms": 20 * time.Millisecond, "1s": time.Second, "17": 17 * time.Second, "0": 0, "0s": 0,
		"2.5": 2500 * time.Millisecond, "-1s": absent, "+1s": absent, ".5s": absent, "": absent, "soon": absent,
		"1d": absent, "99999999h": absent, "Inf": absent,
	} {
		got, ok := span(s)
		if !ok {
			got = absent
		}
		if got != want {
			t.Errorf("span(%q) = %v, want %v (%v means absent)", s, got, want, absent)
		}
	}
}

func TestJudgeModelsTellsAnEmptyAccountByItsMachineCode(t *testing.T) {
	long := strings.Repeat("quota ", 1<<19)
	testVendor(t, judgeModels, []vendorTest{
		{name: "code", code: 429, body: `{"error":{"code":"insufficient_quota"}}`, want: permanent},
		{name: "type", code: 429, body: `{"error":{"message":"m","type":"insufficient_quota","param":null,"code":null}}`, want: permanent},
		{name: "code alone", code: 429, body: `{"error":{"type":"billing","code":"project_spend_limit_exceeded"}}`, want: permanent},
		{name: "even with a wait", code: 429, header: []string{"Retry-After: 20", "x-should-retry: true"}, body: `{"error":{"code":"insufficient_quota"}}`, want: permanent},
		{name: "Anthropic", code: 429, body: `{"type":"error","error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}`, want: permanent},
		{name: "ordinary limit", code: 429, body: `{"error":{"type":"requests","code":"rate_limit_exceeded"}}`, want: again, clean: true},
		{name: "the word in a message", code: 429, body: `{"error":{"code":"rate_limit_exceeded","message":"insufficient_quota"}}`, want: again, clean: true},
		{name: "the word in another place", code: 429, body: `{"code":"insufficient_quota","error":"insufficient_quota"}`, want: again, clean: true},
		{name: "Google's quota per minute", code: 429, header: []string{"Retry-After: 20"},
			body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for requests per minute"}}`, want: again, wait: 20 * time.Second, clean: true},
		{name: "an HTML page", code: 429, header: []string{"Content-Type: text/html", "Retry-After: 5"}, body: "<html>insufficient_quota</html>", want: again, wait: 5 * time.Second, clean: true},
		{name: "three megabytes", code: 429, body: long, want: again, clean: true},
		{name: "three megabytes of JSON", code: 429, body: `{"error":{"message":"` + long + `"}}`, want: again, clean: true},
		{name: "another status", code: 400, body: `{"error":{"code":"insufficient_quota"}}`, want: answer},
	})
}

func TestJudgeGitHubTellsALimitFromADenial(t *testing.T) {
	secondary := `{"documentation_url":"https://docs.github.com/x#about-secondary-rate-limits","message":"You have exceeded a secondary rate limit."}`
	testVendor(t, judgeGitHub, []vendorTest{
		{name: "a denial", code: 403, header: []string{"x-ratelimit-remaining: 4990", "x-ratelimit-reset: 1787832553"}, body: `{"message":"Forbidden"}`, want: answer},
		{name: "a denial and no header", code: 403, want: answer},
		{name: "Retry-After", code: 403, header: []string{"Retry-After: 60", "x-ratelimit-remaining: 4990", "x-ratelimit-reset: 1787832553"}, body: secondary,
			want: again, wait: time.Minute, clean: true},
		{name: "the secondary limit by its name", code: 403, header: []string{"x-ratelimit-remaining: 4990", "x-ratelimit-reset: 1787832553"}, body: secondary,
			want: again, wait: time.Minute, clean: true},
		{name: "the secondary limit by its link", code: 403, body: `{"documentation_url":"https://docs.github.com/x#secondary-rate-limits"}`, want: again, wait: time.Minute, clean: true},
		{name: "the secondary limit in capitals", code: 403, body: `{"message":"Secondary Rate Limit"}`, want: again, wait: time.Minute, clean: true},
		{name: "the secondary limit in plain text", code: 403, body: "secondary rate limit", want: again, wait: time.Minute, clean: true},
		{name: "the primary limit", code: 403, header: []string{"x-ratelimit-remaining: 0", "x-ratelimit-reset: 1787829173"}, want: again, wait: 2 * time.Minute, clean: true},
		{name: "the primary limit as 429", code: 429, header: []string{"x-ratelimit-remaining: 0", "x-ratelimit-reset: 1787829173"}, want: again, wait: 2 * time.Minute, clean: true},
		{name: "the primary limit without a readable time", code: 403, header: []string{"x-ratelimit-remaining: 0", "x-ratelimit-reset: later"}, want: again, wait: time.Minute, clean: true},
		{name: "429 and nothing else", code: 429, header: []string{"x-ratelimit-remaining: 12"}, want: again, wait: time.Minute, clean: true},
		{name: "a far name is not read", code: 403, body: strings.Repeat(" ", 1<<20) + "secondary rate limit", want: answer},
		{name: "told not to", code: 403, header: []string{"X-Should-Retry: false", "Retry-After: 60"}, want: permanent},
		{name: "other statuses", code: 502, header: []string{"Retry-After: 3"}, want: again, wait: 3 * time.Second},
		{name: "not found", code: 404, header: []string{"x-ratelimit-remaining: 0", "x-ratelimit-reset: 1787829173"}, want: answer},
	})
}

func TestLimitOfGitHubIsAnAnswerToTheDefaultJudge(t *testing.T) {
	resp := response(t, 403, "secondary rate limit", "Retry-After: 60")
	if got, _ := verdict(t, judge(resp, testNow)); got != answer {
		t.Errorf("Judge(403, Retry-After: 60) is %s, want %s", got, answer)
	}
}

func TestJudgeStripeFollowsStripe(t *testing.T) {
	testVendor(t, judgeStripe, []vendorTest{
		{name: "a charge", code: 200, header: []string{"Stripe-Should-Retry: true"}, want: answer},
		{name: "a declined card", code: 402, want: answer},
		{name: "conflict", code: 409, body: `{"error":{"code":"idempotency_key_in_use"}}`, want: again},
		{name: "conflict, told not to", code: 409, header: []string{"Stripe-Should-Retry: false"}, want: permanent},
		{name: "the limiter", code: 429, body: `{"error":{"type":"invalid_request_error","code":"rate_limit"}}`, want: again, clean: true},
		{name: "the limiter, with a wait", code: 429, header: []string{"Retry-After: 2"}, body: `{"error":{"code":"rate_limit"}}`, want: again, wait: 2 * time.Second, clean: true},
		{name: "a lock", code: 429, header: []string{"Stripe-Should-Retry: true"}, body: `{"error":{"code":"lock_timeout"}}`, want: again},
		{name: "a 429 of somebody else", code: 429, body: "rate_limit", want: again},
		{name: "429, told not to", code: 429, header: []string{"Stripe-Should-Retry: false"}, body: `{"error":{"code":"rate_limit"}}`, want: permanent},
		{name: "a stored 500", code: 500, header: []string{"Stripe-Should-Retry: false"}, want: permanent},
		{name: "500", code: 500, want: again},
		{name: "400, told to", code: 400, header: []string{"Stripe-Should-Retry: true"}, want: again},
		{name: "Stripe's word before a proxy's", code: 503, header: []string{"Stripe-Should-Retry: true", "X-Should-Retry: false"}, want: again},
		{name: "a proxy's word where Stripe says nothing", code: 503, header: []string{"X-Should-Retry: false"}, want: permanent},
		{name: "a proxy's word on a limit", code: 429, header: []string{"X-Should-Retry: false"}, want: permanent},
		{name: "another spelling", code: 402, header: []string{"Stripe-Should-Retry: yes"}, want: answer},
	})
}
