package call

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/internal/memhttp"
)

func TestEachAttemptGetsALineThatSaysWhatWasDecidedAndWhy(t *testing.T) {
	const withoutKey = " without a key is not safe to send twice; add --key auto if the service honours keys"
	tests := map[string]struct {
		script, args string
		code         int
		body         string
		want         []string
	}{
		"an answer at once": {"200 body=ok", "URL/x", 0, "ok", []string{
			"attempt 1: 200 · answered after 0s"}},
		"the server asks for a wait": {"503 retry-after=2, 200 body=ok delay=10ms", "URL/x", 0, "ok", []string{
			"attempt 1: 503 · server asks 2s · waiting 2.13s (retry 1 of 3, budget 9 left)",
			"attempt 2: 200 · answered after 2.14s"}},
		"waits of our own": {"503", "URL", 1, "503 Service Unavailable\n", []string{
			"attempt 1: 503 · waiting 338ms (retry 1 of 3, budget 9 left)",
			"attempt 2: 503 · waiting 675ms (retry 2 of 3, budget 8 left)",
			"attempt 3: 503 · waiting 1.35s (retry 3 of 3, budget 7 left)",
			"attempt 4: 503 · gave up: no attempts left (4 of 4), 2.36s in all"}},
		"waits as the flags have them": {"500, 502, 504, 200 body=ok", "URL --backoff 3s..5s --jitter none --budget none", 0, "ok", []string{
			"attempt 1: 500 · waiting 3s (retry 1 of 3)",
			"attempt 2: 502 · waiting 5s (retry 2 of 3)",
			"attempt 3: 504 · waiting 5s (retry 3 of 3)",
			"attempt 4: 200 · answered after 13s"}},
		"no limit of attempts": {"503*5, 200 body=ok", "URL --attempts none --budget 7 --backoff 1s..1s --jitter none", 0, "ok", []string{
			"attempt 1: 503 · waiting 1s (retry 1, budget 6 left)",
			"attempt 2: 503 · waiting 1s (retry 2, budget 5 left)",
			"attempt 3: 503 · waiting 1s (retry 3, budget 4 left)",
			"attempt 4: 503 · waiting 1s (retry 4, budget 3 left)",
			"attempt 5: 503 · waiting 1s (retry 5, budget 2 left)",
			"attempt 6: 200 · answered after 5s"}},
		"the budget is spent": {"503 body=down", "URL --attempts none --budget 1 --backoff 1s..1s --jitter none", 1, "down", []string{
			"attempt 1: 503 · waiting 1s (retry 1, budget 0 left)",
			"attempt 2: 503 · gave up: the budget of 1 is spent, 1s in all"}},
		"no time for another attempt": {"503 body=down", "URL --backoff 2s..2s --jitter none -m 3s", 1, "down", []string{
			"attempt 1: 503 · waiting 2s (retry 1 of 3, budget 9 left)",
			"attempt 2: 503 · gave up: no time for another attempt (--timeout 3s), 2s in all"}},
		"the server asks for too much": {"429 retry-after=3600 body=later", "URL", 1, "later", []string{
			"attempt 1: 429 · server asks 1h · gave up: that is longer than --max-wait 1m, 0s in all"}},
		"the server asks for more than there is": {"429 retry-after=99999999999999999999 body=later", "URL", 1, "later", []string{
			"attempt 1: 429 · server asks more than a year · gave up: that is longer than --max-wait 1m, 0s in all"}},
		"as much as it likes": {"429 retry-after=100, 200", "URL --max-wait none -m none", 0, "200 OK\n", []string{
			"attempt 1: 429 · server asks 1m40s · waiting 1m47s (retry 1 of 3, budget 9 left)",
			"attempt 2: 200 · answered after 1m47s"}},
		"an answer that is an error": {"404 body=nothing delay=20ms", "URL", 1, "nothing", []string{
			"attempt 1: 404 · not retried: a repeat would not change it, 20ms in all"}},
		"a failure that stays": {"501 body=no", "URL", 1, "no", []string{
			"attempt 1: 501 · not retried: a repeat would not change it, 0s in all"}},
		"the server says not to": {`503 header="X-Should-Retry: false" body=no`, "URL", 1, "no", []string{
			"attempt 1: 503 · not retried: the server says not to, 0s in all"}},
		"a POST without a key": {"503 body=no", "URL -d x", 1, "no", []string{
			"attempt 1: 503 · gave up: a POST" + withoutKey + ", 0s in all"}},
		"a PATCH without a key": {"503 body=no", "URL -d x -X PATCH", 1, "no", []string{
			"attempt 1: 503 · gave up: a PATCH" + withoutKey + ", 0s in all"}},
		"a POST with a key": {"503, 200 body=ok", "URL -d x --key auto", 0, "ok", []string{
			"attempt 1: 503 · waiting 338ms (retry 1 of 3, budget 9 left)",
			"attempt 2: 200 · answered after 338ms"}},
		"a PUT": {"503, 200 body=ok", "URL -d x -X PUT", 0, "ok", []string{
			"attempt 1: 503 · waiting 338ms (retry 1 of 3, budget 9 left)",
			"attempt 2: 200 · answered after 338ms"}},
		"an outcome that is unknown": {"close", "URL -d x", 1, "", []string{
			"attempt 1: connection closed without an answer · gave up: outcome unknown, the request may have been processed and " +
				"is not sent again; add --key auto if the service honours keys, 0s in all"}},
		"a POST with a key that gets no answer": {"close", "URL -d x --key auto --attempts 1", 1, "", []string{
			"attempt 1: connection closed without an answer · gave up: no attempts left (1 of 1), outcome unknown: the request may have " +
				"been processed, 0s in all"}},
		"a POST with a key and no time for another attempt": {"hang", "URL -d x --key auto --attempt-timeout 2s --timeout 2.1s", 1, "", []string{
			"attempt 1: no answer within 2s · gave up: no time for another attempt (--timeout 2.1s), outcome unknown: the request may " +
				"have been processed, 2s in all"}},
		"a connection that closes": {"close, 200 body=ok", "URL", 0, "ok", []string{
			"attempt 1: connection closed without an answer · waiting 338ms (retry 1 of 3, budget 9 left)",
			"attempt 2: 200 · answered after 338ms"}},
		"an attempt that takes too long": {"hang, 200 body=ok", "URL --attempt-timeout 3s", 0, "ok", []string{
			"attempt 1: no answer within 3s · waiting 338ms (retry 1 of 3, budget 9 left)",
			"attempt 2: 200 · answered after 3.34s"}},
		"an attempt that has no time at all": {"hang", "URL --attempt-timeout 1ns --attempts 1", 1, "", []string{
			"attempt 1: no answer within 1ns · gave up: no attempts left (1 of 1), 1ns in all"}},
		"a call that takes too long": {"hang", "URL --timeout 2s", 1, "", []string{
			"attempt 1: no answer · gave up: --timeout 2s is over, 2s in all"}},
		"a POST that takes too long": {"hang", "URL -d x --timeout 2s", 1, "", []string{
			"attempt 1: no answer · gave up: --timeout 2s is over, outcome unknown: the request may have been processed, 2s in all"}},
		"a POST that an attempt gives no time": {"hang", "URL -d x --attempt-timeout 2s", 1, "", []string{
			"attempt 1: no answer within 2s · gave up: outcome unknown, the request may have been processed and is not sent again; " +
				"add --key auto if the service honours keys, 2s in all"}},
		"a body that is cut short": {"cut=3 body=abcdef", "URL", 1, "abc", []string{
			"attempt 1: 200 · answered after 0s",
			"body cut short after 3 of 6 bytes: the connection was closed, 0s in all"}},
		"a body that falls silent": {"slow=40s/byte body=abc", "URL --timeout none", 1, "", []string{
			"attempt 1: 200 · answered after 0s",
			"body cut short after 0 of 3 bytes: nothing came for 30s, 30s in all"}},
		"a body that takes longer than the call may": {"slow=4s/byte body=abc", "URL --timeout 10s", 1, "ab", []string{
			"attempt 1: 200 · answered after 0s",
			"body cut short after 2 of 3 bytes: --timeout 10s is over, 10s in all"}},
		"a body of unknown length that never ends": {"endless", "URL --timeout 10ms", 1, "?", []string{
			"attempt 1: 200 · answered after 0s",
			"body cut short after 1024 bytes: --timeout 10ms is over, 10ms in all"}},
		"a redirect": {`302 header="Location: /y?token=T0K" body=moved`, "URL", 0, "moved", []string{
			"attempt 1: 302 · answered after 0s"}},
		"a redirect that leads nowhere": {`302 header="Location: http://[T0K" body=moved`, "URL", 0, "moved", []string{
			"attempt 1: 302 · answered after 0s"}},
		"a redirect that is followed": {`/x: 302 header="Location: /y?token=T0K"; /y: 503, 200 body=ok`, "-L URL/x", 0, "ok", []string{
			"attempt 1: 302 · redirect to http://memory.test",
			"attempt 1: 503 · waiting 338ms (retry 1 of 3, budget 9 left)",
			"attempt 2: 200 · answered after 338ms"}},
		"a redirect that cannot be followed": {`302 header="Location: http://[T0K"`, "-L URL", 1, "", []string{
			"attempt 1: 302 · gave up: where it leads makes no sense"}},
		"redirects without end": {`302 header="Location: /"`, "-L URL", 1, "", append(
			strings.Split(strings.Repeat("attempt 1: 302 · redirect to http://memory.test\n", 10), "\n")[:10],
			"attempt 1: 302 · gave up: 10 redirects followed, and there is another one")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := inMemory(t, script(t, tt.script), tt.args)
			compare(t, "stderr", r.stderr, tt.want...)
			if tt.body != "?" && r.stdout != tt.body {
				t.Errorf("stdout: got %q, want %q", r.stdout, tt.body)
			}
			if got := r.code(t); got != tt.code {
				t.Errorf("exit code: got %d, want %d", got, tt.code)
			}
		})
	}
}

