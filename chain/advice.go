package chain

import (
	"fmt"
	"time"
)

// below returns a time to advise that is less than a bound and more than what needs it, with a tenth kept back if there is
// room, and zero if nothing is between the two.
func below(bound, needs time.Duration) time.Duration {
	for _, d := range []time.Duration{bound - bound/10, needs + (bound-needs)/2} {
		if d = round(d); needs < d && d < bound {
			return d
		}
	}
	return 0
}

// above returns a time to advise that is more than another.
func above(d time.Duration) time.Duration {
	if d >= forever/2 {
		return forever
	}
	return max(round(d+d/5), d+1)
}

// round cuts a time to two digits, so that it looks chosen.
func round(d time.Duration) time.Duration {
	digit := time.Duration(1)
	for d/digit >= 100 {
		digit *= 10
	}
	return d / digit * digit
}

// totalField names the figure that ends a call; attemptField the one that ends an attempt.
func totalField(c *Call) string {
	if c.retries() {
		return "policy.timeout"
	}
	return attemptField(c)
}

func attemptField(c *Call) string {
	if limit(c.Policy.AttemptTimeout) < c.timeout() || c.retries() && limit(c.Policy.AttemptTimeout) == c.timeout() {
		return "policy.attemptTimeout"
	}
	return "policy.timeout"
}

// needs returns how long a call must be: longer than what the service called does, as far as that ends, and long enough for
// its own attempts.
func (k *checker) needs(e *edge) (needs time.Duration) {
	if e.to >= 0 {
		needs = k.below(e.to)
	}
	if n := e.attempts(); n > 1 && limit(e.Policy.AttemptTimeout) < e.timeout() {
		if own := plus(e.begins(n, 0), e.attempt()); own != forever {
			needs = max(needs, own-1) // exactly that is enough
		}
	}
	return needs
}

// below returns how long the longest call of a service takes that ends at all.
func (k *checker) below(i int) (longest time.Duration) {
	for _, e := range k.nodes[i].out {
		if total := e.Total(); total != forever {
			longest = max(longest, total)
		}
	}
	return longest
}

// gives says what a service has to keep to.
func (k *checker) gives(b bound, at int) string {
	switch {
	case b.out == nil && b.at == at:
		return fmt.Sprintf("%s works on a request for %s only", k.name(at), span(b.Duration))
	case b.out == nil:
		return fmt.Sprintf("%s further up works on a request for %s only", k.name(b.at), span(b.Duration))
	case b.out.to == at && b.out.retries():
		return fmt.Sprintf("%s gives %s only %s for an attempt", k.name(b.at), k.name(at), span(b.Duration))
	case b.out.to == at:
		return fmt.Sprintf("%s waits for %s only %s", k.name(b.at), k.name(at), span(b.Duration))
	default:
		return fmt.Sprintf("%s further up waits for %s only %s", k.name(b.at), b.out.To, span(b.Duration))
	}
}

func (k *checker) figure(b bound) Figure {
	if b.out == nil {
		return Figure{k.name(b.at) + ": " + b.field, span(b.Duration)}
	}
	return Figure{k.place(b.out) + ": " + b.field, span(b.Duration)}
}

// raise advises to raise a bound. What is above it may have to follow.
func (k *checker) raise(b bound, to time.Duration) string {
	what, window := b.field+" of "+k.name(b.at), k.nodes[b.at].window
	tooHigh := to > window.patience.Duration
	if b.out != nil {
		what = b.field + " of " + k.place(b.out)
		if both := min(b.out.Policy.Timeout, b.out.Policy.AttemptTimeout); both > 0 && to > max(b.out.Policy.Timeout, b.out.Policy.AttemptTimeout) {
			what = "policy.timeout and policy.attemptTimeout of " + k.place(b.out)
		}
		tooHigh = to >= window.tight.Duration || b.field == "policy.attemptTimeout" && b.out.crowded(to)
	}
	if tooHigh {
		return fmt.Sprintf("Raise %s from %s to %s, and what is above accordingly.", what, span(b.Duration), span(to))
	}
	return fmt.Sprintf("Raise %s from %s to %s.", what, span(b.Duration), span(to))
}
