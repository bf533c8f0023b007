package sim

import (
	"math"
	"time"
)

// A Recovery is what became of the service after the last trigger was over.
type Recovery struct {
	// Known is false if nothing can be said of a recovery: the simulated time ends too soon after the trigger for a service
	// to be healthy, or nothing was answered before it that the end could be compared with.
	Known bool

	// Recovered reports whether the service was healthy again, and still was at the end.
	Recovered bool

	// After is how long it took from the end of the trigger until it was healthy again, if it ever was.
	After time.Duration
	Again bool

	// Overshoot is the highest number of attempts sent in a step since the trigger began, as a multiple of what the last
	// service can serve in it, or of the calls usually made if it has no limit.
	Overshoot float64

	// Lost is the number of calls since the trigger began that were not answered and usually would have been, as a share
	// of those that usually would have been answered.
	Lost float64

	// During is the number of attempts at the last service for each call made while the trigger was on.
	During float64

	// EndRate is the number of calls answered a second in the last part of the simulated time. Usual is that without a
	// trigger: the rate of open arrivals, and what was answered before the trigger of closed ones. If nothing was, there
	// is nothing to compare with, and no recovery.
	EndRate, Usual float64
}

// Watch is the least time after the last trigger in which a service can be seen to recover.
const Watch = 10 * time.Second

const (
	healthy = 0.95  // share of the usual answers from which on a service is healthy
	span    = Watch // for which it has to be, on average
	steady  = 0.9   // share of the usual answers, at the end, of a service that has stayed healthy
	chance  = 4     // standard deviations by which a healthy service may have less at the end
)

// measure finds out how the simulation went, at its end.
func (r *Result) measure(s *Scenario) {
	from, until := s.Fault()
	if s.Length == 0 || until == 0 {
		return
	}
	series := r.Series[:s.Length/r.Step] // a step that is cut short has no rate
	begun := int(from / r.Step)
	over := min(int((until+r.Step-1)/r.Step), len(series))
	before, since, fault, after := series[:begun], series[begun:], series[begun:over], series[over:]

	v := &Recovery{Usual: s.Arrivals.Rate}
	if v.Usual == 0 {
		v.Usual = r.goodput(before[begun/4:]) // the first quarter is for warming up
	}
	end := after[len(after)-min(max(len(after)/4, 1), len(after)):]
	v.EndRate = r.goodput(end)
	n := max(int(span/r.Step), 1)
	v.Known = len(after) >= n && v.Usual > 0
	for i := 0; i+n <= len(after) && v.Known; i++ {
		if r.goodput(after[i:i+n]) >= healthy*v.Usual {
			v.Again, v.After = true, time.Duration(over+i)*r.Step-until
			break
		}
	}
	v.Recovered = v.Again && v.EndRate >= stayed(v.Usual, time.Duration(len(end))*r.Step)

	most, answered := 0, 0
	for _, b := range since {
		most = max(most, b.Tries+b.Retries)
		answered += b.Good
	}
	usual := s.Capacity()
	if usual == 0 {
		usual = v.Usual
	}
	v.Overshoot = ratio(float64(most)/r.Step.Seconds(), usual)
	if expected := v.Usual * (time.Duration(len(since)) * r.Step).Seconds(); expected > 0 {
		v.Lost = max(0, 1-float64(answered)/expected)
	}
	calls, attempts := 0, 0
	for _, b := range fault {
		calls += b.Calls
		attempts += b.Tries + b.Retries
	}
	v.During = ratio(float64(attempts), float64(calls))
	r.Recovery = v
}

// stayed is the number of calls answered a second that shows, over so long a time, that a service has stayed healthy. Few
// calls in a short time vary by more than a tenth, but half of them is never healthy.
func stayed(usual float64, over time.Duration) float64 {
	return max(usual/2, min(steady*usual, usual-chance*math.Sqrt(ratio(usual, over.Seconds()))))
}

// goodput is the number of calls answered a second.
func (r *Result) goodput(bins []Bin) float64 {
	sum := 0
	for i := range bins {
		sum += bins[i].Good
	}
	return ratio(float64(sum), float64(len(bins))*r.Step.Seconds())
}

// ratio is zero where there is nothing to compare with.
func ratio(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return x / y
}
