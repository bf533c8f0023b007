package riphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

func TestTraceTellsWhatHappenedInOrder(t *testing.T) {
	for _, test := range []struct {
		name     string
		steps    []any
		change   func(*riprap.Policy, *http.Request) *http.Request
		order    string
		attempts int
		reason   error
		err      func(error) bool
	}{
		{"success", []any{200}, nil, "attempt done", 1, nil, isNil},
		{"two failures and a success", []any{503, errWire, 200}, nil, "attempt retry attempt retry attempt done", 3, nil, isNil},
		{"given up", []any{503}, nil, "attempt retry attempt retry attempt done", 3, riprap.ErrAttempts, is503},
		{"given up without an answer", []any{errWire}, nil, "attempt retry attempt retry attempt done", 3, riprap.ErrAttempts, isWire},
		{"permanent", []any{501}, nil, "attempt done", 1, nil, func(err error) bool { return statusOf(err) == 501 }},
		{"cancelled in the second wait", []any{503}, func(_ *riprap.Policy, req *http.Request) *http.Request {
			ctx, cancel := context.WithCancel(req.Context())
			time.AfterFunc(1500*time.Millisecond, cancel)
			return req.WithContext(ctx)
		}, "attempt retry attempt retry done", 2, context.Canceled, is503},
		{"body that cannot be read", []any{200}, func(_ *riprap.Policy, req *http.Request) *http.Request {
			req.Body, req.ContentLength = track(""), 7
			return req
		}, "done", 0, nil, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"no time for a retry", []any{errWire}, func(p *riprap.Policy, req *http.Request) *http.Request {
			p.Timeout = time.Second
			return req
		}, "attempt done", 1, riprap.ErrDeadline, isWire},
	} {
		for _, bounds := range []string{"bounded", "unbounded"} {
			inBubble(t, test.name+" "+bounds, func(t *testing.T) {
				var log events
				policy := even()
				policy.MaxAttempts = 3
				client := &riphttp.Transport{Base: script(test.steps...), Policy: policy}
				if bounds == "unbounded" {
					policy.Timeout, policy.AttemptTimeout, client.ReadTimeout = -1, -1, -1
				}
				req := newRequest(t, "PUT", serviceURL, nil)
				if test.change != nil {
					req = test.change(policy, req)
				}
				client.Policy = traced(policy, &log)
				result(t, client, req)
				if got := strings.Join(log.order, " "); got != test.order {
					t.Errorf("hooks were called in the order %s, want %s", got, test.order)
				}
				e := log.ended(t)
				if e.Attempts != test.attempts || !errors.Is(e.Reason, test.reason) || (e.Reason == nil) != (test.reason == nil) || !test.err(e.Err) {
					t.Errorf("Done: %d attempts, reason %v, err %v, want %d and %v", e.Attempts, e.Reason, e.Err, test.attempts, test.reason)
				}
				if gaveUp, ok := errors.AsType[*riprap.Error](e.Err); ok {
					t.Errorf("Done: err %v, want the failure alone beside the reason", gaveUp)
				}
				for i, e := range log.attempts {
					if e.Attempts != i+1 || e.Name != "http://service.test" {
						t.Errorf("attempt %d is told as number %d of %q", i+1, e.Attempts, e.Name)
					}
				}
				for i, e := range log.retries {
					if e.Attempts != i+1 || e.Wait != time.Second || e.Err == nil {
						t.Errorf("retry %d: after %d attempts, wait %v, err %v, want %d, 1s and the failure", i+1, e.Attempts, e.Wait, e.Err, i+1)
					}
				}
			})
		}
	}
}

func isNil(err error) bool  { return err == nil }
func is503(err error) bool  { return statusOf(err) == 503 }
func isWire(err error) bool { return errors.Is(err, errWire) }

func TestWaitThatIsToldIsTheOneThatIsSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log events
		service := script(reply(429, "", "Retry-After", "3"), 503, errWire, 200)
		client := &riphttp.Transport{Base: service, Policy: traced(&riprap.Policy{}, &log)}
		result(t, client, newRequest(t, "GET", serviceURL, nil))
		var told []time.Duration
		for _, e := range log.retries {
			told = append(told, e.Wait)
		}
		wantGaps(t, service, told...)
		if e := log.retries[0]; e.Asked != 3*time.Second || e.Wait < e.Asked {
			t.Errorf("first retry: asked %v, wait %v, want 3s and at least that", e.Asked, e.Wait)
		}
		if e := log.retries[1]; e.Asked != 0 {
			t.Errorf("second retry: asked %v, want nothing", e.Asked)
		}
		if e := log.attempts[1]; e.Asked != 0 || e.Wait != 0 || e.Err != nil {
			t.Errorf("second attempt: asked %v, wait %v, err %v, want nothing of the attempt before", e.Asked, e.Wait, e.Err)
		}
	})
}

