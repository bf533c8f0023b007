package riphttp

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
)

// response makes a response of a status, header lines and a body.
func response(t testing.TB, code int, body string, header ...string) *http.Response {
	t.Helper()
	return &http.Response{
		StatusCode: code,
		Header:     fields(t, header...),
		Body:       io.NopCloser(strings.NewReader(body)),
	}
}

// to sets the request that a response answers.
func to(resp *http.Response, r *http.Request) *http.Response {
	resp.Request = r
	return resp
}

type kind string

const (
	answer    kind = "an answer"
	permanent kind = "a permanent failure"
	again     kind = "a failure that may be repeated"
)

// verdict tells what a loop makes of the error of a Judge, and the wait that was asked for.
func verdict(t testing.TB, err error) (kind, time.Duration) {
	t.Helper()
	if err == nil {
		return answer, 0
	}
	o := riprap.Operation{Policy: &riprap.Policy{MaxWait: 1}} // any wait asked for ends the loop, which tells it
	o.Begin(testNow)
	wait, stop := o.Next(testNow, err)
	if wait > 0 {
		return again, 0
	}
	gaveUp, ok := errors.AsType[*riprap.Error](stop)
	if !ok {
		return permanent, 0
	}
	if gaveUp.Reason != riprap.ErrWait {
		t.Fatalf("the loop gave up: %v, want a wait that is too long to be the only reason", gaveUp.Reason)
	}
	return again, gaveUp.Wait
}

func TestJudgeByStatus(t *testing.T) {
	for want, codes := range map[kind][]int{
		answer: {100, 101, 103, 200, 201, 204, 206, 300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 412,
			413, 415, 417, 418, 421, 422, 423, 424, 426, 428, 431, 451, 499},
		permanent: {501, 505, 506, 507, 508, 510, 511},
		again:     {408, 425, 429, 500, 502, 503, 504, 509, 520, 521, 522, 523, 524, 527, 529, 530, 599, 0, 99, 600, 999, -1},
	} {
		for _, code := range codes {
			resp := response(t, code, "")
			err := judge(resp, testNow)
			if got, wait := verdict(t, err); got != want || wait != 0 {
				t.Errorf("Judge(%d) is %s after %v, want %s", code, got, wait, want)
			}
			status, ok := errors.AsType[*StatusError](err)
			if want != answer && (!ok || status.Code != code) {
				t.Errorf("Judge(%d) = %v, want a StatusError of the code", code, err)
			}
			if errors.Is(err, ErrNotProcessed) {
				t.Errorf("Judge(%d) = %v, want no promise that the request was not processed", code, err)
			}
		}
	}
}

func TestJudgePassesTheWaitOn(t *testing.T) {
	for _, test := range []struct {
		code   int
		header string
		want   kind
		wait   time.Duration
	}{
		{503, "Retry-After: 7", again, 7 * time.Second},
		{503, "Retry-After: Thu, 27 Aug 2026 11:12:53 GMT", again, 2 * time.Minute},
		{500, "Retry-After: 7", again, 7 * time.Second},
		{429, "Retry-After: 61", again, 61 * time.Second},
		{429, "Retry-After: 99999999999999999999", again, math.MaxInt64},
		{429, "Retry-After: 0", again, 0},
		{429, "Retry-After: soon", again, 0},
		{429, `RateLimit: "burst";r=0;t=7`, again, 7 * time.Second},
		{408, "Retry-After: 7", again, 7 * time.Second},
		{999, "Retry-After: 7", again, 7 * time.Second},
		{413, "Retry-After: 5", again, 5 * time.Second},
		{413, "Retry-After: 0", again, 0},
		{413, "Retry-After: soon", answer, 0},
		{413, `RateLimit: "burst";r=0;t=7`, answer, 0},
		{501, "Retry-After: 5", permanent, 0},
		{404, "Retry-After: 5", answer, 0},
		{201, "Retry-After: 10", answer, 0},
		{302, "Retry-After: 1", answer, 0},
		{200, `RateLimit: "burst";r=0;t=10`, answer, 0},
		{301, `RateLimit: "burst";r=0;t=10`, answer, 0},
	} {
		got, wait := verdict(t, judge(response(t, test.code, "", test.header), testNow))
		if got != test.want || wait != test.wait {
			t.Errorf("Judge(%d, %s) is %s after %v, want %s after %v", test.code, test.header, got, wait, test.want, test.wait)
		}
	}
}

