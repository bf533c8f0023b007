package riphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

// values returns what the attempts that a stub saw carried in a field, "-" for none. More than one value is a failure.
func (s *stub) values(t testing.TB, field string) (all []string) {
	t.Helper()
	for i, sent := range s.sent {
		switch v := sent.header[field]; len(v) {
		case 0:
			all = append(all, "-")
		case 1:
			all = append(all, v[0])
		default:
			t.Errorf("attempt %d: %s has the values %q, want one", i+1, field, v)
		}
	}
	return all
}

// within gives a request a deadline, and returns what frees it.
func within(req *http.Request, d time.Duration) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(req.Context(), d)
	return req.WithContext(ctx), cancel
}

func TestInternalServiceIsToldOfEachAttempt(t *testing.T) {
	for _, whose := range []string{"policy's timeout", "caller's deadline"} {
		inBubble(t, whose, func(t *testing.T) {
			policy := even()
			policy.Backoff.Base, policy.AttemptTimeout = 5*time.Millisecond, 100*time.Millisecond
			req := newRequest(t, "PUT", serviceURL, "content")
			if whose == "caller's deadline" {
				own, cancel := within(req, 250*time.Millisecond)
				defer cancel()
				req = own
			} else {
				policy.Timeout = 250 * time.Millisecond
			}
			service := script(hang)
			client := &riphttp.Transport{Base: service, Policy: policy, Internal: always(true)}
			if _, err := roundTrip(t, client, req); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("err = %v, want a timeout", err)
			}
			// 100, 100 and what two waits leave of 250, each less a margin of five.
			if got, want := service.values(t, deadline.TimeoutHeader), []string{"95", "95", "35"}; !slices.Equal(got, want) {
				t.Errorf("%s by attempt: %q, want %q", deadline.TimeoutHeader, got, want)
			}
			if got, want := service.values(t, deadline.AttemptHeader), []string{"-", "2", "3"}; !slices.Equal(got, want) {
				t.Errorf("%s by attempt: %q, want %q", deadline.AttemptHeader, got, want)
			}
			ids := service.values(t, deadline.CorrelationHeader)
			if len(ids) != 3 || ids[0] == "-" || ids[1] != ids[0] || ids[2] != ids[0] {
				t.Errorf("%s by attempt: %q, want the same one on all", deadline.CorrelationHeader, ids)
			}
			for i, stamp := range service.values(t, deadline.DeadlineHeader) {
				sent := service.sent[i]
				left, _ := strconv.Atoi(sent.header.Get(deadline.TimeoutHeader))
				want := sent.begun.Add(time.Duration(left) * time.Millisecond).UnixMilli()
				if stamp != strconv.FormatInt(want, 10) {
					t.Errorf("attempt %d: %s: %s, want %d, when what it was told is over", i+1, deadline.DeadlineHeader, stamp, want)
				}
			}
			for i, sent := range service.sent {
				if sent.body != "content" {
					t.Errorf("attempt %d: body %q, want all of it", i+1, sent.body)
				}
			}
		})
	}
}

