package riphttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

func TestDefaultBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		service := script(hang)
		_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: even()}, newRequest(t, "GET", serviceURL, nil))
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("a service that hangs cost %v, want 30s", took)
		}
		wantCalls(t, service, 3)
		for i, got := range service.sent {
			if took := got.ended.Sub(got.begun); took != min(10*time.Second, 30*time.Second-got.begun.Sub(start)) {
				t.Errorf("attempt %d took %v, want ten seconds or what is left of 30", i+1, took)
			}
		}
		if !errors.Is(err, riprap.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want ErrDeadline", err)
		}
		if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
			t.Errorf("err = %v, want a timeout to net/http", err)
		}
	})
}

func TestBoundsThatAreOffDoNotBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(func(*http.Request) (*http.Response, error) {
			time.Sleep(100 * time.Hour)
			return response(200, "late"), nil
		})
		client := &riphttp.Transport{Base: service, Policy: boundless}
		wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 200, "late")
		wantCalls(t, service, 1)
	})
}

func TestWaitThatDoesNotFitBeforeTheDeadlineIsNotBegun(t *testing.T) {
	for _, test := range []struct {
		name    string
		step    any
		change  func(*riprap.Policy)
		elapsed time.Duration
		calls   int
	}{
		{"asked", reply(503, "db down", "Retry-After", "10"), func(*riprap.Policy) {}, 0, 1},
		{"own backoff", reply(503, "db down"), func(p *riprap.Policy) { p.Backoff.Base = 3 * time.Second }, 0, 1},
		{"own backoff, no response", errWire, func(p *riprap.Policy) { p.Backoff.Base = 3 * time.Second }, 0, 1},
		{"no time for the attempt behind it", reply(503, "db down"), func(p *riprap.Policy) {
			p.Backoff.Base, p.MinAttempt = 1900*time.Millisecond, 300*time.Millisecond
		}, 0, 1},
		{"ten milliseconds are the least", reply(503, "db down"), func(p *riprap.Policy) {
			p.Backoff.Base = 1991 * time.Millisecond
		}, 0, 1},
		{"it fits", reply(503, "db down"), func(p *riprap.Policy) { p.Backoff.Base = 1990 * time.Millisecond }, 1990 * time.Millisecond, 2},
	} {
		for _, whose := range []string{"caller's deadline", "policy's timeout"} {
			inBubble(t, test.name+", "+whose, func(t *testing.T) {
				start := time.Now()
				service := script(test.step)
				policy := even()
				test.change(policy)
				req := newRequest(t, "GET", serviceURL, nil)
				if whose == "policy's timeout" {
					policy.Timeout = 2 * time.Second
				} else {
					ctx, cancel := context.WithTimeout(req.Context(), 2*time.Second)
					defer cancel()
					req = req.WithContext(ctx)
				}
				code, body, err := result(t, &riphttp.Transport{Base: service, Policy: policy}, req)
				if test.step == errWire {
					if !errors.Is(err, errWire) || !errors.Is(err, riprap.ErrDeadline) {
						t.Errorf("err = %v, want both %v and ErrDeadline", err, errWire)
					}
				} else if code != 503 || body != "db down" || err != nil {
					t.Errorf("got %d %q, %v, want the 503 whole", code, body, err)
				}
				wantCalls(t, service, test.calls)
				if took := time.Since(start); took != test.elapsed {
					t.Errorf("it took %v, want %v", took, test.elapsed)
				}
			})
		}
	}
}

