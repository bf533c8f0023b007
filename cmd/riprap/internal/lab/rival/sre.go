package rival

import (
	"cmp"
	"math"
	"time"
)

// Adaptive is the client-side throttling of "Site Reliability Engineering" (Beyer and others, 2016, chapter 21): a client
// compares what it wanted to send over the last two minutes with what was accepted, and once the former is more than K
// times the latter it drops attempts by itself, the more the wider they are apart. It limits first tries too.
type Adaptive struct {
	plain
	K      float64       // zero means two
	Window time.Duration // zero means two minutes

	// Hard forgets all that is older than the window, as the book has it. Otherwise the past fades by 1/e in each window,
	// which is what a moving average does, and comes back sooner after a long failure.
	Hard bool

	last             time.Duration
	wanted, accepted float64
	slots            []struct{ wanted, accepted float64 } // so many parts of the window; none unless it is hard
	slot             int64                                // the present one
}

// Admit drops an attempt with the probability max(0, (wanted - K·accepted)/(wanted + 1)).
func (a *Adaptive) Admit(now time.Duration, _ int, u float64) bool {
	a.forget(now)
	p := max(0, (a.wanted-cmp.Or(a.K, 2)*a.accepted)/(a.wanted+1))
	a.add(1, 0)
	return u >= p
}

// Ended counts an answer in time as accepted, and nothing else.
func (a *Adaptive) Ended(now time.Duration, _ int, _, err error) {
	if err == nil {
		a.forget(now)
		a.add(0, 1)
	}
}

func (a *Adaptive) add(wanted, accepted float64) {
	a.wanted += wanted
	a.accepted += accepted
	if a.Hard {
		a.present().wanted += wanted
		a.present().accepted += accepted
	}
}

func (a *Adaptive) present() *struct{ wanted, accepted float64 } {
	return &a.slots[a.slot%int64(len(a.slots))]
}

func (a *Adaptive) forget(now time.Duration) {
	window := cmp.Or(a.Window, 2*time.Minute)
	if !a.Hard {
		fade := math.Exp(-float64(now-a.last) / float64(window))
		a.wanted *= fade
		a.accepted *= fade
		a.last = now
		return
	}
	if a.slots == nil {
		a.slots = make([]struct{ wanted, accepted float64 }, 120)
	}
	until := int64(now / (window / time.Duration(len(a.slots))))
	a.slot = max(a.slot, until-int64(len(a.slots))) // the slots are all forgotten then, and need it only once
	for a.slot < until {
		a.slot++
		old := a.present()
		a.wanted -= old.wanted
		a.accepted -= old.accepted
		old.wanted, old.accepted = 0, 0
	}
}