// Whatever the bounds are, a service is told of some time and never of more than its caller has.
func FuzzTimeThatIsTold(f *testing.F) {
	f.Add(int64(250), int64(100), int64(5), int64(100))
	f.Add(int64(30000), int64(-1), int64(500), int64(1))
	f.Add(int64(-1), int64(6), int64(1), int64(7))
	f.Add(int64(16), int64(16), int64(1), int64(0))
	f.Add(int64(1<<40), int64(1<<40), int64(1), int64(1<<20))
	f.Fuzz(func(t *testing.T, total, attempt, wait, took int64) {
		ms := func(n int64) time.Duration { return time.Duration(n%1e6) * time.Millisecond / 3 }
		synctest.Test(t, func(t *testing.T) {
			policy := even()
			policy.Timeout, policy.AttemptTimeout, policy.Backoff.Base = ms(total), ms(attempt), max(ms(wait), time.Nanosecond)
			start := time.Now()
			end := start.Add(policy.Timeout)
			if policy.Timeout == 0 {
				end = start.Add(30 * time.Second)
			}
			client := &riphttp.Transport{Policy: policy, Internal: always(true)}
			client.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
				bound, bounded := r.Context().Deadline()
				left, err := strconv.ParseInt(r.Header.Get(deadline.TimeoutHeader), 10, 64)
				told := time.Duration(left) * time.Millisecond
				switch {
				case !bounded:
					if r.Header.Get(deadline.TimeoutHeader) != "" {
						t.Errorf("told of %d ms without a bound", left)
					}
				case err != nil || left <= 0:
					t.Errorf("%s: %q, want a number above zero", deadline.TimeoutHeader, r.Header.Get(deadline.TimeoutHeader))
				case told > time.Until(bound)-5*time.Millisecond:
					t.Errorf("told of %v with %v left for the attempt, want a margin", told, time.Until(bound))
				case policy.Timeout >= 0 && told > time.Until(end)-5*time.Millisecond:
					t.Errorf("told of %v with %v left for the call, want a margin", told, time.Until(end))
				}
				select {
				case <-time.After(max(ms(took), 0)):
					return nil, errWire
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			})
			client.RoundTrip(newRequest(t, "GET", serviceURL, nil))
		})
	})
}

func TestNothingIsSentWithLessThanTheLeastUsefulTimeLeft(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*riprap.Policy)
		left   time.Duration
		told   string // "" if nothing is sent
	}{
		{"ten milliseconds and the margin", func(*riprap.Policy) {}, 15 * time.Millisecond, "10"},
		{"a little less", func(*riprap.Policy) {}, 15*time.Millisecond - 1, ""},
		{"more is needed", func(p *riprap.Policy) { p.MinAttempt = 50 * time.Millisecond }, 54 * time.Millisecond, ""},
		{"and is there", func(p *riprap.Policy) { p.MinAttempt = 50 * time.Millisecond }, 55 * time.Millisecond, "50"},
		{"any time will do", func(p *riprap.Policy) { p.MinAttempt = -1 }, 6 * time.Millisecond, "1"},
		{"but not none", func(p *riprap.Policy) { p.MinAttempt = -1 }, 6*time.Millisecond - 1, ""},
		{"a bound that the margin eats up", func(p *riprap.Policy) { p.AttemptTimeout = 5 * time.Millisecond }, time.Second, ""},
		{"without bounds of ours", func(p *riprap.Policy) { p.Timeout, p.AttemptTimeout = -1, -1 }, 14 * time.Millisecond, ""},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			policy := even()
			policy.Budget = new(riprap.Budget)
			test.change(policy)
			start := time.Now()
			service := script(200)
			body := track("content")
			req, cancel := within(sized(t, "PUT", body, 7), test.left)
			defer cancel()
			_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy, Internal: always(true), MaxReplay: -1}, req)
			var want []string
			if test.told != "" {
				want = []string{test.told}
			} else if !errors.Is(err, riprap.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("err = %v, want ErrDeadline", err)
			}
			if got := service.values(t, deadline.TimeoutHeader); !slices.Equal(got, want) {
				t.Errorf("told %q, want %q", got, want)
			}
			if n := body.closed.Load(); n != 1 {
				t.Errorf("the request's body was closed %d times, want once", n)
			}
			if took := time.Since(start); took != 0 {
				t.Errorf("it took %v, want no time", took)
			}
		})
	}
}

