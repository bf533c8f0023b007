package live

import (
	"cmp"
	"math"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/lab/sim"
)

// hasten returns a candidate's policy for a scenario that runs at a speed. What is zero means in a simulation what it
// means in riprap.Do, and something else in a riphttp.Transport: so nothing is left zero that this concerns.
func hasten(s *sim.Scenario, c *sim.Candidate, speed float64) riprap.Policy {
	faster := func(d time.Duration) time.Duration {
		return max(time.Duration(float64(d)/speed), 1) // zero would mean the default
	}
	bound := func(d time.Duration) time.Duration {
		if d <= 0 {
			return -1 // none
		}
		return faster(d)
	}
	p := c.Policy
	p.Timeout = bound(p.Timeout)
	p.AttemptTimeout = bound(cmp.Or(p.AttemptTimeout, s.Timeout))
	p.MinAttempt = faster(p.MinAttempt)
	// Without jitter, what a Backoff returns is its limits. It knows the defaults.
	limits := riprap.Backoff{Base: p.Backoff.Base, Max: p.Backoff.Max, Jitter: riprap.None}
	p.Backoff.Base = faster(limits.Delay(1, 0, 0))
	p.Backoff.Max = faster(limits.Delay(1000, 0, 0))

	p.Budget = &riprap.Budget{Ratio: math.Inf(1)} // where a Transport would make one
	if b := c.Budget; b != nil {
		// The reserve alone keeps its time, an hour, in which a run ends many times over.
		p.Budget = &riprap.Budget{Ratio: b.Ratio, Reserve: b.Reserve, Window: faster(cmp.Or(max(b.Window, 0), window))}
	}
	return p
}

// window is that of a riprap.Budget in which none is set.
const window = 10 * time.Second
