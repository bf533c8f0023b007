package idempotency_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestADuplicateWhileTheFirstRunsIsToldWhenToComeBack(t *testing.T) {
	for _, test := range []struct {
		age  time.Duration
		want string
	}{
		{0, "1"},
		{500 * time.Millisecond, "1"},
		{7*time.Second + time.Millisecond, "8"}, // what has lasted so long lasts as long again
		{29 * time.Second, "29"},
		{4 * time.Minute, "30"},
	} {
		t.Run(test.age.String(), func(t *testing.T) {
			bubble(t, idempotency.Middleware{}, sleepy(5*time.Minute), func(s *service) {
				go s.post("k", "a")
				time.Sleep(test.age)
				synctest.Wait()
				got := s.post("k", "a")
				s.wantProblem(got, 409, "in-flight")
				if after := got.Header.Get("Retry-After"); after != test.want {
					t.Errorf("Retry-After = %q after %v, want %q", after, test.age, test.want)
				}
				s.wantRuns(1)
				s.wantKinds(idempotency.InFlight)
			})
		})
	}
}

func TestADuplicateIsNotToldToWaitLongerThanTheLease(t *testing.T) {
	var down atomic.Bool
	store := &book{pages: make(map[idempotency.ID]*page), before: func(_ context.Context, step string) error {
		if down.Load() && step == "renew" {
			return errDown
		}
		return nil
	}}
	bubble(t, idempotency.Middleware{Store: store, Reexecute: true}, sleepy(5*time.Minute), func(s *service) {
		go s.post("k", "a")
		time.Sleep(30 * time.Second)
		down.Store(true)
		time.Sleep(46*time.Second + 500*time.Millisecond) // renewed after 20 s for the last time, or nearly so
		got := s.post("k", "a")
		s.wantProblem(got, 409, "in-flight")
		if after := got.Header.Get("Retry-After"); after != "5" { // a second more than the 3.5 that the lease has left
			t.Errorf("Retry-After = %q, want 5", after)
		}
	})
}

func TestADuplicateMayWaitForTheAnswer(t *testing.T) {
	bubble(t, idempotency.Middleware{Wait: time.Minute}, sleepy(10*time.Second), func(s *service) {
		go s.post("k", "a")
		synctest.Wait()
		begun := time.Now()
		s.wantAnswer(s.post("k", "a"), 200, "slept", true)
		if took := time.Since(begun); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("the duplicate waited for %v, want the 10 s that the first one took and at most one more", took)
		}
		s.wantRuns(1)
	})
}

func TestADuplicateThatWaitedLongEnoughIsToldToComeBack(t *testing.T) {
	bubble(t, idempotency.Middleware{Wait: 3 * time.Second}, sleepy(10*time.Second), func(s *service) {
		go s.post("k", "a")
		synctest.Wait()
		begun := time.Now()
		s.wantProblem(s.post("k", "a"), 409, "in-flight")
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("the duplicate waited for %v, want 3s", took)
		}
	})
}

func TestADuplicateThatWaitsRunsTheRequestIfTheFirstHadNoEffect(t *testing.T) {
	var runs atomic.Int64
	bubble(t, idempotency.Middleware{Wait: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		if runs.Add(1) == 1 {
			w.WriteHeader(429)
		}
	}, func(s *service) {
		go s.post("k", "a")
		synctest.Wait()
		s.wantAnswer(s.post("k", "a"), 200, "", false)
	})
}

func TestAWaitingDuplicateHoldsNothingOfTheStore(t *testing.T) {
	var busy atomic.Int64
	store := &book{pages: make(map[idempotency.ID]*page)}
	store.before = func(context.Context, string) error { busy.Add(1); return nil }
	store.after = func(context.Context, string) error { busy.Add(-1); return nil }
	bubble(t, idempotency.Middleware{Store: store, Wait: time.Minute}, sleepy(30*time.Second), func(s *service) {
		for range 3 {
			go s.post("k", "a")
		}
		synctest.Wait()
		if n := busy.Load(); n != 0 {
			t.Errorf("%d calls of the store are pending while duplicates wait, want none", n)
		}
		time.Sleep(20 * time.Second)
		if n := store.took("claim"); n > 3*40 {
			t.Errorf("three requests have claimed %d times in 20 s", n)
		}
	})
}

func TestOnlySoManyDuplicatesWait(t *testing.T) {
	bubble(t, idempotency.Middleware{Wait: time.Minute, MaxWaiting: 2}, sleepy(30*time.Second), func(s *service) {
		var done sync.WaitGroup
		var refused, replayed atomic.Int64
		go s.post("k", "a")
		synctest.Wait()
		for range 5 {
			done.Go(func() {
				switch got := s.post("k", "a"); {
				case got.problem() == "in-flight":
					refused.Add(1)
				case got.replayed():
					replayed.Add(1)
				}
			})
		}
		done.Wait()
		if refused.Load() != 3 || replayed.Load() != 2 {
			t.Errorf("of 5 duplicates %d were refused and %d got the answer, want 3 and 2", refused.Load(), replayed.Load())
		}
		s.wantAnswer(s.post("k", "a"), 200, "slept", true)
	})
}

func TestADuplicateWhoseClientLeavesWaitsNoLonger(t *testing.T) {
	bubble(t, idempotency.Middleware{Wait: time.Hour, MaxWaiting: 1, MaxRun: -1}, sleepy(30*time.Minute), func(s *service) {
		go s.post("k", "a")
		synctest.Wait()
		ctx, leave := context.WithTimeout(s.t.Context(), time.Minute)
		defer leave()
		s.send(s.request("POST", "/charges", "k", "a").WithContext(ctx))
		synctest.Wait()
		s.wantKinds(idempotency.InFlight)
		claims := s.store.took("claim")
		time.Sleep(10 * time.Minute)
		if n := s.store.took("claim"); n != claims {
			t.Errorf("%d claims more after the client left", n-claims)
		}
	})
}

func TestOfManyRequestsWithOneKeyOneRuns(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		created(w, r)
	}, func(s *service) {
		var done sync.WaitGroup
		var answers sync.Map
		for i := range 100 {
			done.Go(func() {
				got := s.post("k", "a")
				answers.Store(i, fmt.Sprint(got.StatusCode, got.problem()))
			})
		}
		done.Wait()
		count := make(map[any]int)
		answers.Range(func(_, a any) bool { count[a]++; return true })
		if count["201"] != 1 || count["409in-flight"] != 99 {
			t.Errorf("answers = %v, want one 201 and 99 times in-flight", count)
		}
		s.wantRuns(1)
		owners := make(map[idempotency.Owner]bool)
		for _, c := range s.store.claims {
			owners[c.Owner] = true
		}
		if len(owners) != 100 {
			t.Errorf("100 claims by %d owners, want one each", len(owners))
		}
	})
}
