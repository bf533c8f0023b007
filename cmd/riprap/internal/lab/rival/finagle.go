package rival

import "time"

// Sliding is the retry budget of Finagle (RetryBudget, 2016): each call deposits a share of a retry when it is sent, a
// deposit lasts ten seconds, and beneath it there is a floor of so many retries a second, for each process.
type Sliding struct {
	plain
	Ratio float64 // what a call deposits
	Floor float64 // retries a second, ten seconds of them from the start

	slots   [10]float64 // deposits less withdrawals, a second each
	slot    int64
	balance float64
}

// NewSliding returns the budget with Finagle's figures.
func NewSliding() *Sliding { return &Sliding{Ratio: 0.2, Floor: 10} }

// Admit deposits for the first try of a call.
func (s *Sliding) Admit(now time.Duration, attempt int, _ float64) bool {
	if attempt == 1 {
		s.turn(now)
		s.add(s.Ratio)
	}
	return true
}

// Retry withdraws one.
func (s *Sliding) Retry(now time.Duration, _ error) bool {
	s.turn(now)
	if s.balance+s.Floor*float64(len(s.slots)) < whole {
		return false
	}
	s.add(-1)
	return true
}

func (s *Sliding) add(x float64) {
	s.slots[s.slot%int64(len(s.slots))] += x
	s.balance += x
}

// turn drops what is older than the window.
func (s *Sliding) turn(now time.Duration) {
	present := int64(now / time.Second)
	s.slot = max(s.slot, present-int64(len(s.slots))) // the slots are all turned then, and need it only once
	for s.slot < present {
		s.slot++
		old := &s.slots[s.slot%int64(len(s.slots))]
		s.balance -= *old
		*old = 0
	}
}
