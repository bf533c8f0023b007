package ripotel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// serve runs a test in fake time with a server, and with a transport to it.
func serve(t *testing.T, h http.HandlerFunc, test func(*testing.T, *watch, *riphttp.Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := memhttp.Serve(h)
		rt := &riphttp.Transport{Base: server.Transport(), Policy: even()}
		test(t, newWatch(), rt)
		rt.CloseIdleConnections()
		server.Stop()
	})
}

// statuses is a handler that takes a second and answers with these in turn.
func statuses(codes ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		w.WriteHeader(codes[0])
		if len(codes) > 1 {
			codes = codes[1:]
		}
	}
}

func newRequest(ctx context.Context, t testing.TB, method, url string, header ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// fetch sends a request and reads its answer to the end.
func fetch(rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, err
}

func TestHTTPCallHasASpanAboveThoseOfItsRequests(t *testing.T) {
	served := 0
	serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		switch served++; served {
		case 1:
			w.WriteHeader(503)
		case 2:
			w.Header().Set("Retry-After", "10")
			w.WriteHeader(429)
		default:
			w.(http.Flusher).Flush()
			time.Sleep(20 * time.Second)
			io.WriteString(w, "done")
		}
	}, func(t *testing.T, w *watch, rt *riphttp.Transport) {
		if _, err := fetch(w.Transport(rt), newRequest(t.Context(), t, "GET", memhttp.URL)); err != nil {
			t.Fatal(err)
		}
		w.wantStory(t, `
call GET: internal 0s+34s attempts=3 http.request.method=GET service=http://memory.test
	- retry: 1s attempts=1 error.type=503 wait.cause=backoff wait=1
	- retry: 3s asked=10 attempts=2 error.type=429 wait.cause=asked wait=10
	GET: client 0s+1s Error error.type=503 http.request.method=GET http.response.status_code=503
	GET: client 2s+1s Error error.type=429 http.request.method=GET http.request.resend_count=1 http.response.status_code=429
	GET: client 13s+1s http.request.method=GET http.request.resend_count=2 http.response.status_code=200
`)
	})
}

func TestHTTPCallThatGaveUpSaysWhy(t *testing.T) {
	serve(t, statuses(503), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		client := w.Transport(rt)
		fetch(client, newRequest(t.Context(), t, "POST", memhttp.URL))
		w.wantStory(t, `
call POST: internal 0s+1s Error attempts=1 error.type=503 http.request.method=POST reason=unsafe service=http://memory.test
	POST: client 0s+1s Error error.type=503 http.request.method=POST http.response.status_code=503
`)
	})
}

func TestHTTPCallWithALostAnswerSaysThatItsOutcomeIsUnknown(t *testing.T) {
	serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, func(t *testing.T, w *watch, rt *riphttp.Transport) {
		client := w.Transport(rt)
		fetch(client, newRequest(t.Context(), t, "POST", memhttp.URL))
		if story := w.story(); !strings.Contains(story, "outcome_unknown=true reason=outcome_unknown") {
			t.Errorf("without a key: no unknown outcome for that reason in\n%s", story)
		}
		w.spans.Reset()
		rt.Policy.MaxAttempts = 2
		fetch(client, newRequest(t.Context(), t, "POST", memhttp.URL, "Idempotency-Key", "k"))
		story := w.story()
		for _, want := range []string{"outcome_unknown=true reason=attempts", "http.request.resend_count=1"} {
			if !strings.Contains(story, want) {
				t.Errorf("with a key: no %s in\n%s", want, story)
			}
		}
	})
}

func TestAnswerThatIsNoFailureForTheCallIsNoneOfItsSpan(t *testing.T) {
	serve(t, statuses(404), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		fetch(w.Transport(rt), newRequest(t.Context(), t, "GET", memhttp.URL))
		w.wantStory(t, `
call GET: internal 0s+1s attempts=1 http.request.method=GET service=http://memory.test
	GET: client 0s+1s Error error.type=404 http.request.method=GET http.response.status_code=404
`)
	})
}

func TestAnswerWhoseBodyBreaksIsAFailureOfTheCall(t *testing.T) {
	serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10")
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		time.Sleep(time.Second)
		panic(http.ErrAbortHandler)
	}, func(t *testing.T, w *watch, rt *riphttp.Transport) {
		fetch(w.Transport(rt), newRequest(t.Context(), t, "GET", memhttp.URL))
		w.wantStory(t, `
call GET: internal 0s+1s Error attempts=1 error.type=_OTHER http.request.method=GET service=http://memory.test
	GET: client 0s+0s http.request.method=GET http.response.status_code=200
`)
	})
}