func TestCancelDuringAWaitReturnsAtOnceWithBothErrors(t *testing.T) {
	errLeft := errors.New("the user left")
	cancels := map[string]func(*http.Request) (*http.Request, error){
		"cancel": func(req *http.Request) (*http.Request, error) {
			ctx, cancel := context.WithCancel(req.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			return req.WithContext(ctx), nil
		},
		"cancel with a cause": func(req *http.Request) (*http.Request, error) {
			ctx, cancel := context.WithCancelCause(req.Context())
			time.AfterFunc(50*time.Millisecond, func() { cancel(errLeft) })
			return req.WithContext(ctx), errLeft
		},
		"legacy Cancel": func(req *http.Request) (*http.Request, error) {
			cancel := make(chan struct{})
			time.AfterFunc(50*time.Millisecond, func() { close(cancel) })
			req.Cancel = cancel //lint:ignore SA1019 http.Client still uses it
			return req, nil
		},
	}
	for name, cancel := range cancels {
		inBubble(t, name, func(t *testing.T) {
			const calls = 1000
			start := time.Now()
			service := script(reply(503, "busy", "Retry-After", "3600"))
			budget := &riprap.Budget{Reserve: calls}
			left := budget.Left(start)
			client := &riphttp.Transport{Base: service, Policy: &riprap.Policy{Timeout: -1, MaxWait: -1, Budget: budget}}
			results := make(chan error)
			var cause error
			for range calls {
				var req *http.Request
				req, cause = cancel(newRequest(t, "GET", serviceURL, nil))
				go func() {
					_, err := client.RoundTrip(req)
					results <- err
				}()
			}
			for range calls {
				err := <-results
				if !errors.Is(err, context.Canceled) || statusOf(err) != 503 || cause != nil && !errors.Is(err, cause) {
					t.Fatalf("err = %v, want a cancellation, its cause %v and the 503", err, cause)
				}
			}
			if took := time.Since(start); took != 50*time.Millisecond {
				t.Errorf("it took %v, want to end with the cancellation after 50ms", took)
			}
			wantCalls(t, service, calls)
			if got := budget.Left(time.Now()); got != left {
				t.Errorf("retries left: %d, want all %d back", got, left)
			}
		})
	}
}

func TestCancelDuringAnAttemptIsNotRetried(t *testing.T) {
	for _, how := range []string{"context", "legacy"} {
		for _, method := range []string{"GET", "POST"} {
			inBubble(t, how+" "+method, func(t *testing.T) {
				server := memhttp.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }))
				req := newRequest(t, method, memhttp.URL, "body")
				if how == "context" {
					ctx, cancel := context.WithCancel(req.Context())
					time.AfterFunc(time.Second, cancel)
					req = req.WithContext(ctx)
				} else {
					cancel := make(chan struct{})
					req.Cancel = cancel //lint:ignore SA1019 http.Client still uses it
					time.AfterFunc(time.Second, func() { close(cancel) })
				}
				start := time.Now()
				client := &riphttp.Transport{Base: server.Transport(), Policy: even()}
				_, err := roundTrip(t, client, req)
				if took := time.Since(start); !errors.Is(err, context.Canceled) || took != time.Second {
					t.Errorf("err = %v after %v, want a cancellation after 1s", err, took)
				}
				if got, want := errors.Is(err, riphttp.ErrOutcomeUnknown), method == "POST"; got != want {
					t.Errorf("ErrOutcomeUnknown in %v: %v, want %v", err, got, want)
				}
				client.CloseIdleConnections()
				server.Stop()
				if n := server.Opened(); n != 1 {
					t.Errorf("%d connections, want one", n)
				}
			})
		}
	}
}

func TestCancelledBeforehandSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(200)
		errLeft := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errLeft)
		var log events
		req := newRequest(t, "GET", serviceURL, nil).WithContext(ctx)
		_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: traced(even(), &log)}, req)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errLeft) {
			t.Errorf("err = %v, want a cancellation and its cause", err)
		}
		wantCalls(t, service, 0)
		if e := log.ended(t); e.Attempts != 0 {
			t.Errorf("Done: %d attempts, want none", e.Attempts)
		}
	})
}

// Whose time ran out decides what follows, and is plain from the error.
func TestWhoTimedOutStaysClear(t *testing.T) {
	for _, test := range []struct {
		name    string
		callers time.Duration
		attempt time.Duration
		total   time.Duration
		took    time.Duration
		calls   int
		reason  error
	}{
		{"the attempts", 0, time.Second, -1, 7 * time.Second, 4, riprap.ErrAttempts},
		{"the whole call", 0, time.Second, 2500 * time.Millisecond, 2500 * time.Millisecond, 2, riprap.ErrDeadline},
		{"the whole call within an attempt", 0, -1, time.Second, time.Second, 1, riprap.ErrDeadline},
		{"the caller within an attempt", time.Second, 10 * time.Second, -1, time.Second, 1, context.DeadlineExceeded},
		{"the caller, as late as the attempt", time.Second, time.Second, -1, time.Second, 1, context.DeadlineExceeded},
		{"the caller in the second attempt", 2500 * time.Millisecond, time.Second, -1, 2500 * time.Millisecond, 2, context.DeadlineExceeded},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			start := time.Now()
			service := script(hang)
			policy := even()
			policy.AttemptTimeout, policy.Timeout = test.attempt, test.total
			req := newRequest(t, "GET", serviceURL, nil)
			if test.callers > 0 {
				ctx, cancel := context.WithTimeout(req.Context(), test.callers)
				defer cancel()
				req = req.WithContext(ctx)
			}
			_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy}, req)
			gaveUp, ok := errors.AsType[*riprap.Error](err)
			if !ok || gaveUp.Reason != test.reason || !gaveUp.Timeout() || !errors.Is(gaveUp.Err, context.DeadlineExceeded) {
				t.Errorf("err = %v, want reason %v and a timeout as failure", err, test.reason)
			}
			if callers := test.reason == context.DeadlineExceeded; ok && (gaveUp.Err == context.DeadlineExceeded) != callers {
				t.Errorf("the failure is %q, want it to speak of the attempt's time only if that ran out", gaveUp.Err)
			}
			if took := time.Since(start); took != test.took {
				t.Errorf("it took %v, want %v", took, test.took)
			}
			wantCalls(t, service, test.calls)
		})
	}
}