func TestSilentSaysNothing(t *testing.T) {
	for args, want := range map[string][]string{
		"-s URL":  nil,
		"-sS URL": {"attempt 2: 503 · gave up: no attempts left (2 of 2), 338ms in all"},
	} {
		t.Run(args, func(t *testing.T) {
			r := inMemory(t, script(t, "503 body=down"), args+" --attempts 2")
			compare(t, "stderr", r.stderr, want...)
			if got := r.code(t); got != 1 || r.stdout != "down" {
				t.Errorf("got exit code %d and stdout %q, want 1 and down", got, r.stdout)
			}
		})
	}
}

func TestEventsAreJSON(t *testing.T) {
	r := inMemory(t, script(t, "/x: 503 retry-after=2, 302 header=\"Location: /y\"; /y: cut=2 body=abcd"), "--json -s -L URL/x")
	compare(t, "stderr", r.stderr,
		`{"event":"attempt","elapsed_seconds":0,"service":"http://memory.test","attempt":1}`,
		`{"event":"retry","elapsed_seconds":0,"service":"http://memory.test","attempt":1,"sends":1,"status":503,"asked_seconds":2,"wait_seconds":2.13,"budget_left":9,"text":"attempt 1: 503 · server asks 2s · waiting 2.13s (retry 1 of 3, budget 9 left)"}`,
		`{"event":"attempt","elapsed_seconds":2.13,"service":"http://memory.test","attempt":2}`,
		`{"event":"redirect","elapsed_seconds":2.13,"service":"http://memory.test","attempt":2,"sends":2,"status":302,"text":"attempt 2: 302 · redirect to http://memory.test"}`,
		`{"event":"attempt","elapsed_seconds":2.13,"service":"http://memory.test","attempt":1}`,
		`{"event":"answer","elapsed_seconds":2.13,"service":"http://memory.test","attempt":1,"sends":1,"status":200,"text":"attempt 1: 200 · answered after 2.13s"}`,
		`{"event":"body","elapsed_seconds":2.13,"service":"http://memory.test","attempt":1,"status":200,"error":"the connection was closed","bytes":2,"text":"body cut short after 2 of 4 bytes: the connection was closed, 2.13s in all"}`)
	if got := r.code(t); got != 1 {
		t.Errorf("exit code: got %d, want 1", got)
	}
	r = inMemory(t, script(t, "hang"), "--json URL --attempt-timeout 1s --attempts 1")
	compare(t, "stderr", r.stderr,
		`{"event":"attempt","elapsed_seconds":0,"service":"http://memory.test","attempt":1}`,
		`{"event":"failure","elapsed_seconds":1,"service":"http://memory.test","attempt":1,"sends":1,"error":"no answer within 1s","reason":"attempts","text":"attempt 1: no answer within 1s · gave up: no attempts left (1 of 1), 1s in all"}`)
	for line := range strings.Lines(r.stderr) {
		if !json.Valid([]byte(line)) {
			t.Errorf("got the line %s, want JSON", line)
		}
	}
}

