package lab

import (
	"math"
	"slices"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// A summary is what the simulations of one candidate in one scenario came to, seed by seed.
type summary struct {
	scenario  *sim.Scenario
	candidate *sim.Candidate

	seeds     int // that were simulated; the rest was not, because somebody stopped it
	judged    int // in which something went wrong and there was time to see what became of it
	recovered int
	after     sample // seconds from the end of the trigger until the service was healthy, where it was

	overshoot, amplification, during, wasted, lost sample
	answered, admitted, attempts, calls            sample
	completion, events                             sample

	step   time.Duration
	series []sim.Bin // of the first seed
	waits  []sim.Waits
}

// add takes in the result of one more seed.
func (s *summary) add(r *sim.Result) {
	if s.seeds == 0 {
		s.step, s.series = r.Step, r.Series
	}
	s.seeds++
	if v := r.Recovery; v != nil {
		if v.Known {
			s.judged++
		}
		if v.Recovered {
			s.recovered++
			s.after = append(s.after, v.After.Seconds())
		}
		s.overshoot = append(s.overshoot, v.Overshoot)
		s.during = append(s.during, v.During)
		s.lost = append(s.lost, v.Lost)
	}
	s.calls = append(s.calls, float64(r.Calls))
	s.attempts = append(s.attempts, float64(r.Attempts))
	s.amplification = append(s.amplification, share(r.Attempts, r.Calls))
	s.wasted = append(s.wasted, share(r.Wasted, r.Served))
	s.answered = append(s.answered, share(r.Answered, r.Answered+r.GaveUp))
	reached, refused := 0, 0
	for _, b := range r.Series[len(r.Series)/2:] { // until then the service may fill up
		reached += b.Reached
		refused += b.Refused
	}
	s.admitted = append(s.admitted, 1-share(refused, reached))
	s.completion = append(s.completion, r.Last.Seconds())
	s.events = append(s.events, float64(r.Events))
	for i, w := range r.Waits {
		if i == len(s.waits) {
			s.waits = append(s.waits, sim.Waits{})
		}
		s.waits[i].Add(w)
	}
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// A sample is what a figure came to, seed by seed.
type sample []float64

func (s sample) mean() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

// sd is the standard deviation.
func (s sample) sd() float64 {
	if len(s) < 2 {
		return 0
	}
	sum, mean := 0.0, s.mean()
	for _, x := range s {
		sum += float64((x - mean) * (x - mean)) // the conversion keeps processors from fusing it with the sum
	}
	return math.Sqrt(sum / float64(len(s)-1))
}

// median is the middle one, or the lower of the two.
func (s sample) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(s))[(len(s)-1)/2]
}

// wilson is the 95 % interval of a probability of which yes of n trials are known ("Probable Inference", E. B. Wilson,
// 1927). Unlike the usual one it is right for few trials, and where all of them agree.
func wilson(yes, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959964
	p, m := float64(yes)/float64(n), float64(n)
	middle := p + float64(z*z/(2*m))
	width := z * math.Sqrt(float64(p*(1-p))/m+float64(z*z/(4*m*m)))
	scale := 1 + float64(z*z/m)
	return max(0, (middle-width)/scale), min(1, (middle+width)/scale)
}