func TestAttemptThatTimesOutOrIsCanceledSaysSo(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	serve(t, hang, func(t *testing.T, w *watch, rt *riphttp.Transport) {
		rt.Policy.AttemptTimeout = 2 * time.Second
		ctx, cancel := cancelAfter(t.Context(), 4*time.Second)
		defer cancel()
		fetch(w.Transport(rt), newRequest(ctx, t, "GET", memhttp.URL))
		w.wantStory(t, `
call GET: internal 0s+4s Error attempts=2 error.type=canceled http.request.method=GET reason=canceled service=http://memory.test
	- retry: 2s attempts=1 error.type=timeout wait.cause=backoff wait=1
	GET: client 0s+2s Error error.type=timeout http.request.method=GET
	GET: client 3s+1s Error error.type=canceled http.request.method=GET http.request.resend_count=1
`)
	})
}

func TestBaseThatPanicsEndsItsSpans(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("x") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch()
				base := roundTripper(func(*http.Request) (*http.Response, error) {
					end()
					return nil, nil
				})
				client := w.Transport(&riphttp.Transport{Base: base})
				for _, policy := range []*riprap.Policy{nil, {}} { // with our Trace, and without
					w.spans.Reset()
					var ended sync.WaitGroup
					ended.Go(func() {
						defer func() { recover() }()
						client.RoundTrip(newRequest(riphttp.WithPolicy(t.Context(), policy), t, "GET", memhttp.URL))
					})
					ended.Wait()
					story := w.story()
					if strings.Count(story, "Error") != 2 || strings.Count(story, "error.type=_OTHER") != 2 {
						t.Errorf("spans:\n%s\nwant a call and an attempt, both _OTHER", story)
					}
					w.wantNoneOpen(t)
				}
			})
		})
	}
}

func TestRequestWithAPolicyWithoutATraceHasSpansStill(t *testing.T) {
	serve(t, statuses(503, 200), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		ctx := riphttp.WithPolicy(t.Context(), even())
		fetch(w.Transport(rt), newRequest(ctx, t, "GET", memhttp.URL))
		w.wantStory(t, `
call GET: internal 0s+3s http.request.method=GET
	GET: client 0s+1s Error error.type=503 http.request.method=GET http.response.status_code=503
	GET: client 2s+1s http.request.method=GET http.request.resend_count=1 http.response.status_code=200
`)
		w.spans.Reset()
		fetch(w.Transport(rt), newRequest(riphttp.WithPolicy(t.Context(), w.traced()), t, "GET", memhttp.URL))
		if story := w.story(); !strings.Contains(story, "attempts=1") {
			t.Errorf("with a Trace:\n%s\nwant attempts=1", story)
		}
	})
}

// It is the call that nobody told of its attempts, and must not be taken for the loop within one.
func TestLoopInABaseIsNotTheRequestsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch()
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			riprap.Do(r.Context(), w.traced(), steps())
			time.Sleep(time.Second)
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		client := w.Transport(&riphttp.Transport{Base: base})
		for _, policy := range []*riprap.Policy{even(), w.traced()} {
			w.spans.Reset()
			fetch(client, newRequest(riphttp.WithPolicy(t.Context(), policy), t, "GET", memhttp.URL))
			s := w.span(t, "call GET")
			if got := s.EndTime.Sub(s.StartTime); got != 2*time.Second {
				t.Errorf("the call took %v, want the 2s of its request:\n%s", got, w.story())
			}
		}
	})
}

func TestCallForARetryIsNotTriedAgainAndSaysSo(t *testing.T) {
	serve(t, statuses(503), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		client := w.Transport(rt)
		h := (&deadline.Middleware{}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			fetch(client, newRequest(r.Context(), t, "GET", memhttp.URL))
		}))
		req := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		req.Header.Set(deadline.AttemptHeader, "2")
		h.ServeHTTP(httptest.NewRecorder(), req)
		if story := w.story(); !strings.Contains(story, "attempts=1 error.type=503 http.request.method=GET reason=retried") {
			t.Errorf("no end after one attempt, for the reason retried, in\n%s", story)
		}
	})
}

func TestRequestsThatNetHTTPRepeatsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := memhttp.Play(func(n int, p *memhttp.Peer) {
			if p.ReadRequest() != nil {
				p.Say("HTTP/1.1 204 No Content\r\n\r\n")
				p.ReadRequest() // the second request of the first connection, which is closed then
			}
		})
		w := newWatch()
		rt := &riphttp.Transport{Base: service.Transport()}
		client := w.Transport(rt)
		fetch(client, newRequest(t.Context(), t, "GET", memhttp.URL))
		w.spans.Reset()
		fetch(client, newRequest(t.Context(), t, "GET", memhttp.URL))
		if got, want := tags(w.span(t, "call GET").Attributes), " attempts=1 http.request.method=GET sends=2 service=http://memory.test"; got != want {
			t.Errorf("the call has %s, want %s", got, want)
		}
		rt.CloseIdleConnections()
		service.Stop()
	})
}