func TestJudgeReadsAnHTMLPageLikeAnyOther(t *testing.T) {
	resp := response(t, 429, "<html>", "Content-Type: text/html", "Retry-After: 1800")
	if got, wait := verdict(t, judge(resp, testNow)); got != again || wait != 30*time.Minute {
		t.Errorf("Judge(429 of a CDN) is %s after %v, want %s after 30m", got, wait, again)
	}
}

func TestReplayedAnswerIsFinal(t *testing.T) {
	req := &http.Request{Method: "POST", Header: http.Header{"Idempotency-Key": {"k"}}}
	for _, test := range []struct {
		code   int
		header []string
		want   kind
	}{
		{500, nil, permanent},
		{503, []string{"Retry-After: 1"}, permanent},
		{503, []string{"X-Should-Retry: true", "Stripe-Should-Retry: true"}, permanent},
		{429, []string{"Retry-After: 1"}, permanent},
		{409, nil, permanent},
		{403, nil, answer},
		{422, nil, answer},
		{201, nil, answer},
	} {
		for name, judge := range map[string]func(*http.Response, time.Time) error{
			"Judge": judge, "JudgeModels": judgeModels, "JudgeGitHub": judgeGitHub, "JudgeStripe": judgeStripe,
		} {
			resp := to(response(t, test.code, "", append(test.header, "Idempotent-Replayed: true")...), req)
			if got, _ := verdict(t, judge(resp, testNow)); got != test.want {
				t.Errorf("%s(%d, %q, replayed) is %s, want %s", name, test.code, test.header, got, test.want)
			}
		}
	}
	resp := response(t, 503, "", "Idempotent-Replayed: false")
	if got, _ := verdict(t, judge(resp, testNow)); got != again {
		t.Errorf("Judge(503, not replayed) is %s, want %s", got, again)
	}
}

func TestConflictIsRepeatedOnlyWithAKey(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        kind
	}{
		{"Idempotency-Key", "k", again},
		{"X-Idempotency-Key", "k", again},
		{"Idempotency-Key", "", answer},
		{"If-Match", "k", answer},
	} {
		req := &http.Request{Method: "POST", Header: http.Header{test.name: {test.value}}}
		if got, _ := verdict(t, judge(to(response(t, 409, ""), req), testNow)); got != test.want {
			t.Errorf("Judge(409) with %s: %q on the request is %s, want %s", test.name, test.value, got, test.want)
		}
		if got, _ := verdict(t, judge(to(response(t, 422, ""), req), testNow)); got != answer {
			t.Errorf("Judge(422) with %s: %q on the request is %s, want %s", test.name, test.value, got, answer)
		}
	}
}