func TestNoWaitTowardsAnAttemptThatCouldNotBeSent(t *testing.T) {
	for _, test := range []struct {
		left  time.Duration // after the wait
		least time.Duration // MinAttempt
		calls int
		took  time.Duration
		spent int
	}{
		{15*time.Millisecond - 1, 0, 1, 0, 0},
		{15 * time.Millisecond, 0, 2, time.Second, 1},
		{6*time.Millisecond - 1, -1, 1, 0, 0},
		{6 * time.Millisecond, -1, 2, time.Second, 1},
	} {
		inBubble(t, test.left.String(), func(t *testing.T) {
			policy := even()
			policy.MaxAttempts, policy.MinAttempt, policy.Budget = 2, test.least, new(riprap.Budget)
			service := script(503)
			start := time.Now()
			before := policy.Budget.Left(start)
			req, cancel := within(newRequest(t, "GET", serviceURL, nil), time.Second+test.left)
			defer cancel()
			wantAnswer(t, &riphttp.Transport{Base: service, Policy: policy, Internal: always(true)}, req, 503, "Service Unavailable")
			wantCalls(t, service, test.calls)
			if took := time.Since(start); took != test.took {
				t.Errorf("it took %v, want %v", took, test.took)
			}
			if got := before - policy.Budget.Left(start); got != test.spent {
				t.Errorf("%d retries are spent, want %d", got, test.spent)
			}
		})
	}
}

// Between the decision to send and the sending there may be a hook.
func TestNothingIsSentAfterAHookThatTookTheTime(t *testing.T) {
	for _, test := range []struct {
		hook   time.Duration
		reason error
	}{
		{999 * time.Millisecond, riprap.ErrDeadline},
		{time.Second + time.Millisecond, context.DeadlineExceeded},
	} {
		inBubble(t, test.hook.String(), func(t *testing.T) {
			var log events
			policy := even()
			policy.Trace = log.trace()
			policy.Trace.Attempt = func(context.Context, riprap.Event) context.Context { time.Sleep(test.hook); return nil }
			service, body := script(200), track("content")
			req, cancel := within(sized(t, "PUT", body, 7), time.Second)
			defer cancel()
			client := &riphttp.Transport{Base: service, Policy: policy, Internal: always(true), MaxReplay: -1}
			if _, err := roundTrip(t, client, req); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("err = %v, want a timeout", err)
			}
			wantCalls(t, service, 0)
			if got := log.ended(t).Reason; got != test.reason {
				t.Errorf("Done: reason %v, want %v", got, test.reason)
			}
			if n := body.closed.Load(); n != 1 {
				t.Errorf("the request's body was closed %d times, want once", n)
			}
		})
	}
}

func TestHookThatShortensAnAttemptShortensWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := even()
		policy.Trace = &riprap.Trace{Attempt: func(ctx context.Context, _ riprap.Event) context.Context {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}}
		service := script(200)
		wantAnswer(t, &riphttp.Transport{Base: service, Policy: policy, Internal: always(true)}, newRequest(t, "GET", serviceURL, nil), 200, "OK")
		if got, want := service.values(t, deadline.TimeoutHeader), []string{"95"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

func TestNoTimeIsToldWhereNothingBounds(t *testing.T) {
	for _, readTimeout := range []time.Duration{-1, 0} {
		inBubble(t, fmt.Sprint("ReadTimeout ", readTimeout), func(t *testing.T) {
			service := script(503, 200)
			policy := even()
			policy.Timeout, policy.AttemptTimeout = -1, -1
			req := newRequest(t, "GET", serviceURL, nil, deadline.TimeoutHeader, "1", deadline.DeadlineHeader, "1", deadline.AttemptHeader, "9")
			client := &riphttp.Transport{Base: service, Policy: policy, Internal: always(true), ReadTimeout: readTimeout}
			wantAnswer(t, client, req, 200, "OK")
			for field, want := range map[string][]string{
				deadline.TimeoutHeader: {"-", "-"}, deadline.DeadlineHeader: {"-", "-"}, deadline.AttemptHeader: {"-", "2"},
			} {
				if got := service.values(t, field); !slices.Equal(got, want) {
					t.Errorf("%s by attempt: %q, want %q", field, got, want)
				}
			}
		})
	}
}

func TestStreamOfAnInternalServiceOutlivesTheAttemptsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memhttp.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range 10 {
				io.WriteString(w, "line\n")
				http.NewResponseController(w).Flush()
				time.Sleep(time.Minute)
			}
		}))
		base := server.Transport()
		client := &riphttp.Transport{Base: base, Internal: always(true), Adaptive: true, ReadTimeout: time.Hour}
		_, body, err := result(t, client, newRequest(t, "GET", memhttp.URL, nil))
		if len(body) != 50 || err != nil {
			t.Errorf("the stream gave %d bytes, %v, want all 50", len(body), err)
		}
		base.CloseIdleConnections()
		server.Stop()
	})
}

