package idempotency_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestAStoreThatCannotBeAskedRefusesRequests(t *testing.T) {
	for name, test := range map[string]struct {
		before  func(context.Context, string) error
		took    time.Duration
		problem string
	}{
		"down":  {failing("claim", 1, errDown), 0, "store-unavailable"},
		"hangs": {hanging("claim"), 5 * time.Second, "store-unavailable"},
		"full":  {failing("claim", 1, idempotency.ErrFull), 0, "store-full"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{Store: newBook(test.before, nil)}, created, func(s *service) {
				begun := time.Now()
				got := s.post("k", "a")
				s.wantProblem(got, 503, test.problem)
				if got.Header.Get("Retry-After") == "" {
					t.Errorf("the answer has no Retry-After")
				}
				if took := time.Since(begun); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				s.wantRuns(0)
				s.wantKinds(idempotency.Unavailable)
				if name != "hangs" {
					s.wantAnswer(s.post("k", "a"), 201, "did a", false)
				}
			})
		})
	}
}

func TestAClaimSaysWhatTheStoreHasToKnow(t *testing.T) {
	for _, test := range []struct {
		m         idempotency.Middleware
		lease     time.Duration
		retention time.Duration
		reexecute bool
	}{
		{idempotency.Middleware{}, time.Minute, 24 * time.Hour, false},
		{idempotency.Middleware{Lease: time.Second, Retention: time.Hour, Reexecute: true}, time.Second, time.Hour, true},
		{idempotency.Middleware{Transactional: true}, time.Minute, 24 * time.Hour, true},
	} {
		bubble(t, test.m, created, func(s *service) {
			s.post("k", "a")
			c := s.store.claims[0]
			if c.Lease != test.lease || c.Retention != test.retention || c.Reexecute != test.reexecute {
				t.Errorf("claim of %v, %v, reexecute %v, want %v, %v, %v", c.Lease, c.Retention, c.Reexecute, test.lease, test.retention, test.reexecute)
			}
			if n := len(c.Fingerprint); c.Operation != "POST" || n == 0 || n > 64 || c.Owner == (idempotency.Owner{}) {
				t.Errorf("claim of %q with a fingerprint of %d bytes by %v", c.Operation, n, c.Owner)
			}
		})
	}
}

// An owner of a process, or of a request that claims again and again, would let one run pass for another.
func TestEveryClaimHasAnOwnerOfItsOwn(t *testing.T) {
	bubble(t, idempotency.Middleware{Wait: time.Minute}, sleepy(10*time.Second), func(s *service) {
		go s.post("k", "a")
		synctest.Wait()
		s.post("k", "a") // waits
		s.post("another", "a")
		owners := make(map[idempotency.Owner]bool)
		for _, c := range s.store.claims {
			owners[c.Owner] = true
		}
		if n := len(s.store.claims); len(owners) != n || n < 4 {
			t.Errorf("%d owners of %d claims, want one for each, and some of them from the wait", len(owners), n)
		}
	})
}

func TestAClaimThatFailedOnItsWayBackDoesNotHoldTheKey(t *testing.T) {
	store := newBook(nil, failing("claim", 1, errDown))
	bubble(t, idempotency.Middleware{Store: store}, created, func(s *service) {
		s.wantProblem(s.post("k", "a"), 503, "store-unavailable")
		s.wantAnswer(s.post("k", "a"), 201, "did a", false)
		s.wantRuns(1)
	})
}

func TestAVerdictThatIsNoneRefusesTheRequest(t *testing.T) {
	bubble(t, idempotency.Middleware{Store: noVerdict{}}, created, func(s *service) {
		s.wantProblem(s.post("k", "a"), 503, "store-unavailable")
		s.wantRuns(0)
	})
}

type noVerdict struct{ idempotency.Store }

func (noVerdict) Claim(context.Context, idempotency.Claim) (idempotency.Claimed, error) {
	return idempotency.Claimed{}, nil
}
func (noVerdict) Release(context.Context, idempotency.Ticket) error { return nil }

