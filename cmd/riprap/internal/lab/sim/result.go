package sim

import "time"

// A Result is what a simulation came to. Attempts are those at the last service, whose callers may be services too.
type Result struct {
	Calls    int // made by clients
	Answered int // in time
	GaveUp   int
	Attempts int // at the last service, first tries and retries
	Withheld int // attempts that a rival did not let out
	Served   int // attempts that the last service has worked on
	Wasted   int // of those: when the work was done, the caller had left
	Refused  int // because there was no room
	Dropped  int // because their callers had left, or nearly so

	Events int           // that were simulated
	Last   time.Duration // when the last thing happened

	// Waits are what came between attempts: the first before the second attempt, and so on.
	Waits []Waits

	Step   time.Duration
	Series []Bin // one for each Step

	// Recovery is what became of the service after the last trigger; nil if there is none.
	Recovery *Recovery
}

// Waits sums up waits.
type Waits struct {
	Count int
	Sum   time.Duration
}

// A Bin counts what happened in one step of time.
type Bin struct {
	Calls   int32 // made by clients
	Tries   int32 // attempts at the last service, none of which is a retry of anybody
	Retries int32 // the other attempts at the last service
	Reached int32 // attempts that came to the last service
	Served  int32
	Wasted  int32
	Refused int32
	Dropped int32
	Good    int32 // calls answered
	GaveUp  int32 // calls that failed
	Waiting int32 // the most attempts that waited at the last service, or were in the crowd
}

func (b *Bin) waiting(n int) { b.Waiting = max(b.Waiting, int32(n)) }

// A Recovery is what became of the service after the last trigger was over.
type Recovery struct {
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

	// EndRate is the number of calls answered a second in the last part of the simulated time, and Usual without a trigger.
	EndRate, Usual float64
}

func newResult(s *Scenario) *Result {
	r := &Result{Step: s.Step}
	if r.Step <= 0 {
		r.Step = time.Second
	}
	if s.Length > 0 {
		r.Series = make([]Bin, 0, int(s.Length/r.Step)+1)
	}
	return r
}

// nextBin begins the next step of the series.
func (w *world) nextBin() {
	r := w.result
	r.Series = append(r.Series, Bin{})
	w.bin = &r.Series[len(r.Series)-1]
	w.binEnds += r.Step
}

func (r *Result) waited(n int, wait time.Duration) {
	const longest = 16 // retries that are told apart
	if n > longest {
		return
	}
	for len(r.Waits) < n {
		r.Waits = append(r.Waits, Waits{})
	}
	r.Waits[n-1].Count++
	r.Waits[n-1].Sum += wait
}

const (
	healthy = 0.95             // share of the usual answers from which on a service is healthy
	span    = 10 * time.Second // for which it has to be, on average
	steady  = 0.9              // share of the usual answers, at the end, of a service that has stayed healthy
)

// measure finds out how the simulation went, at its end.
func (r *Result) measure(s *Scenario, last time.Duration) {
	r.Last = last
	from, until := s.Fault()
	if s.Length == 0 || until == 0 {
		return
	}
	if len(r.Series) > int(s.Length/r.Step) {
		r.Series = r.Series[:s.Length/r.Step] // the last one is over before it begins
	}
	index := func(t time.Duration) int { return min(int(t/r.Step), len(r.Series)) }
	rate := func(bins []Bin, f func(*Bin) int32) float64 {
		sum := 0
		for i := range bins {
			sum += int(f(&bins[i]))
		}
		return float64(sum) / (float64(len(bins)) * r.Step.Seconds())
	}
	good := func(b *Bin) int32 { return b.Good }

	v := &Recovery{Usual: s.Arrivals.Rate}
	if v.Usual == 0 {
		v.Usual = rate(r.Series[index(from)/4:index(from)], good) // the first quarter is for warming up
	}
	last10 := r.Series[max(index(until), len(r.Series)-max(len(r.Series)-index(until), 4)/4):]
	v.EndRate = rate(last10, good)
	n := max(index(span), 1)
	for i := index(until); i+n <= len(r.Series); i++ {
		if rate(r.Series[i:i+n], good) >= healthy*v.Usual {
			v.Again, v.After = true, time.Duration(i)*r.Step-until
			break
		}
	}
	v.Recovered = v.Again && v.EndRate >= steady*v.Usual

	usual := s.Capacity()
	if usual == 0 {
		usual = v.Usual
	}
	sent := int32(0)
	answered := 0
	for _, b := range r.Series[index(from):] {
		sent = max(sent, b.Tries+b.Retries)
		answered += int(b.Good)
	}
	v.Overshoot = float64(sent) / r.Step.Seconds() / usual
	expected := v.Usual * (s.Length - from).Seconds()
	v.Lost = max(0, 1-float64(answered)/expected)
	calls, attempts := 0, 0
	for _, b := range r.Series[index(from):index(until)] {
		calls += int(b.Calls)
		attempts += int(b.Tries + b.Retries)
	}
	v.During = float64(attempts) / float64(max(calls, 1))
	r.Recovery = v
}
