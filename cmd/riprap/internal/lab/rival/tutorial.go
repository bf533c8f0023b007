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

// Added is the truncated exponential backoff of Google Cloud's documentation (for one, "Exponential backoff" of
// Memorystore for Redis): a random time of up to Spread is added to the exponential wait, and what is longer than Max is
// cut to Max. Once there, all clients wait exactly Max. The wait that it adds to is that of a Backoff without jitter.
type Added struct {
	plain
	Spread, Max time.Duration
}

// Wait adds and clips.
func (a *Added) Wait(own, _ time.Duration, u float64) time.Duration {
	return min(own+time.Duration(float64(a.Spread)*u), a.Max)
}

// Circuit is a circuit breaker inside of the retries. Its zero figures are the defaults of gobreaker
// (github.com/sony/gobreaker): when six attempts in a row have failed it opens and refuses all for a minute, first tries
// too. Then it lets one through, whose end closes it or opens it for another minute.
//
// A Rival is not told which attempt has ended, so that one sent before the circuit opened passes for the one let through
// if it takes longer than Open.
type Circuit struct {
	plain
	Failures int           // in a row; zero means six
	Open     time.Duration // zero means a minute

	failed int
	open   bool
	until  time.Duration // then one is let through
	trying bool          // it is under way
}

// Admit refuses while the circuit is open.
func (c *Circuit) Admit(now time.Duration, _ int, _ float64) bool {
	switch {
	case !c.open:
		return true
	case c.trying, now < c.until:
		return false
	}
	c.trying = true
	return true
}

// Ended counts failures.
func (c *Circuit) Ended(now time.Duration, _ int, _, err error) {
	if c.open && !c.trying {
		return // sent before it opened
	}
	if err == nil {
		c.failed, c.open, c.trying = 0, false, false
		return
	}
	if c.failed++; c.trying || c.failed >= cmp.Or(c.Failures, 6) {
		c.failed, c.open, c.trying = 0, true, false
		c.until = now + cmp.Or(c.Open, time.Minute)
	}
}
