package rival

import (
	"cmp"
	"time"
)

// Periodic is the budget of many examples: so many retries in each Period, counted from nothing when the next one begins.
// Periods are those of the clock, so that all processes begin them at the same instant. The zero Periodic allows 60 in a
// minute, the figures of "Site Reliability Engineering" (Beyer and others, 2016, chapter 22), which does not say how the
// minute is counted.
type Periodic struct {
	plain
	Retries int           // zero means 60
	Period  time.Duration // zero means a minute

	period int64
	made   int
}

// Retry counts.
func (p *Periodic) Retry(now time.Duration, _ error) bool {
	if present := int64(now / cmp.Or(p.Period, time.Minute)); present != p.period {
		p.period, p.made = present, 0
	}
	if p.made >= cmp.Or(p.Retries, 60) {
		return false
	}
	p.made++
	return true
}
