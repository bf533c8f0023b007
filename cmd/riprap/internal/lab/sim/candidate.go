package sim

import (
	"time"

	"github.com/riprap-go/riprap"
)

// A Candidate is a way to call a service: a policy, and what is set up beside it.
type Candidate struct {
	Name  string
	About string // in a few words

	// Policy decides about retries. Its Budget is not used, and neither is its Trace. A Rand of nil means the simulation's
	// own source, and an AttemptTimeout of zero the scenario's Timeout.
	Policy riprap.Policy

	// Budget is what each process has; nil means none.
	Budget *Budget

	// Rival makes what decides in each process besides riprap; nil means nothing.
	Rival func() Rival

	// Admission replaces that of the last service; nil keeps it.
	Admission *Admission
}

// A Budget holds the figures of a riprap.Budget.
type Budget struct {
	Ratio   float64
	Reserve int
	Window  time.Duration
}

// A Rival is what another library decides by, in one process. It is asked in the order of its methods. Now is the time
// since the beginning, attempt counts from 1 within a call, and u is uniform in [0,1).
type Rival interface {
	// Admit reports whether an attempt may be sent. If not, it has failed without the service.
	Admit(now time.Duration, attempt int, u float64) bool

	// Ended hears how an attempt that was sent has ended: err is nil for an answer in time and
	// context.DeadlineExceeded if there was none. Prev is how the attempt before it in the same call had ended, nil at
	// first.
	Ended(now time.Duration, attempt int, prev, err error)

	// Retry reports whether the retry that riprap granted after such a failure may be made.
	Retry(now time.Duration, err error) bool

	// Wait returns the wait before that retry: own is riprap's, prev was the one before.
	Wait(own, prev time.Duration, u float64) time.Duration
}

// A process makes calls under a policy of its own, because the budget is its own.
type process struct {
	policy riprap.Policy
	rival  Rival
}

func (w *world) newProcess(c *Candidate, timeout time.Duration) *process {
	p := &process{policy: c.Policy}
	p.policy.Budget = nil // shared with other simulations, it would make them depend on each other
	if p.policy.AttemptTimeout == 0 {
		p.policy.AttemptTimeout = timeout
	}
	if c.Budget != nil {
		p.policy.Budget = &riprap.Budget{Ratio: c.Budget.Ratio, Reserve: c.Budget.Reserve, Window: c.Budget.Window}
	}
	if p.policy.Rand == nil {
		p.policy.Rand = w.random.Float64
	}
	if c.Rival != nil {
		p.rival = c.Rival()
	}
	return p
}
