package rival

import (
	"cmp"
	"time"
)

// Breaker allows retries while there have been at most Share failures for each call, ever. It counts the failures of
// retries too, so that it opens earlier than a share of failed calls would ("Fixing retries with token buckets and circuit
// breakers", Marc Brooker, 2022, and the simulator published with it).
type Breaker struct {
	plain
	Share         float64
	calls, failed float64
}

// Admit counts calls.
func (b *Breaker) Admit(_ time.Duration, attempt int, _ float64) bool {
	if attempt == 1 {
		b.calls++
	}
	return true
}

// Ended counts failures.
func (b *Breaker) Ended(_ time.Duration, _ int, _, err error) {
	if err != nil {
		b.failed++
	}
}

// Retry allows while there were few enough.
func (b *Breaker) Retry(time.Duration, error) bool { return b.failed <= b.Share*b.calls }

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
