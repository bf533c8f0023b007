package demo

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"
)

func TestBothSidesGetTheSameTraffic(t *testing.T) {
	s := standard(300)
	if !slices.Equal(s.arrivals(7), s.arrivals(7)) {
		t.Error("arrivals(7) twice: got two schedules, want one")
	}
	if slices.Equal(s.arrivals(7), s.arrivals(8)) {
		t.Error("arrivals(7) and arrivals(8): got the same schedule, want two")
	}
}

func TestClicksAreMadeAtTheRateOfTheScenario(t *testing.T) {
	for _, callers := range []int{fewest, 300, most} {
		s := standard(callers)
		clicks := s.arrivals(1)
		if !slices.IsSortedFunc(clicks, earlier) || clicks[0].At < 0 || clicks[len(clicks)-1].At >= s.Length {
			t.Errorf("%d callers: got arrivals out of order or outside of the run", callers)
		}
		want := s.rate() * s.Length.Seconds()
		if got := float64(len(clicks)); math.Abs(got-want) > 0.05*want {
			t.Errorf("%d callers: got %v clicks, want about %v", callers, got, want)
		}
	}
}

func earlier(a, b click) int { return cmp.Compare(a.At, b.At) }

// Without these relations there is no storm to show: the clicks fit the capacity once but not twice, a full queue
// outlasts an attempt, and riprap and the naive loop have the same limits.
func TestTheStandardScenarioCanFeedAStorm(t *testing.T) {
	for _, callers := range []int{fewest, 300, most} {
		s := standard(callers)
		if s.rate() >= s.capacity() {
			t.Errorf("%d callers: got %v clicks a second on a capacity of %v, want fewer", callers, s.rate(), s.capacity())
		}
		if 2*s.rate() <= s.capacity() {
			t.Errorf("%d callers: got %v clicks a second on a capacity of %v, want more than fit twice", callers, s.rate(), s.capacity())
		}
		if full := time.Duration(s.waiting()) * s.work(); full <= s.AttemptTimeout {
			t.Errorf("%d callers: got %v of work in a full queue, want more than an attempt's %v", callers, full, s.AttemptTimeout)
		}
		for _, f := range s.Faults {
			if f.Kind == slow && f.Later <= s.AttemptTimeout {
				t.Errorf("%d callers: got slow answers %v late, want more than an attempt's %v", callers, f.Later, s.AttemptTimeout)
			}
		}
		if last := s.Faults[len(s.Faults)-1].until(); s.Length-last < sustain+settle {
			t.Errorf("%d callers: got %v after the last fault, want at least %v", callers, s.Length-last, sustain+settle)
		}
		if total := time.Duration(len(sides)) * s.Length; total > 28*time.Second {
			t.Errorf("%d callers: got a demo of %v, want at most 28s", callers, total)
		}
	}
}
