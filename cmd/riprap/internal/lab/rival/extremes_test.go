package rival

import (
	"math"
	"testing"
	"time"
)

// An hour of ticks is soon gone through, the ticks of centuries are not: whoever goes through them one by one for each of
// so many processes is not done before the test is ended.
func TestALongSilenceIsForgottenAtOnce(t *testing.T) {
	for range 10_000 {
		sliding := NewSliding()
		retries(sliding, 0, errFailed)
		first(sliding, 1000, math.MaxInt64-s, errFailed)
		if got := retries(sliding, math.MaxInt64, errFailed); got != 300 {
			t.Fatalf("Sliding after 292 years and 1000 calls: %d retries, want the floor's 100 and 200", got)
		}
		hard := &Adaptive{Hard: true}
		first(hard, 10, 0, errFailed)
		hard.Admit(math.MaxInt64, 1, 0)
		if hard.wanted != 1 || hard.accepted != 0 {
			t.Fatalf("Adaptive after 292 years: %v wanted, %v accepted, want 1 and 0", hard.wanted, hard.accepted)
		}
	}
}

func TestAddedIsNeverLongerThanItsMaximumNorNegative(t *testing.T) {
	a := &Added{Spread: 10 * ms, Max: 2 * s}
	for own, want := range map[time.Duration]time.Duration{ms: 6 * ms, 2 * s: 2 * s, math.MaxInt64: 2 * s} {
		if got := a.Wait(own, 0, 0.5); got != want {
			t.Errorf("Wait(%v) = %v, want %v", own, got, want)
		}
	}
}