func TestTimeoutOfTheClientAboveEndsAllAttempts(t *testing.T) {
	for _, test := range []struct {
		name  string
		step  any
		calls int
	}{{"hanging attempts", hang, 2}, {"waits", 503, 2}} {
		inBubble(t, test.name, func(t *testing.T) {
			start := time.Now()
			service := script(test.step)
			policy := even()
			policy.AttemptTimeout = time.Second
			if test.calls == 2 && test.step == 503 {
				policy.Backoff.Base = 1900 * time.Millisecond
			}
			client := &http.Client{Transport: &riphttp.Transport{Base: service, Policy: policy}, Timeout: 2500 * time.Millisecond}
			resp, err := client.Get(serviceURL)
			if test.step == 503 {
				if err != nil || resp.StatusCode != 503 {
					t.Errorf("Get: %v, want the 503, for which another wait has no room", err)
				} else {
					resp.Body.Close()
				}
				if took := time.Since(start); took != 1900*time.Millisecond {
					t.Errorf("it took %v, want 1.9s", took)
				}
			} else {
				if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
					t.Errorf("Get: %v, want a timeout", err)
				}
				if took := time.Since(start); took != 2500*time.Millisecond {
					t.Errorf("it took %v, want the client's 2.5s", took)
				}
			}
			wantCalls(t, service, test.calls)
		})
	}
}

// http.Client closes Cancel when its Timeout has passed, perhaps before the context says so.
func TestCancelChannelAtTheDeadlineIsATimeout(t *testing.T) {
	for _, test := range []struct {
		left time.Duration
		want error
	}{{0, context.DeadlineExceeded}, {time.Second, context.Canceled}} {
		inBubble(t, test.left.String(), func(t *testing.T) {
			ctx := unhurried{t.Context(), time.Now().Add(test.left)}
			req := newRequest(t, "GET", serviceURL, nil).WithContext(ctx)
			cancel := make(chan struct{})
			close(cancel)
			req.Cancel = cancel //lint:ignore SA1019 http.Client still uses it
			_, err := roundTrip(t, &riphttp.Transport{Base: script(200)}, req)
			if gaveUp, ok := errors.AsType[*riprap.Error](err); !ok || gaveUp.Reason != test.want {
				t.Errorf("err = %v, want reason %v", err, test.want)
			}
		})
	}
}

// An unhurried context has a deadline and does not end with it.
type unhurried struct {
	context.Context
	deadline time.Time
}

func (u unhurried) Deadline() (time.Time, bool) { return u.deadline, true }

// A hook may be slow, and a machine may sleep: then the deadline passes while the call waits.
func TestNoRequestIsSentAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(errWire)
		policy := even()
		policy.Timeout = time.Minute
		policy.Trace = &riprap.Trace{Retry: func(context.Context, riprap.Event) { time.Sleep(time.Hour) }}
		_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy}, newRequest(t, "GET", serviceURL, nil))
		wantCalls(t, service, 1)
		if !errors.Is(err, riprap.ErrDeadline) || !errors.Is(err, errWire) {
			t.Errorf("err = %v, want ErrDeadline and %v", err, errWire)
		}
	})
}

// A slowReader takes its time before it gives anything.
type slowReader struct {
	io.Reader
	delay time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	time.Sleep(r.delay)
	r.delay = 0
	return r.Reader.Read(p)
}

func TestTimeoutHoldsWhateverElseIsSlow(t *testing.T) {
	const slow = 20 * time.Second
	body := func() io.ReadCloser { return io.NopCloser(&slowReader{stream("content"), slow}) }
	for _, test := range []struct {
		name  string
		step  any
		setUp func(*http.Request, *riprap.Policy)
	}{
		{"the body that is read first", hang, func(req *http.Request, _ *riprap.Policy) { req.Body = body() }},
		{"the Attempt hook", hang, func(_ *http.Request, p *riprap.Policy) {
			p.Trace = &riprap.Trace{Attempt: func(context.Context, riprap.Event) context.Context {
				time.Sleep(slow)
				return nil
			}}
		}},
		{"GetBody", errWire, func(req *http.Request, _ *riprap.Policy) {
			req.GetBody = func() (io.ReadCloser, error) {
				time.Sleep(slow)
				return io.NopCloser(stream("content")), nil
			}
		}},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			start := time.Now()
			service := script(test.step)
			policy := &riprap.Policy{Timeout: 30 * time.Second, AttemptTimeout: -1, MaxAttempts: -1}
			req := sized(t, "PUT", io.NopCloser(stream("content")), int64(len("content")))
			test.setUp(req, policy)
			_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy}, req)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("err = %v, want DeadlineExceeded", err)
			}
			// GetBody itself cannot be interrupted.
			if got := time.Since(start); got != policy.Timeout && test.name != "GetBody" {
				t.Errorf("ended after %v, want %v", got, policy.Timeout)
			}
			for _, attempt := range service.sent {
				if sent := attempt.begun.Sub(start); sent >= policy.Timeout {
					t.Errorf("a request was sent after %v, want none after %v", sent, policy.Timeout)
				}
			}
		})
	}
}