func TestHeaderStandsBeforeTheBody(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Add("X-A", "1")
		w.Header().Add("X-A", "2")
		io.WriteString(w, r.Method)
	})
	for args, want := range map[string]string{
		"-i URL": "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain; charset=utf-8\r\nX-A: 1\r\nX-A: 2\r\n\r\nGET",
		"-I URL": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Type: text/plain; charset=utf-8\r\nX-A: 1\r\nX-A: 2\r\n\r\n",
	} {
		if r := inMemory(t, h, args); r.stdout != want {
			t.Errorf("%s: got %q, want %q", args, r.stdout, want)
		}
	}
}

func TestCallEndsAtOnceWhenItIsInterrupted(t *testing.T) {
	for name, tt := range map[string]struct {
		script, args string
		want         []string
	}{
		"in an attempt": {"hang", "URL", []string{
			"attempt 1: no answer · interrupted, 1s in all"}},
		"in an attempt of a POST": {"hang", "URL -d x", []string{
			"attempt 1: no answer · interrupted, outcome unknown: the request may have been processed, 1s in all"}},
		"in a wait": {"503", "URL --backoff 5s..5s", []string{
			"attempt 1: 503 · waiting 3.38s (retry 1 of 3, budget 9 left)",
			"no attempt 2: interrupted, 1s in all"}},
		"in the body": {"slow=300ms/byte body=abcdef", "URL", []string{
			"attempt 1: 200 · answered after 0s",
			"body cut short after 3 of 6 bytes: interrupted, 1s in all"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := script(t, tt.script)
			synctest.Test(t, func(t *testing.T) {
				server := memhttp.Serve(h)
				base := server.Transport()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				r := makeCall(ctx, t, base, strings.Fields(strings.ReplaceAll(tt.args, "URL", memhttp.URL))...)
				compare(t, "stderr", r.stderr, tt.want...)
				if got := r.code(t); got != 1 {
					t.Errorf("exit code: got %d, want 1", got)
				}
				base.CloseIdleConnections()
				server.Stop()
			})
		})
	}
}
