package sim

import (
	"math"
	"time"
)

// nextArrival makes the next call of an open stream, a Poisson process whose rate may change over time.
func (w *world) nextArrival() {
	s := w.scenario
	for at := w.now; at < s.Length; {
		most, until := s.rate(at)
		gap := w.random.ExpFloat64() / most * float64(time.Second)
		if gap >= float64(until-at) {
			at = until // a Poisson process has no memory: it begins anew with the next rate
			continue
		}
		at += time.Duration(gap)
		if p := s.ramp(at); p == 1 || w.random.Float64() < p {
			w.after(at-w.now, arrive, visit{call: -1}, 0)
			return
		}
	}
}

// rate is the highest number of calls a second from an instant on, and until when it holds.
func (s *Scenario) rate(at time.Duration) (most float64, until time.Duration) {
	most, until = s.Arrivals.Rate, s.Length
	for _, t := range s.Triggers {
		switch {
		case t.Kind != Spike && t.Kind != Ramp:
		case at < t.From:
			until = min(until, t.From)
		case t.on(at):
			most *= t.highest()
			until = min(until, t.until())
		}
	}
	return most, until
}

// highest is what the rate is multiplied by while the trigger is on, at most.
func (t *Trigger) highest() float64 {
	if t.Kind == Ramp {
		return max(t.Factor, 1)
	}
	return max(t.Factor, 1e-9) // a spike of zero stops the calls
}

// ramp is the share of the highest rate that holds at an instant.
func (s *Scenario) ramp(at time.Duration) float64 {
	share := 1.0
	for _, t := range s.Triggers {
		if t.Kind == Ramp && t.on(at) {
			half := float64(t.For) / 2
			height := 1 - math.Abs(float64(at-t.From)-half)/half
			share *= (1 + (t.Factor-1)*height) / t.highest()
		}
	}
	return share
}
