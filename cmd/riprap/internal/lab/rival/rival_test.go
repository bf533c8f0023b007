package rival

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var (
	errFailed = errors.New("failed")
	errLate   = context.DeadlineExceeded
)

// first lets so many calls make their first attempt, which ends as given, and returns how many were let out.
func first(r sim.Rival, n int, now time.Duration, err error) (out int) {
	for range n {
		if r.Admit(now, 1, 0.5) {
			out++
			r.Ended(now, 1, nil, err)
		}
	}
	return out
}

// retries counts the retries that are granted in a row after such failures, a thousand at most.
func retries(r sim.Rival, now time.Duration, err error) (n int) {
	for n < 1000 && r.Retry(now, err) {
		n++
	}
	return n
}

func TestEachRivalDecidesAboutItsOwnMatterOnly(t *testing.T) {
	limits := map[string]sim.Rival{
		"Bucket": &Bucket{Size: 1, Tokens: 1}, "Quota": NewQuota(), "Throttle": NewThrottle(10, 0.1), "Sliding": NewSliding(), "Breaker": &Breaker{Share: 1},
	}
	for name, r := range limits {
		if !r.Admit(0, 1, 0) || !r.Admit(0, 2, 0) {
			t.Errorf("%s holds back an attempt, but it limits retries", name)
		}
	}
	limits["Adaptive"] = &Adaptive{}
	for name, r := range limits {
		if got := r.Wait(123*ms, 45*ms, 0.6); got != 123*ms {
			t.Errorf("%s.Wait(123ms, …) = %v, want riprap's own", name, got)
		}
	}
	c := &Clipped{Base: ms, Max: s}
	if first(c, 100, 0, errFailed) != 100 || retries(c, 0, errFailed) != 1000 {
		t.Error("Clipped limits calls, but it only draws waits")
	}
}

func TestABucketIsFilledByCallsOrBySuccesses(t *testing.T) {
	tests := map[string]struct {
		bucket               Bucket
		inOutage, inGoodTime int // retries that 40 calls pay for
	}{
		"by calls":     {Bucket{PerCall: 0.1, Size: 100}, 4, 4},
		"by successes": {Bucket{PerSuccess: 0.25, Size: 100}, 0, 10},
		"by both":      {Bucket{PerCall: 0.25, PerSuccess: 0.5, Size: 100}, 10, 30},
		"small":        {Bucket{PerCall: 0.25, Size: 5}, 5, 5},
		"full":         {Bucket{PerCall: 0.25, Size: 20, Tokens: 20}, 20, 20},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for err, want := range map[error]int{errFailed: tt.inOutage, nil: tt.inGoodTime} {
				b := tt.bucket
				first(&b, 40, 0, err)
				if got := retries(&b, 0, errFailed); got != want {
					t.Errorf("after 40 calls that ended with %v: %d retries, want %d", err, got, want)
				}
			}
		})
	}
}

func TestTenTenthsAreARetry(t *testing.T) {
	b := &Bucket{PerCall: 0.1, Size: 100}
	first(b, 10, 0, errFailed)
	if got := retries(b, 0, errFailed); got != 1 {
		t.Errorf("%d retries for ten calls of a tenth each, want 1", got)
	}
}

func TestOnlyAFirstTryFillsABucketByItsSending(t *testing.T) {
	b := Bucket{PerCall: 1, Size: 100}
	for attempt := range 10 {
		b.Admit(0, attempt+2, 0)
	}
	if b.Tokens != 0 {
		t.Errorf("ten retries added %v, want nothing", b.Tokens)
	}
}

func TestTheQuotaTakesFiveForAFailureAndTenForATimeout(t *testing.T) {
	if got := retries(NewQuota(), 0, errFailed); got != 100 {
		t.Errorf("%d retries after failures, want 500/5", got)
	}
	if got := retries(NewQuota(), 0, errLate); got != 50 {
		t.Errorf("%d retries after timeouts, want 500/10", got)
	}
	q := &Quota{Tokens: 7, Size: 500, Cost: 5, LateCost: 10}
	if q.Retry(0, errLate) || q.Tokens != 7 {
		t.Errorf("seven tokens pay for a retry after a timeout, or were taken: %d left", q.Tokens)
	}
	if !q.Retry(0, errFailed) || q.Tokens != 2 {
		t.Errorf("seven tokens do not pay for a retry after a failure, or not five of them: %d left", q.Tokens)
	}
}

