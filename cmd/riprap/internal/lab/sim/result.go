package sim

import (
	"cmp"
	"math"
	"time"
)

// A Result is what a simulation came to. Attempts are those at the last service, whose callers may be services too.
type Result struct {
	// These are the sums of the Series.
	Calls    int // made by clients
	Answered int // in time
	GaveUp   int
	Attempts int // at the last service, first tries and retries
	Served   int // attempts that the last service has worked on
	Wasted   int // of those: when the work was done, the caller had left
	Refused  int // because there was no room
	Dropped  int // because their callers had left, or nearly so

	Withheld int // attempts that a rival did not let out

	Events int           // that were simulated
	Last   time.Duration // when the last thing happened

	// Waits are what came between attempts: the first before the second attempt, and so on.
	Waits []Waits

	Step   time.Duration // at least the scenario's
	Series []Bin         // one for each Step; the last may be cut short

	// Recovery is what became of the service after the last trigger; nil if there is none.
	Recovery *Recovery
}

// Total sums up the Series, once it is complete.
func (r *Result) Total() {
	for i := range r.Series {
		b := &r.Series[i]
		r.Calls += int(b.Calls)
		r.Answered += int(b.Good)
		r.GaveUp += int(b.GaveUp)
		r.Attempts += int(b.Tries) + int(b.Retries)
		r.Served += int(b.Served)
		r.Wasted += int(b.Wasted)
		r.Refused += int(b.Refused)
		r.Dropped += int(b.Dropped)
	}
}

// Waits sums up waits.
type Waits struct {
	Count int
	Sum   float64 // nanoseconds; a Duration has no room for those of a great many calls
}

// Add takes in another sum.
func (w *Waits) Add(v Waits) {
	w.Count += v.Count
	w.Sum += v.Sum
}

// Mean is zero if there were none.
func (w Waits) Mean() time.Duration {
	mean := w.Sum / float64(max(w.Count, 1))
	if mean >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(mean)
}

// A Bin counts what happened in one step of time.
type Bin struct {
	Calls   int // made by clients
	Tries   int // attempts at the last service, none of which is a retry of anybody
	Retries int // the other attempts at the last service
	Reached int // attempts that came to the last service
	Served  int
	Wasted  int
	Refused int
	Dropped int
	Good    int // calls answered
	GaveUp  int // calls that failed
	Waiting int // the most attempts that waited at the last service, or were in the crowd
}

func (b *Bin) waiting(n int) { b.Waiting = max(b.Waiting, n) }

// add takes in the step after.
func (b *Bin) add(c *Bin) {
	b.Calls += c.Calls
	b.Tries += c.Tries
	b.Retries += c.Retries
	b.Reached += c.Reached
	b.Served += c.Served
	b.Wasted += c.Wasted
	b.Refused += c.Refused
	b.Dropped += c.Dropped
	b.Good += c.Good
	b.GaveUp += c.GaveUp
	b.Waiting = max(b.Waiting, c.Waiting)
}

// bins is how many a series has at most, so that it takes no more memory for a longer time.
const bins = 2000

func newResult(s *Scenario) *Result {
	r := &Result{Step: cmp.Or(s.Step, time.Second)}
	if s.Length > 0 {
		r.Step = min(r.Step, s.Length)
	}
	for s.Length > bins*r.Step {
		r.Step *= 2
	}
	r.Series = make([]Bin, 0, int(s.Length/r.Step)+1)
	return r
}

// nextBin begins the next step of the series.
func (w *world) nextBin() {
	r := w.result
	if len(r.Series) == bins {
		r.halve()
	}
	r.Series = append(r.Series, Bin{})
	w.bin = &r.Series[len(r.Series)-1]
	w.binEnds += r.Step
}

// halve makes one bin of two.
func (r *Result) halve() {
	half := r.Series[:len(r.Series)/2]
	for i := range half {
		half[i] = r.Series[2*i]
		half[i].add(&r.Series[2*i+1])
	}
	r.Series = half
	r.Step *= 2
}

func (r *Result) waited(n int, wait time.Duration) {
	const longest = 16 // retries that are told apart
	if n > longest {
		return
	}
	for len(r.Waits) < n {
		r.Waits = append(r.Waits, Waits{})
	}
	r.Waits[n-1].Add(Waits{1, float64(wait)})
}
