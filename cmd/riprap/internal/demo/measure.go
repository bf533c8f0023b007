package demo

import (
	"slices"
	"time"
)

const (
	healthy = 0.95            // share of clicks that must be paid for the service to count as healthy
	sustain = 2 * time.Second // for how long: a service that has lost its queue answers everyone for a moment
	settle  = time.Second     // clicks younger than this at the end are not judged
	busy    = time.Second / 2 // shoppers that are later than this make a traffic other than the scenario's
)

// figures are what a series and an account say about a side. They are the shoppers' view, except where the payments service
// or the ledger is named.
type figures struct {
	Elapsed time.Duration // how much of the run there is
	Whole   bool          // all of it

	Made     int // clicks
	Answered int // of them, those that were paid within their shoppers' patience
	Failed   int // that their shoppers were told have failed
	Unknown  int // that their shoppers were told nobody knows about
	Open     int // nothing of these, at the end

	AnsweredShare float64 // of the clicks that are not open
	EndShare      float64 // of the clicks made in the last seconds but one
	Recovered     bool    // EndShare is healthy

	Outage       bool          // the run got beyond its first fault
	Again        bool          // the service became healthy after it
	HealthyAfter time.Duration // if so, this long after it

	Account account // what the ledger says

	InFlight    int     // most clicks that waited for their answer at once
	Retries     int     // sends beyond the first of a layer's call, in all layers
	Sent        int     // requests that reached the payments service, and those refused because nothing listened
	SentPerCall float64 // Sent to Made
	WorstLoad   float64 // most requests to reach the payments service within a second, as a multiple of its capacity

	Worked      int // requests that the payments service worked on to the end
	Wasted      int // of them, those whose callers had gone
	WastedShare float64
	Unheard     int // of them, those whose answer was lost on purpose
	Throttled   int // requests answered 429
	Overflowed  int // requests answered 503
	Refused     int // sends refused
	Waiting     int // most requests waiting in the payments service

	Late time.Duration // the most by which a click was made or worked on too late, because the machine was busy
}

// measure makes figures of a series, which may be shorter than the scenario: then the run was ended early.
func measure(s scenario, b series, a account) figures {
	all := len(b)
	f := figures{
		Elapsed:    time.Duration(all) * step,
		Made:       b.sum(made, 0, all),
		Answered:   b.sum(kept, 0, all),
		Failed:     b.sum(lost, 0, all),
		Unknown:    b.sum(unclear, 0, all),
		Account:    a,
		InFlight:   slices.Max(append(b.inFlight(), 0)),
		Retries:    b.sum(retried, 0, all),
		Worked:     b.sum(worked, 0, all),
		Wasted:     b.sum(wasted, 0, all),
		Unheard:    b.sum(unheard, 0, all),
		Throttled:  b.sum(throttled, 0, all),
		Overflowed: b.sum(overflowed, 0, all),
		Refused:    b.sum(refused, 0, all),
	}
	f.Whole = f.Elapsed >= s.Length
	f.Open = f.Made - f.Answered - f.Failed - f.Unknown
	f.AnsweredShare = share(f.Answered, f.Made-f.Open)
	f.Sent = b.sum(arrived, 0, all) + f.Refused
	f.SentPerCall = share(f.Sent, f.Made)
	f.WastedShare = share(f.Wasted, f.Worked)
	f.WorstLoad = float64(b.worst(arrived, time.Second)) / s.capacity()
	f.Waiting = b.highest(longest, 0, all)
	f.Late = time.Duration(b.highest(behind, 0, all)) * time.Millisecond
	if f.Whole {
		end := all - index(settle)
		f.EndShare = b.keptShare(end-index(sustain), end)
		f.Recovered = f.EndShare >= healthy
	}
	if len(s.Faults) > 0 {
		over := index(s.Faults[0].until())
		f.Outage = over < all
		f.HealthyAfter, f.Again = b.recovery(over, all-index(settle))
	}
	return f
}

// recovery is how long after the bin from it takes until the clicks made over a sustained time get their answers.
func (b series) recovery(from, to int) (time.Duration, bool) {
	for i := from; i+index(sustain) <= to; i++ {
		if b.keptShare(i, i+1) >= healthy && b.keptShare(i, i+index(sustain)) >= healthy {
			return time.Duration(i-from) * step, true
		}
	}
	return 0, false
}

// keptShare is the share of the clicks made in the bins from up to, not including, to that were paid. Without
// clicks it is 0.
func (b series) keptShare(from, to int) float64 {
	return share(b.sum(kept, from, to), b.sum(made, from, to))
}

// sum adds up e over the bins from up to, not including, to.
func (b series) sum(e event, from, to int) int {
	n := 0
	for i := max(from, 0); i < min(to, len(b)); i++ {
		n += b[i][e]
	}
	return n
}

// highest is the highest e in the bins from up to, not including, to.
func (b series) highest(e event, from, to int) int {
	n := 0
	for i := max(from, 0); i < min(to, len(b)); i++ {
		n = max(n, b[i][e])
	}
	return n
}

// worst is the most of e within any span of the width given, or within the whole series if it is shorter.
func (b series) worst(e event, width time.Duration) int {
	most := 0
	for i := range max(1, len(b)-index(width)+1) {
		most = max(most, b.sum(e, i, i+index(width)))
	}
	return most
}

// inFlight is how many clicks waited for their answer at the end of each bin.
func (b series) inFlight() []int {
	n, under := 0, make([]int, len(b))
	for i := range b {
		n += b[i][made] - b[i][answered] - b[i][failed] - b[i][doubted]
		under[i] = n
	}
	return under
}

// each is e in every bin.
func (b series) each(e event) []int {
	values := make([]int, len(b))
	for i := range b {
		values[i] = b[i][e]
	}
	return values
}

func index(at time.Duration) int { return int(at / step) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