func TestAnswerIsDoneWhenItsBodyIs(t *testing.T) {
	for name, end := range map[string]func(*http.Response){
		"read to the end":         func(r *http.Response) { io.Copy(io.Discard, r.Body) },
		"closed":                  func(r *http.Response) { r.Body.Close() },
		"read, closed and closed": func(r *http.Response) { io.Copy(io.Discard, r.Body); r.Body.Close(); r.Body.Close() },
	} {
		inBubble(t, name, func(t *testing.T) {
			var log events
			client := &riphttp.Transport{Base: script(200), Policy: traced(even(), &log)}
			resp, err := roundTrip(t, client, newRequest(t, "GET", serviceURL, nil))
			if err != nil {
				t.Fatal(err)
			}
			if len(log.done) != 0 {
				t.Error("Done was called with the body open")
			}
			end(resp)
			if e := log.ended(t); e.Err != nil || e.Attempts != 1 {
				t.Errorf("Done: err %v, %d attempts, want none and one", e.Err, e.Attempts)
			}
		})
	}
}

func TestAnswerWithoutABodyIsDoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log events
		service := script(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
		})
		resp, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: traced(even(), &log)}, newRequest(t, "GET", serviceURL, nil))
		if err != nil {
			t.Fatal(err)
		}
		log.ended(t)
		resp.Body.Close()
		log.ended(t)
	})
}

func TestContextOfTheAttemptHookIsTheAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type span struct{}
		policy := even()
		policy.Trace = &riprap.Trace{
			Attempt: func(ctx context.Context, e riprap.Event) context.Context {
				return context.WithValue(ctx, span{}, e.Attempts)
			},
			Retry: func(ctx context.Context, _ riprap.Event) {
				if ctx.Value(span{}) != nil {
					t.Error("Retry got the context of an attempt, want the call's")
				}
			},
		}
		n := 0
		service := script(func(r *http.Request) (*http.Response, error) {
			if n++; r.Context().Value(span{}) != n {
				t.Errorf("attempt %d has the span of %v", n, r.Context().Value(span{}))
			}
			return response([]int{503, 200}[n-1], ""), nil
		})
		result(t, &riphttp.Transport{Base: service, Policy: policy}, newRequest(t, "GET", serviceURL, nil))
		wantCalls(t, service, 2)
	})
}

func TestSendsCountRequestsOnTheWire(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		inBubble(t, fmt.Sprint("HTTP/2 ", h2), func(t *testing.T) {
			served := 0
			server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if served++; served < 3 {
					w.WriteHeader(503)
				}
			}))
			base := server.Transport()
			if h2 {
				base = server.HTTP2()
			}
			var log events
			client := &riphttp.Transport{Base: base, Policy: traced(even(), &log)}
			wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "")
			client.CloseIdleConnections()
			server.Stop()
			if e := log.ended(t); e.Sends != served || e.Attempts != 3 || served != 3 {
				t.Errorf("Done: %d sends in %d attempts, %d served, want three each", e.Sends, e.Attempts, served)
			}
			if opened := server.Opened(); opened != 1 {
				t.Errorf("%d connections, want one", opened)
			}
		})
	}
}

// Over HTTP/2 a quick response can be there before the news that its request was written.
func TestAnswerThatOvertakesTheNewsOfItsRequestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(func(r *http.Request) (*http.Response, error) {
			trace := httptrace.ContextClientTrace(r.Context())
			trace.GetConn("service.test:443")
			trace.GotConn(httptrace.GotConnInfo{})
			return response(200, "ok"), nil
		})
		var log events
		wantAnswer(t, &riphttp.Transport{Base: service, Policy: traced(even(), &log)}, newRequest(t, "GET", serviceURL, nil), 200, "ok")
		if e := log.ended(t); e.Sends != 1 {
			t.Errorf("Done: %d sends, want one", e.Sends)
		}
	})
}

// A middleware below that adds to the header of what it is given must not find its own additions there.
func TestHeadersDoNotPileUp(t *testing.T) {
	for i := range 4 {
		careful, bounded := i%2 == 0, i/2 == 0
		inBubble(t, fmt.Sprint("careful ", careful, ", bounded ", bounded), func(t *testing.T) {
			var seen []int
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				if careful {
					r = r.Clone(r.Context())
				}
				r.Header.Add("X-Attempt", "1")
				seen = append(seen, len(r.Header["X-Attempt"]))
				return response(503, ""), nil
			})
			policy := even()
			policy.MaxAttempts, policy.Timeout = 10, -1
			client := &riphttp.Transport{Base: base, Policy: policy}
			if !bounded {
				policy.AttemptTimeout, client.ReadTimeout = -1, -1
			}
			result(t, client, newRequest(t, "GET", serviceURL, nil))
			want := "[1 1 1 1 1 1 1 1 1 1]"
			if !careful {
				want = "[1 2 2 2 2 2 2 2 2 2]" // it has spoiled the caller's own header once
			}
			if got := fmt.Sprint(seen); got != want {
				t.Errorf("values by attempt: %s, want %s", got, want)
			}
		})
	}
}