func TestTheQuotaGivesBackWhatTheRetryThatSucceedsHasTaken(t *testing.T) {
	for name, tt := range map[string]struct {
		attempt   int
		prev, err error
		want      int
	}{
		"success at once":         {1, nil, nil, 101},
		"failure at once":         {1, nil, errFailed, 100},
		"success after a failure": {2, errFailed, nil, 105},
		"success after a timeout": {2, errLate, nil, 110},
		"success of the third":    {3, errFailed, nil, 105}, // what the second has taken is lost
		"failure after a failure": {2, errFailed, errFailed, 100},
		"late after a timeout":    {2, errLate, errLate, 100},
	} {
		q := &Quota{Tokens: 100, Size: 500, Cost: 5, LateCost: 10}
		if q.Ended(0, tt.attempt, tt.prev, tt.err); q.Tokens != tt.want {
			t.Errorf("%s: %d tokens of 100, want %d", name, q.Tokens, tt.want)
		}
	}
	q := &Quota{Tokens: 498, Size: 500, Cost: 5, LateCost: 10}
	if q.Ended(0, 2, errLate, nil); q.Tokens != 500 {
		t.Errorf("%d tokens, want no more than 500", q.Tokens)
	}
}

func TestTheQuotaLosesNothingWhereEveryRetrySucceeds(t *testing.T) {
	q := NewQuota()
	for i := range 1000 {
		err := []error{errFailed, errLate}[i%2]
		q.Ended(0, 1, nil, err)
		if !q.Retry(0, err) {
			t.Fatalf("retry %d refused with %d tokens", i, q.Tokens)
		}
		q.Ended(0, 2, err, nil)
	}
	if q.Tokens != 500 {
		t.Errorf("%d tokens after 1000 retries that succeeded, want 500", q.Tokens)
	}
}

func TestTheThrottleAllowsRetriesWhileMoreThanHalfIsLeft(t *testing.T) {
	// A6: token_count starts at maxTokens; a failure takes one, and at half or below there are no retries.
	r := NewThrottle(10, 0.1)
	for failed := 1; failed <= 20; failed++ {
		r.Ended(0, 1, nil, errFailed)
		if got, want := r.Retry(0, errFailed), failed < 5; got != want {
			t.Errorf("after %d failures of 10 tokens: retry %v, want %v", failed, got, want)
		}
	}
	if r.Tokens != 0 {
		t.Errorf("%v tokens after 20 failures, want 0 and no less", r.Tokens)
	}
	r = NewThrottle(8, 0.5)
	for range 8 {
		r.Ended(0, 1, nil, errLate)
	}
	for ok := 1; ok <= 20; ok++ {
		r.Ended(0, 1, nil, nil)
		if got, want := r.Retry(0, errFailed), ok > 8; got != want {
			t.Errorf("after %d successes of half a token: retry %v, want %v", ok, got, want)
		}
	}
	if r.Tokens != 8 {
		t.Errorf("%v tokens after 20 successes, want 8 and no more", r.Tokens)
	}
}

func TestTheSlidingBudgetHasAFloorAndAFifthOfTheCallsOfTenSeconds(t *testing.T) {
	if got := retries(NewSliding(), 0, errFailed); got != 100 {
		t.Errorf("%d retries without a call, want ten a second for ten seconds", got)
	}
	b := NewSliding()
	first(b, 1000, 0, errFailed)
	if got := retries(b, 9999*ms, errFailed); got != 300 {
		t.Errorf("%d retries after 1000 calls within 10s, want 200 and the floor of 100", got)
	}
	b = NewSliding()
	first(b, 1000, 0, errFailed)
	if got := retries(b, 10*s, errFailed); got != 100 {
		t.Errorf("%d retries 10s after 1000 calls, want the floor of 100", got)
	}
	b = NewSliding()
	if n := retries(b, 0, errFailed) + retries(b, 9999*ms, errFailed); n != 100 {
		t.Errorf("%d retries within 10s, want 100: the floor is not there twice", n)
	}
	if got := retries(b, 10*s, errFailed); got != 100 {
		t.Errorf("%d retries when those before are 10s ago, want 100", got)
	}
	b = &Sliding{Ratio: 0.5}
	for attempt := range 10 {
		b.Admit(3*s, attempt+2, 0)
	}
	if got := retries(b, 3*s, errFailed); got != 0 {
		t.Errorf("%d retries, want none: what is sent again deposits nothing, and there is no floor", got)
	}
}

