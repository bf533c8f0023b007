package call

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/riprap-go/riprap"
)

const (
	hops    = 11   // of a call that follows redirects, the first one included
	callers = 1000 // that fail together
	most    = 1000 // attempts that are looked at; of more only that is said
	shown   = 12   // retries whose waits are; further ones are like the last
	samples = 1 << 15

	// The rate of requests is taken over so long a time, or over a twenty-fifth of the time in which they come, if that
	// is longer: over less luck would decide.
	busiest = 100 * time.Millisecond
	shares  = 25
)

// A plan is what an order can come to.
type plan struct {
	*order
	attempts int    // most of a single hop
	requests int    // most of the whole call, zero if there is no limit
	limit    string // the flag that keeps it to so many; empty if none does
	steps    []step // the first retries of a hop

	worst   time.Duration // of the whole call; zero if there is no bound
	waits   time.Duration // the longest of the call, drawn by itself
	asked   time.Duration // the same if the server asks for as much as it may; below zero: no bound
	through time.Duration // attempts, and the longest waits that may be; zero if there is no bound
}

// A step is a retry: the wait before it, and how many requests a second come of callers who failed together.
type step struct {
	least, mean, most time.Duration
	rate              float64 // at the busiest moment; infinite if all come in one instant
}

// foresee makes the plan. Every figure comes from the engine: the waits from Backoff.Delay, how many attempts there can
// be from Operation.
func (o *order) foresee() *plan {
	p := &plan{order: o}
	p.attempts, p.limit = o.attempts()
	p.steps = o.steps(min(p.attempts-1, shown))
	if p.limit != "" {
		p.requests = p.attempts
	}
	if limited := hops + o.retries; o.follow && p.limit != "" {
		p.requests = hops * p.attempts
		if o.retries > 0 && limited < p.requests {
			p.requests, p.limit = limited, "--budget"
		}
	}
	p.bound()
	return p
}

// attempts returns how many of them a hop has if all fail at once and every wait is the shortest, and the flag that ends
// them, if one does before they are too many to look at.
func (o *order) attempts() (n int, limit string) {
	policy := o.policy
	policy.Budget = budget(o.retries)
	policy.MinAttempt = 10 * time.Millisecond // riphttp's
	policy.Rand = func() float64 { return math.Nextafter(1, 0) }
	now := time.Unix(0, 0)
	op := riprap.Operation{Policy: &policy}
	if o.timeout > 0 {
		op.Deadline = now.Add(o.timeout)
	}
	for {
		op.Begin(now)
		wait, stop := op.Next(now, errFailed)
		switch {
		case errors.Is(stop, riprap.ErrAttempts):
			return op.Attempts, "--attempts"
		case errors.Is(stop, riprap.ErrBudget):
			return op.Attempts, "--budget"
		case errors.Is(stop, riprap.ErrDeadline):
			return op.Attempts, "--timeout"
		case op.Attempts == most:
			return op.Attempts, ""
		}
		now = now.Add(wait)
	}
}

var errFailed = errors.New("failed") // as every attempt does that the plan looks at

// steps follows callers who fail together, each attempt in no time, through their retries. They are drawn evenly: for
// each retry there is one in each of as many equal parts of the range of u, in an order of its own, so that means are
// exact where waits do not depend on each other.
func (o *order) steps(n int) []step {
	steps := make([]step, 0, n)
	shuffled := rand.New(rand.NewPCG(1, 1))
	arrivals, waits := make([]time.Duration, samples), make([]time.Duration, samples)
	b := o.policy.Backoff
	var s step
	for retry := range n {
		s.least = b.Delay(retry+1, s.least, math.Nextafter(1, 0))
		s.most = b.Delay(retry+1, s.most, 0)
		sum := 0.0
		for i, at := range shuffled.Perm(samples) {
			u := (float64(at) + 0.5) / samples
			waits[i] = b.Delay(retry+1, waits[i], u)
			arrivals[i] = plus(arrivals[i], waits[i])
			sum += float64(waits[i])
		}
		s.mean = time.Duration(sum / samples)
		s.rate = rate(arrivals)
		steps = append(steps, s)
	}
	return steps
}

// rate is how many requests a second come at most, of so many callers, at the busiest moment.
func rate(arrivals []time.Duration) float64 {
	sorted := slices.Sorted(slices.Values(arrivals))
	if sorted[len(sorted)-1]-sorted[0] < time.Millisecond {
		return math.Inf(1)
	}
	window := max(busiest, (sorted[len(sorted)-1]-sorted[0])/shares)
	first, peak := 0, 0
	for i, at := range sorted {
		for at-sorted[first] > window {
			first++
		}
		peak = max(peak, i+1-first)
	}
	return float64(peak) / samples * callers / window.Seconds()
}

// bound adds up the longest that the call can take until the header of its answer is there.
func (p *plan) bound() {
	o := p.order
	retries := p.requests - 1
	if o.follow {
		retries = p.requests - hops
	}
	wait := time.Duration(0)
	for i := range max(retries, 0) {
		n := i%max(p.attempts-1, 1) + 1 // each hop begins with the first wait again
		if n == 1 {
			wait = 0
		}
		wait = o.policy.Backoff.Delay(n, wait, 0)
		p.waits = plus(p.waits, wait)
		p.asked = plus(p.asked, max(wait, plus(o.policy.MaxWait, o.policy.MaxWait/5)))
	}
	if o.policy.MaxWait < 0 && retries > 0 {
		p.asked = -1
	}
	if p.requests > 0 && o.policy.AttemptTimeout > 0 && p.asked >= 0 {
		p.through = plus(p.tried(), p.asked)
	}
	p.worst = p.through
	if o.timeout > 0 && (p.through == 0 || p.through > o.timeout) {
		p.worst = o.timeout
	}
}

// tried is how long the attempts take, if each takes as long as it may.
func (p *plan) tried() time.Duration {
	if p.policy.AttemptTimeout > math.MaxInt64/time.Duration(max(p.requests, 1)) {
		return math.MaxInt64
	}
	return time.Duration(p.requests) * p.policy.AttemptTimeout
}

// plus adds durations, up to the longest that there is.
func plus(a, b time.Duration) time.Duration {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// cut reports whether --timeout makes an end before everything else does.
func (p *plan) cut() bool { return p.worst > 0 && p.worst != p.through }