func TestFailOpenRunsWithoutProtectionAndSaysSo(t *testing.T) {
	m := idempotency.Middleware{FailOpen: true, Store: newBook(failing("claim", 2, errDown), nil)}
	bubble(t, m, func(w http.ResponseWriter, r *http.Request) {
		idempotency.Declare(r.Context(), idempotency.NoStore)
		if idempotency.ChildKey(r.Context(), "charge") == "" {
			t.Errorf("there is no child key, with which others could protect at least")
		}
		created(w, r)
	}, func(s *service) {
		for range 3 {
			s.wantAnswer(s.post("k", "a"), 201, "did a", false)
		}
		s.wantRuns(3)
		s.wantKinds(idempotency.Unavailable, idempotency.Unavailable, idempotency.Ran)
		if err := s.events[0].Err; !errors.Is(err, errDown) {
			t.Errorf("the event has the error %v, want %v", err, errDown)
		}
	})
	t.Run("but not past a full store", func(t *testing.T) {
		m.Store = newBook(failing("claim", 1, idempotency.ErrFull), nil)
		bubble(t, m, created, func(s *service) {
			s.wantProblem(s.post("k", "a"), 503, "store-full")
		})
	})
}

func TestARequestThatIsOverBeforeItIsBegunIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInside(t, idempotency.Middleware{FailOpen: true}, created, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithCancel(r.Context())
				cancel()
				h.ServeHTTP(w, r.WithContext(ctx))
			})
		})
		defer s.stop()
		s.wantProblem(s.post("k", "a"), 503, "store-unavailable")
		s.wantRuns(0)
		s.wantKinds(idempotency.Refused)
		if len(s.store.steps) != 0 {
			t.Errorf("the store was asked: %v", s.store.steps)
		}
	})
}

func TestTheClaimDoesNotEndWithTheRequest(t *testing.T) {
	store := newBook(func(_ context.Context, step string) error {
		if step == "claim" {
			time.Sleep(2 * time.Second)
		}
		return nil
	}, nil)
	bubble(t, idempotency.Middleware{Store: store}, created, func(s *service) {
		ctx, leave := context.WithTimeout(s.t.Context(), time.Second)
		defer leave()
		s.send(s.request("POST", "/charges", "k", "a").WithContext(ctx))
		time.Sleep(5 * time.Second)
		s.wantAnswer(s.post("k", "a"), 201, "did a", true)
	})
}

func TestAKeyWithAnotherBodyIsRefusedWithTheStatusThatTheServiceWants(t *testing.T) {
	bubble(t, idempotency.Middleware{MismatchStatus: 409}, created, func(s *service) {
		s.post("k", "a")
		a := s.post("k", "b")
		s.wantProblem(a, 409, "key-reused")
		if got := a.Header.Get("X-Should-Retry"); got != "false" {
			t.Errorf("X-Should-Retry = %q, want false: it is no run that will end", got)
		}
		s.wantRuns(1)
	})
}

func TestWhereKeysMustBeQuotedABareOneIsRefused(t *testing.T) {
	bubble(t, idempotency.Middleware{QuotedOnly: true}, created, func(s *service) {
		s.wantProblem(s.post("k", "a"), 400, "key-invalid")
		s.wantAnswer(s.post(`"k"`, "a"), 201, "did a", false)
		s.wantRuns(1)
	})
}

func TestVerdictsHaveNames(t *testing.T) {
	for verdict, want := range map[idempotency.Verdict]string{
		idempotency.ClaimWon: "ClaimWon", idempotency.ClaimUnknown: "ClaimUnknown", 0: "verdict(0)", 7: "verdict(7)",
	} {
		if got := verdict.String(); got != want {
			t.Errorf("String of verdict %d = %q, want %q", int(verdict), got, want)
		}
	}
}
