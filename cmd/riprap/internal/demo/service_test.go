package demo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// ask sends a request to v without a socket and returns the answer and when it came.
func ask(ctx context.Context, v *service) (*httptest.ResponseRecorder, time.Duration) {
	start := time.Now()
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(`{"click":1}`)))
	return w, time.Since(start)
}

// free charges nobody.
func free(int) error { return nil }

func TestTheServiceAnswersAtItsCapacityAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300) // 9 ms of work a request
		v := startService(s, free, newTally(s.Length))
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
		v := startService(s, free, tally)
		defer v.stop()
		patient, leave := context.WithTimeout(t.Context(), 98*time.Millisecond)
		defer leave()
		for range 40 { // 360 ms of work
			go ask(patient, v)
		}
		synctest.Wait()
		if _, took := ask(t.Context(), v); took != 41*s.work() {
			t.Errorf("the request after 40 that nobody waits for: answered after %v, want %v", took, 41*s.work())
		}
		time.Sleep(step)
		b := tally.read()
		if worked, wasted := b.sum(worked, 0, len(b)), b.sum(wasted, 0, len(b)); worked != 41 || wasted != 30 {
			t.Errorf("after 41 requests, 11 of them answered in time: got %d worked on, %d of them in vain, want 41 and 30", worked, wasted)
		}
	})
}

func TestAFullQueueTurnsRequestsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		tally := newTally(s.Length)
		v := startService(s, free, tally)
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
		v := startService(s, free, newTally(s.Length))
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
		v := startService(s, free, tally)
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
		v := startService(s, free, tally)
		defer v.stop()
		v.work = -700 * time.Millisecond // to be done before it began is the same as to be woken late
		ask(t.Context(), v)
		time.Sleep(step)
		if got := measure(s, tally.read(), account{}).Late; got != 700*time.Millisecond {
			t.Errorf("work that is done 700ms late makes the run %v late, want 700ms", got)
		}
	})
}

func TestTheServiceChargesWhateverArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		charged := 0
		v := startService(s, func(click int) error { charged += click; return nil }, newTally(s.Length))
		defer v.stop()
		patient, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		go ask(patient, v) // gone when it is charged
		synctest.Wait()
		for range 2 {
			if w, _ := ask(t.Context(), v); w.Code != http.StatusOK {
				t.Errorf("a charge: got %d, want 200", w.Code)
			}
		}
		if charged != 3 {
			t.Errorf("three requests for one click, one of them from a caller who has gone: got %d charges, want 3", charged)
		}
	})
}

func TestAnAnswerCanBeLostAfterTheCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		tally := newTally(s.Length)
		charged := 0
		v := startService(s, func(int) error { charged++; return nil }, tally)
		defer v.stop()
		v.lose(true)
		func() {
			defer func() {
				if broken := recover(); broken != http.ErrAbortHandler {
					t.Errorf("a lost answer: got panic %v, want ErrAbortHandler, which breaks the connection", broken)
				}
			}()
			ask(t.Context(), v)
		}()
		v.lose(false)
		if w, _ := ask(t.Context(), v); w.Code != http.StatusOK {
			t.Errorf("no longer losing: got %d, want 200", w.Code)
		}
		time.Sleep(step)
		if b := tally.read(); charged != 2 || b.sum(unheard, 0, len(b)) != 1 {
			t.Errorf("an answer lost and one not: got %d charges, %d answers lost, want 2 and 1", charged, b.sum(unheard, 0, len(b)))
		}
	})
}

func TestASlowServiceChargesAtOnceAndAnswersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		start := time.Now()
		var charged time.Duration
		v := startService(s, func(int) error { charged = time.Since(start); return nil }, newTally(s.Length))
		v.delay(time.Second)
		w, took := ask(t.Context(), v)
		if w.Code != http.StatusOK || took != s.work()+time.Second || charged != s.work() {
			t.Errorf("slow: got %d after %v, charged after %v, want 200 after %v, charged after %v", w.Code, took, charged, s.work()+time.Second, s.work())
		}
		ended := make(chan time.Duration)
		go func() {
			_, took := ask(t.Context(), v)
			ended <- took
		}()
		time.Sleep(100 * time.Millisecond)
		v.stop() // a crash does not wait
		if took := <-ended; took != 100*time.Millisecond {
			t.Errorf("a slow answer when the process ends after 100ms: ended after %v", took)
		}
	})
}

func TestALedgerThatFailsIsNoCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := standard(300)
		tally := newTally(s.Length)
		full := errors.New("disk full")
		v := startService(s, func(int) error { return full }, tally)
		defer v.stop()
		if w, _ := ask(t.Context(), v); w.Code != http.StatusInternalServerError || tally.broken() != full {
			t.Errorf("a ledger that fails: got %d and error %v, want 500 and that the demo cannot go on: %v", w.Code, tally.broken(), full)
		}
	})
}
