package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestARunGoesOnAfterItsClientLeft(t *testing.T) {
	for _, attached := range []bool{false, true} {
		t.Run(fmt.Sprint("attached ", attached), func(t *testing.T) {
			type key struct{}
			synctest.Test(t, func(t *testing.T) {
				s := serveInside(t, idempotency.Middleware{Attached: attached}, func(w http.ResponseWriter, r *http.Request) {
					if r.Context().Value(key{}) != "value" {
						t.Errorf("the context has lost its values")
					}
					select {
					case <-r.Context().Done():
						io.WriteString(w, "gave up")
					case <-time.After(10 * time.Second):
						io.WriteString(w, "went on")
					}
				}, func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "value")))
					})
				})
				defer s.stop()
				ctx, leave := context.WithTimeout(t.Context(), time.Second)
				defer leave()
				s.send(s.request("POST", "/charges", "k", "a").WithContext(ctx))
				time.Sleep(time.Minute)
				want := "went on"
				if attached {
					want = "gave up"
				}
				s.wantAnswer(s.post("k", "a"), 200, want, true)
				s.wantRuns(1)
			})
		})
	}
}

func TestARunIsBounded(t *testing.T) {
	for _, test := range []struct {
		maxRun, want time.Duration
	}{
		{0, 5 * time.Minute},
		{time.Second, time.Second},
		{-1, time.Hour},
	} {
		t.Run(test.maxRun.String(), func(t *testing.T) {
			bubble(t, idempotency.Middleware{MaxRun: test.maxRun}, func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-r.Context().Done():
				case <-time.After(time.Hour):
				}
			}, func(s *service) {
				begun := time.Now()
				s.post("k", "a")
				if took := time.Since(begun); took != test.want {
					t.Errorf("the run took %v, want %v", took, test.want)
				}
			})
		})
	}
}

func TestARunThatDoesNotEndHoldsItsKeyNoLongerThanItMayAndALease(t *testing.T) {
	bubble(t, idempotency.Middleware{Lease: time.Minute, MaxRun: 10 * time.Minute}, sleepy(time.Hour), func(s *service) {
		var done sync.WaitGroup
		done.Go(func() { s.wantAnswer(s.post("k", "a"), 200, "slept", false) })
		time.Sleep(10*time.Minute + time.Second)
		s.wantProblem(s.post("k", "a"), 409, "in-flight")
		time.Sleep(time.Minute)
		s.wantProblem(s.post("k", "a"), 409, "outcome-unknown")
		done.Wait()
		s.wantAnswer(s.post("k", "a"), 200, "slept", true) // nobody took it over
	})
}

func TestALeaseIsRenewedWhileTheHandlerWorks(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		t.Run(fmt.Sprint("transactional ", transactional), func(t *testing.T) {
			m := idempotency.Middleware{Lease: 3 * time.Second, Transactional: transactional, Reexecute: true}
			bubble(t, m, sleepy(30*time.Second+time.Millisecond), func(s *service) {
				go s.post("k", "a")
				for range 29 {
					time.Sleep(time.Second)
					s.wantProblem(s.post("k", "a"), 409, "in-flight")
				}
				time.Sleep(2 * time.Second)
				s.wantAnswer(s.post("k", "a"), 200, "slept", true)
				s.wantRuns(1)
				step := "renew"
				if transactional {
					step = "renew in the transaction"
				}
				if n := s.store.took(step); n != 30 {
					t.Errorf("%s: %d times in 30 s with a lease of 3, want 30", step, n)
				}
			})
		})
	}
}

func TestARenewalThatHangsLeavesTimeForAnother(t *testing.T) {
	var renewals atomic.Int64
	store := newBook(func(ctx context.Context, step string) error {
		if step == "renew" && renewals.Add(1) == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}, nil)
	bubble(t, idempotency.Middleware{Store: store, Lease: 3 * time.Second}, sleepy(10*time.Second), func(s *service) {
		go s.post("k", "a")
		for range 19 {
			time.Sleep(500 * time.Millisecond)
			s.wantProblem(s.post("k", "a"), 409, "in-flight")
		}
	})
}