func TestRedirectsCountAsResends(t *testing.T) {
	served := 0
	serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch served++; served {
		case 1:
			w.WriteHeader(503)
		case 2, 3:
			http.Redirect(w, r, "/there", http.StatusFound)
		}
	}, func(t *testing.T, w *watch, rt *riphttp.Transport) {
		fetch(w.Transport(rt), newRequest(t.Context(), t, "GET", memhttp.URL))
		story := w.story()
		if strings.Count(story, "call GET") != 3 {
			t.Errorf("spans:\n%s\nwant a call for each of three hops", story)
		}
		for i := range 3 {
			if want := fmt.Sprintf("http.request.resend_count=%d", i+1); strings.Count(story, want) != 1 {
				t.Errorf("spans:\n%s\nwant %s once", story, want)
			}
		}
	})
}

func TestBodyOfAnUpgradeCanBeWritten(t *testing.T) {
	serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "echo")
		w.WriteHeader(http.StatusSwitchingProtocols)
		c, buffered, _ := http.NewResponseController(w).Hijack()
		line, _ := buffered.ReadString('\n')
		io.WriteString(c, line)
		c.Close()
	}, func(t *testing.T, w *watch, rt *riphttp.Transport) {
		req := newRequest(t.Context(), t, "GET", memhttp.URL, "Connection", "Upgrade", "Upgrade", "echo")
		resp, err := w.Transport(rt).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(resp.Body.(io.Writer), "hello\n")
		if echo, err := io.ReadAll(resp.Body); string(echo) != "hello\n" {
			t.Errorf("echo: %q, %v, want hello", echo, err)
		}
		resp.Body.Close()
		w.wantNoneOpen(t)
	})
}

func TestTransportThatIsWrappedKeepsItsTraceAndPolicy(t *testing.T) {
	serve(t, statuses(503), func(t *testing.T, w *watch, rt *riphttp.Transport) {
		var done []riprap.Event
		mine := rt.Policy
		mine.MaxAttempts = 2
		mine.Trace = &riprap.Trace{Done: func(_ context.Context, e riprap.Event) { done = append(done, e) }}
		trace := mine.Trace
		fetch(w.Transport(rt), newRequest(t.Context(), t, "GET", memhttp.URL))
		if len(done) != 1 || done[0].Attempts != 2 || !errors.Is(done[0].Reason, riprap.ErrAttempts) {
			t.Errorf("the Trace of the policy was told %v, want two attempts and no more", done)
		}
		if mine.Trace != trace {
			t.Error("the caller's own Policy was changed")
		}
	})
}

// The RoundTripper of Transport is a wrapper, through which http.Client must find what it closes.
func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := false
	base := struct {
		http.RoundTripper
		closer
	}{http.DefaultTransport, closer{&closed}}
	client := &http.Client{Transport: newWatch().Transport(&riphttp.Transport{Base: base})}
	client.CloseIdleConnections()
	if !closed {
		t.Error("CloseIdleConnections of the client did not reach Base")
	}
	client.Transport = newWatch().Transport(&riphttp.Transport{Base: roundTripper(nil)})
	client.CloseIdleConnections() // of a Base that has none
}

type closer struct{ closed *bool }

func (c closer) CloseIdleConnections() { *c.closed = true }

func TestTransportWithoutABaseIsTheZeroOneAndNoSecondLoop(t *testing.T) {
	for _, bound := range []time.Duration{0, -1} {
		w := newWatch()
		policy := &riprap.Policy{MaxAttempts: 3, Backoff: riprap.Backoff{Base: 1}, Timeout: bound, AttemptTimeout: bound}
		ctx := riphttp.WithPolicy(t.Context(), policy)
		_, err := w.Transport(&riphttp.Transport{ReadTimeout: bound}).RoundTrip(newRequest(ctx, t, "GET", "http://127.0.0.1:1/"))
		if gaveUp, ok := errors.AsType[*riprap.Error](err); !ok || gaveUp.Attempts != 3 {
			t.Errorf("RoundTrip to a closed port, bounds %v: %v, want an *Error after 3 attempts", bound, err)
		}
		if story := w.story(); strings.Count(story, "\n  GET") != 3 || strings.Count(story, "error.type=*net.OpError") != 4 {
			t.Errorf("bounds %v: spans:\n%s\nwant three attempts and the call to fail with a *net.OpError", bound, story)
		}
	}
}

func TestRequestThatIsNoneIsRefusedAsEver(t *testing.T) {
	w := newWatch()
	rt := w.Transport(nil)
	whole := newRequest(t.Context(), t, "GET", memhttp.URL)
	for _, req := range []*http.Request{{Method: "GET", Header: http.Header{}}, {Method: "GET", URL: whole.URL}} {
		if _, err := rt.RoundTrip(req); err == nil {
			t.Errorf("RoundTrip of a request with URL %v and header %v: no error", req.URL, req.Header)
		}
	}
	w.wantStory(t, "")
}