func TestTheSlidingBudgetGoesOnPayingInAnOutage(t *testing.T) {
	b := &Sliding{Ratio: 0.25}
	granted := 0
	for second := range 100 {
		now := time.Duration(second) * s
		first(b, 100, now, errFailed)
		granted += retries(b, now, errFailed)
	}
	if granted != 2500 {
		t.Errorf("%d retries for 10000 calls, all of which failed, want a quarter", granted)
	}
}

func TestAdaptiveDropsByTheFormulaOfItsSource(t *testing.T) {
	for _, tt := range []struct {
		k                float64
		wanted, accepted int
	}{{0, 0, 0}, {0, 100, 100}, {0, 100, 50}, {0, 100, 49}, {0, 100, 10}, {0, 100, 0}, {1.1, 100, 60}, {3, 100, 30}, {3, 100, 40}} {
		k := tt.k
		if k == 0 {
			k = 2
		}
		want := max(0, (float64(tt.wanted)-k*float64(tt.accepted))/(float64(tt.wanted)+1))
		for _, hard := range []bool{false, true} {
			a := &Adaptive{K: tt.k, Hard: hard}
			for i := range tt.wanted {
				a.Admit(0, 1, 1) // which lets all out
				if i < tt.accepted {
					a.Ended(0, 1, nil, nil)
				} else {
					a.Ended(0, 1, nil, errLate)
				}
			}
			// Where a draw comes to be let out is found by halving.
			low, high := 0.0, 1.0
			for range 30 {
				b, middle := *a, (low+high)/2
				if b.Admit(0, 1, middle) {
					high = middle
				} else {
					low = middle
				}
			}
			if math.Abs(high-want) > 1e-6 {
				t.Errorf("K %v, %d wanted, %d accepted, hard %v: dropped with %.6f, want %.6f", k, tt.wanted, tt.accepted, hard, high, want)
			}
		}
	}
}

func TestAdaptiveCountsWhatItDropsAsWanted(t *testing.T) {
	a := &Adaptive{}
	first(a, 10, 0, errFailed) // the first is let out, the others with a draw of a half hardly
	a.Admit(0, 1, 0)
	if a.wanted != 11 {
		t.Errorf("%v wanted after 11 attempts, want all of them", a.wanted)
	}
}

func TestAdaptiveForgetsInOrAfterItsWindow(t *testing.T) {
	load := func(a *Adaptive) *Adaptive {
		for range 100 {
			a.Admit(0, 1, 1)
		}
		return a
	}
	hard := load(&Adaptive{Hard: true})
	if hard.forget(119 * s); hard.wanted != 100 {
		t.Errorf("after 119s of a window of 120s: %v wanted, want 100", hard.wanted)
	}
	if hard.forget(120 * s); hard.wanted != 0 {
		t.Errorf("after 120s of a window of 120s: %v wanted, want 0", hard.wanted)
	}
	soft := load(&Adaptive{})
	if soft.forget(120 * s); math.Abs(soft.wanted-100/math.E) > 1e-9 {
		t.Errorf("a window later %v are wanted, want 1/e of 100", soft.wanted)
	}
	if soft.slots != nil {
		t.Errorf("one that fades keeps %d slots, want none", len(soft.slots))
	}
	short := load(&Adaptive{Hard: true, Window: 12 * s})
	if short.forget(12 * s); short.wanted != 0 {
		t.Errorf("after all of a window of 12s: %v wanted, want 0", short.wanted)
	}
	// A steady stream comes to the same weight either way: a window's worth of calls.
	for _, a := range []*Adaptive{{}, {Hard: true}} {
		for i := range 10_000 {
			a.Admit(time.Duration(i)*100*ms, 1, 1)
		}
		if math.Abs(a.wanted-1200) > 15 {
			t.Errorf("ten calls a second weigh %v, want 1200 (hard %v)", a.wanted, a.Hard)
		}
	}
}