func TestARunWhoseLeaseRanOutIsKeptIfNobodyTookItsKey(t *testing.T) {
	for name, before := range map[string]func(context.Context, string) error{
		"fails": failing("renew", -1, errDown),
		"hangs": hanging("renew"),
	} {
		t.Run("renew "+name, func(t *testing.T) {
			m := idempotency.Middleware{Lease: time.Second, Store: newBook(before, nil)}
			bubble(t, m, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(10 * time.Second)
				if err := r.Context().Err(); err != nil {
					t.Errorf("the run was ended: %v", err)
				}
				created(w, r)
			}, func(s *service) {
				s.wantAnswer(s.post("k", "a"), 201, "did a", false)
				s.wantAnswer(s.post("k", "a"), 201, "did a", true)
				s.wantRuns(1)
			})
		})
	}
}

func TestARunThatLosesItsKeyIsCancelledAndItsAnswerThrownAway(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		t.Run(fmt.Sprint("transactional ", transactional), func(t *testing.T) {
			store := newBook(nil, nil)
			m := idempotency.Middleware{Lease: 3 * time.Second, Store: store, Transactional: transactional}
			bubble(t, m, func(w http.ResponseWriter, r *http.Request) {
				store.effect(r.Context())
				w.Header().Set("Location", "/charges/1")
				w.WriteHeader(http.StatusEarlyHints)
				store.steal()
				<-r.Context().Done()
				if cause := context.Cause(r.Context()); cause != idempotency.ErrFenced {
					t.Errorf("cause = %v, want ErrFenced", cause)
				}
				created(w, r)
			}, func(s *service) {
				begun := time.Now()
				got := s.post("k", "a")
				s.wantProblem(got, 409, "taken-over")
				if got.Header.Get("Location") != "" || got.Header.Get("Retry-After") == "" {
					t.Errorf("header = %v, want a Retry-After and nothing of the handler's", got.Header)
				}
				if took := time.Since(begun); took != time.Second {
					t.Errorf("it took %v, want the second until the lease is renewed", took)
				}
				s.wantKinds(idempotency.Fenced)
				if n := store.took("complete") + store.took("commit") + store.took("release"); n != 0 {
					t.Errorf("steps = %v, want none that ends the claim", store.steps)
				}
				if transactional && store.effects != 0 {
					t.Errorf("%d effects were committed, want none", store.effects)
				}
			})
		})
	}
}

func TestARunThatFindsItsKeyLostAtTheEndThrowsItsAnswerAway(t *testing.T) {
	for _, test := range []struct {
		status        int
		outcome       idempotency.Outcome
		transactional bool
	}{
		{201, 0, false},
		{201, 0, true},
		{429, 0, false},
		{429, 0, true},
		{201, idempotency.Unknown, false},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			store := newBook(nil, nil)
			m := idempotency.Middleware{Store: store, Transactional: test.transactional}
			bubble(t, m, func(w http.ResponseWriter, r *http.Request) {
				store.effect(r.Context())
				idempotency.Declare(r.Context(), test.outcome)
				store.steal()
				w.WriteHeader(test.status)
			}, func(s *service) {
				s.wantProblem(s.post("k", "a"), 409, "taken-over")
				s.wantKinds(idempotency.Fenced)
				if test.transactional && store.effects != 0 {
					t.Errorf("%d effects were committed, want none", store.effects)
				}
			})
		})
	}
}

func TestAStreamThatLosesItsKeyIsBrokenOff(t *testing.T) {
	for _, when := range []string{"in its midst", "at its end"} {
		t.Run(when, func(t *testing.T) {
			store := newBook(nil, nil)
			bubble(t, idempotency.Middleware{Store: store, Lease: 3 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "a")
				w.(http.Flusher).Flush()
				store.steal()
				if when == "in its midst" {
					<-r.Context().Done()
					if _, err := w.Write([]byte("b")); err != idempotency.ErrFenced {
						t.Errorf("Write = %v, want ErrFenced", err)
					}
					if _, err := io.Copy(w, io.LimitReader(strings.NewReader("b"), 1)); err != idempotency.ErrFenced {
						t.Errorf("Copy = %v, want ErrFenced", err)
					}
				}
			}, func(s *service) {
				if got := s.post("k", "a"); got.err == nil {
					t.Errorf("the body looks whole: %q", got.body)
				}
				synctest.Wait()
				s.wantKinds(idempotency.Fenced)
			})
		})
	}
}

func TestALostRunThatPanicsChangesNothing(t *testing.T) {
	store := newBook(nil, nil)
	bubble(t, idempotency.Middleware{Store: store, Lease: 3 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
		store.steal()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}, func(s *service) {
		s.post("k", "a")
		s.wantKinds(idempotency.Fenced)
		if store.took("suspend") != 0 {
			t.Errorf("steps = %v, want no suspend", store.steps)
		}
	})
}