// What the documentation says of long answers.
func TestLongAnswerNeedsAnAttemptThatMayTakeAsLong(t *testing.T) {
	long := &riprap.Policy{Timeout: time.Hour, AttemptTimeout: time.Hour}
	for name, tt := range map[string]struct {
		adaptive bool
		own      *riprap.Policy
		whole    bool
	}{
		"by the bound of every attempt":               {false, nil, false},
		"by a policy of its own":                      {false, long, true},
		"by the ceiling of the bound that is learned": {true, nil, false},
		"by a policy of its own with such a ceiling":  {true, long, true},
	} {
		inBubble(t, name, func(t *testing.T) {
			server := memhttp.Serve(deadline.Middleware{Limit: time.Hour}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for range 10 {
					io.WriteString(w, "line\n")
					if r.URL.Path != "/long" {
						return
					}
					http.NewResponseController(w).Flush()
					select {
					case <-time.After(5 * time.Second):
					case <-r.Context().Done():
						panic(http.ErrAbortHandler)
					}
				}
			})))
			base := server.Transport()
			client := &riphttp.Transport{Base: base, Internal: always(true), Adaptive: tt.adaptive}
			for range 200 {
				result(t, client, newRequest(t, "GET", memhttp.URL, nil))
			}
			time.Sleep(time.Second)
			req := newRequest(t, "GET", memhttp.URL+"/long", nil)
			_, body, err := result(t, client, req.WithContext(riphttp.WithPolicy(req.Context(), tt.own)))
			if whole := len(body) == 50 && err == nil; whole != tt.whole || !whole && err == nil {
				t.Errorf("the answer of 50 s gave %d of 50 bytes, %v, want all of them: %v", len(body), err, tt.whole)
			}
			base.CloseIdleConnections()
			server.Stop()
		})
	}
}

func TestInternalServiceKnowsItsTimeOverTheWire(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		inBubble(t, protocol, func(t *testing.T) {
			attempts, ids := []int{}, map[string]bool{}
			server := memhttp.Serve(deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				attempts = append(attempts, deadline.Attempt(r.Context()))
				ids[deadline.CorrelationID(r.Context())] = true
				if left := deadline.Left(r.Context()); left != 1960*time.Millisecond || r.Proto != protocol {
					t.Errorf("%s: the handler has %v, want two seconds less two percent", r.Proto, left)
				}
				if len(attempts) < 3 {
					w.WriteHeader(503)
				}
			})))
			base := server.Transport()
			if protocol == "HTTP/2.0" {
				base = server.HTTP2()
			}
			policy := even()
			policy.AttemptTimeout = 2 * time.Second
			client := &riphttp.Transport{Base: base, Internal: always(true), Policy: policy}
			wantAnswer(t, client, newRequest(t, "GET", memhttp.URL, nil), 200, "")
			if !slices.Equal(attempts, []int{0, 2, 3}) || len(ids) != 1 || ids[""] {
				t.Errorf("attempts %v with the ids %v, want 0, 2, 3 with one id", attempts, ids)
			}
			base.CloseIdleConnections()
			server.Stop()
		})
	}
}
