package sim

import (
	"math"
	"time"
)

// nextArrival makes the next call of an open stream, a Poisson process whose rate may change over time.
func (w *world) nextArrival() {
	at := w.now
	for {
		most, until := w.rate(at)
		at += time.Duration(w.random.ExpFloat64() / most * float64(time.Second))
		if at >= until {
			at = until // a Poisson process has no memory: it begins anew with the next rate
			continue
		}
		if p := w.ramp(at); p == 1 || w.random.Float64() < p {
			break
		}
	}
	w.after(at-w.now, arrive, visit{call: -1}, 0)
}

// rate is the highest rate from an instant on, and until when it holds.
func (w *world) rate(at time.Duration) (most float64, until time.Duration) {
	most, until = w.scenario.Arrivals.Rate, math.MaxInt64
	for _, t := range w.crowding {
		switch {
		case at < t.From:
			until = min(until, t.From)
		case t.on(at):
			most *= max(t.Factor, 1e-9)
			until = min(until, t.until())
		}
	}
	return most, until
}

// ramp is the share of the highest rate that holds at an instant.
func (w *world) ramp(at time.Duration) float64 {
	share := 1.0
	for _, t := range w.crowding {
		if t.Kind == Ramp && t.on(at) {
			half := float64(t.For) / 2
			height := 1 - math.Abs(float64(at-t.From)-half)/half
			share *= (1 + (t.Factor-1)*height) / t.Factor
		}
	}
	return share
}
