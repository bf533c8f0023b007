package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// ask sends a request to v without a socket and returns the answer and when it came.
func ask(ctx context.Context, v *service) (*httptest.ResponseRecorder, time.Duration) {
	start := time.Now()
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	return w, time.Since(start)
}

func TestTheServiceAnswersAtItsCapacityAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300) // 5 ms of work a request
		v := startService(s, newTally(s.Length))
		defer v.stop()
		for i := range 100 {
			go func() {
				_, took := ask(t.Context(), v)
				if want := time.Duration(i+1) * s.work(); took != want {
					t.Errorf("request %d of 100: answered after %v, want %v", i, took, want)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		if _, took := ask(t.Context(), v); took != s.work() {
			t.Errorf("a request after a pause: answered after %v, want %v", took, s.work())
		}
	})
}

func TestTheServiceWorksOnForCallersWhoHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		tally := newTally(s.Length)
		v := startService(s, tally)
		defer v.stop()
		patient, leave := context.WithTimeout(t.Context(), 98*time.Millisecond)
		defer leave()
		for range 40 { // 200 ms of work
			go ask(patient, v)
		}
		synctest.Wait()
		if _, took := ask(t.Context(), v); took != 41*s.work() {
			t.Errorf("the request after 40 that nobody waits for: answered after %v, want %v", took, 41*s.work())
		}
		time.Sleep(step)
		b := tally.read()
		if worked, wasted := b.sum(worked, 0, len(b)), b.sum(wasted, 0, len(b)); worked != 41 || wasted != 21 {
			t.Errorf("after 41 requests, 19 of them answered in time: got %d worked on, %d of them in vain, want 41 and 21", worked, wasted)
		}
	})
}

func TestAFullQueueTurnsRequestsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		tally := newTally(s.Length)
		v := startService(s, tally)
		defer v.stop()
		for range 1 + s.waiting() { // one is in hand
			go ask(t.Context(), v)
			synctest.Wait()
		}
		w, took := ask(t.Context(), v)
		if w.Code != http.StatusServiceUnavailable || took != 0 {
			t.Errorf("a request on a full queue: got %d after %v, want 503 at once", w.Code, took)
		}
		time.Sleep(time.Second)
		if b := tally.read(); b.sum(overflowed, 0, len(b)) != 1 || b[0][longest] != s.waiting() {
			t.Errorf("a request on a full queue: counted %d with %d waiting, want 1 with %d", b.sum(overflowed, 0, len(b)), b[0][longest], s.waiting())
		}
		time.Sleep(s.Queue)
	})
}

func TestAThrottlingServiceSaysWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		v := startService(s, newTally(s.Length))
		defer v.stop()
		v.throttle(time.Second)
		w, took := ask(t.Context(), v)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || took != 0 {
			t.Errorf("throttled: got %d with Retry-After %q after %v, want 429 with 1 at once", w.Code, w.Header().Get("Retry-After"), took)
		}
		v.throttle(0)
		if w, _ := ask(t.Context(), v); w.Code != http.StatusOK {
			t.Errorf("no longer throttled: got %d, want 200", w.Code)
		}
	})
}

func TestAHangingServiceAnswersNobodyUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		tally := newTally(s.Length)
		v := startService(s, tally)
		v.hang()
		var ended atomic.Int64
		for range 3 {
			go func() {
				ask(t.Context(), v)
				ended.Add(1)
			}()
		}
		time.Sleep(5 * time.Second)
		if n := ended.Load(); n != 0 {
			t.Errorf("five seconds after it hung: %d requests ended, want none", n)
		}
		v.stop()
		synctest.Wait()
		if n := ended.Load(); n != 3 {
			t.Errorf("after stop: %d requests ended, want 3", n)
		}
		if b := tally.read(); b.sum(worked, 0, len(b)) != 0 {
			t.Errorf("hanging: got %d requests worked on, want none", b.sum(worked, 0, len(b)))
		}
	})
}

func TestAMachineThatWakesTheServiceLateIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		tally := newTally(s.Length)
		v := startService(s, tally)
		defer v.stop()
		v.work = -700 * time.Millisecond // to be done before it began is the same as to be woken late
		ask(t.Context(), v)
		time.Sleep(step)
		if got := measure(s, tally.read()).Late; got != 700*time.Millisecond {
			t.Errorf("work that is done 700ms late makes the run %v late, want 700ms", got)
		}
	})
}