func TestTheServicesOwnVerdictWinsFromStatus400On(t *testing.T) {
	for _, test := range []struct {
		code   int
		header []string
		want   kind
		wait   time.Duration
	}{
		{503, []string{"X-Should-Retry: false"}, permanent, 0},
		{503, []string{"X-Should-Retry: false", "Retry-After: 5"}, permanent, 0},
		{429, []string{"Stripe-Should-Retry: false"}, permanent, 0},
		{404, []string{"X-Should-Retry: false"}, permanent, 0},
		{400, []string{"X-Should-Retry: true"}, again, 0},
		{404, []string{"X-Should-Retry: true", "Retry-After: 5"}, again, 5 * time.Second},
		{409, []string{"Stripe-Should-Retry: true"}, again, 0},
		{501, []string{"Stripe-Should-Retry: true"}, again, 0},
		{999, []string{"X-Should-Retry: false"}, permanent, 0},
		{503, []string{"X-Should-Retry: true", "X-Should-Retry: false"}, permanent, 0},
		{503, []string{"X-Should-Retry: false", "X-Should-Retry: true"}, permanent, 0},
		{503, []string{"X-Should-Retry: true", "Stripe-Should-Retry: false"}, permanent, 0},
		{399, []string{"X-Should-Retry: true"}, answer, 0},
		{200, []string{"X-Should-Retry: true"}, answer, 0},
		{302, []string{"X-Should-Retry: false"}, answer, 0},
		{503, []string{"X-Should-Retry: False"}, again, 0},
		{503, []string{"X-Should-Retry: 0"}, again, 0},
		{503, []string{"X-Should-Retry: no"}, again, 0},
		{404, []string{"X-Should-Retry: TRUE"}, answer, 0},
		{404, []string{"X-Should-Retry: 1"}, answer, 0},
		{404, []string{"X-Should-Retry:"}, answer, 0},
	} {
		got, wait := verdict(t, judge(response(t, test.code, "", test.header...), testNow))
		if got != test.want || wait != test.wait {
			t.Errorf("Judge(%d, %q) is %s after %v, want %s after %v", test.code, test.header, got, wait, test.want, test.wait)
		}
	}
}

func TestJudgeDoesNotReadTheBody(t *testing.T) {
	for _, code := range []int{200, 404, 429, 501, 503} {
		resp := response(t, code, "db down")
		judge(resp, testNow)
		if body, err := io.ReadAll(resp.Body); string(body) != "db down" || err != nil {
			t.Errorf("after Judge(%d) the body reads %q, %v, want it untouched", code, body, err)
		}
	}
}

func TestErrorsNameTheStatusAndNothingElse(t *testing.T) {
	secret := []string{"Retry-After: 5", "X-Should-Retry: s3cret", "Location: https://u:s3cret@h.test/?token=s3cret"}
	body := `{"error":{"message":"s3cret secondary rate limit","code":"rate_limit"}}`
	req, err := http.NewRequest("POST", "https://u:s3cret@h.test/s3cret?token=s3cret", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "s3cret")
	for name, judge := range map[string]func(*http.Response) error{
		"Judge": Judge, "JudgeModels": JudgeModels, "JudgeGitHub": JudgeGitHub, "JudgeStripe": JudgeStripe,
	} {
		for code, want := range map[int]string{429: "429 Too Many Requests", 501: "501 Not Implemented", 529: "status 529"} {
			err := judge(to(response(t, code, body, secret...), req))
			if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s(%d) = %v, want ... %s without a secret", name, code, err, want)
			}
		}
	}
}

func FuzzJudgeGivesOnlyFailuresFromStatus400On(f *testing.F) {
	f.Add(503, "Retry-After", "5", `{"error":{"code":"insufficient_quota"}}`)
	f.Add(403, "X-Ratelimit-Remaining", "0", "secondary rate limit")
	f.Add(429, "Anthropic-Ratelimit-Tokens-Remaining", "0", `[{"error":{"details":[{"retryDelay":"5s"}]}}]`)
	f.Fuzz(func(t *testing.T, code int, name, value, body string) {
		for judgeName, judge := range map[string]func(*http.Response, time.Time) error{
			"Judge": judge, "JudgeModels": judgeModels, "JudgeGitHub": judgeGitHub, "JudgeStripe": judgeStripe,
		} {
			resp := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
			resp.Header.Set(name, value)
			err := judge(resp, testNow)
			if 100 <= code && code < 400 && err != nil {
				t.Errorf("%s(%d, %s: %q) = %v, want an answer", judgeName, code, name, value, err)
			}
			if _, wait := verdict(t, err); wait < 0 {
				t.Errorf("%s(%d, %s: %q) asks for %v", judgeName, code, name, value, wait)
			}
			if left, readErr := io.ReadAll(resp.Body); string(left) != body || readErr != nil {
				t.Errorf("after %s(%d) the body reads %q, %v, want %q", judgeName, code, left, readErr, body)
			}
		}
	})
}
