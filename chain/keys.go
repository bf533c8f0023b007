package chain

import (
	"fmt"
	"time"
)

// leases finds keys that another request may take over while the first is still worked on.
func (k *checker) leases() {
	for i, s := range k.Services {
		n := &k.nodes[i]
		if s.Lease <= 0 || n.disorder || n.duplicate {
			continue
		}
		works, figure := limit(s.Limit), Figure{"limit", span(s.Limit)}
		text := fmt.Sprintf("%s works on a request for up to %s", s.Name, span(works))
		if works == forever {
			e := patient(n.in)
			if e == nil {
				continue
			}
			works, figure = e.attempt(), k.figure(bound{e.attempt(), e.from, e, attemptField(e.Call)})
			text = fmt.Sprintf("%s works on a request for as long as %s waits, up to %s", s.Name, k.name(e.from), span(works))
		}
		if s.Lease < works {
			k.atService(i, leaseTooShort, "lease", fmt.Sprintf("%s, but holds its key for %s only.", text, span(s.Lease)),
				fmt.Sprintf("Raise lease of %s from %s to %s.", s.Name, span(s.Lease), span(works)),
				Figure{"lease", span(s.Lease)}, figure)
		}
	}
}

// patient returns the call that waits longest for one attempt, nil if there is none that ends and is in order.
func patient(calls []*edge) (longest *edge) {
	for _, e := range calls {
		if e.attempt() != forever && !e.disorder && (longest == nil || e.attempt() > longest.attempt()) {
			longest = e
		}
	}
	return longest
}

// A horizon is the longest time over which a key can come again, and the call whose retries take that long.
type horizon struct {
	time.Duration
	by *edge
}

// retentions finds answers that are forgotten while a retry may still ask for them.
//
// A key comes again for as long as the call that carries it is tried again. A service that was itself called with a key hands
// the same operation down, so that the retries of its caller count too, and so on up to the first call without a key. Times
// are not added up: what is below ends with what is above, as the time left is handed down.
func (k *checker) retentions() {
	at := make([]horizon, len(k.nodes))
	for _, i := range k.order {
		for _, e := range k.nodes[i].out {
			if e.to < 0 || e.cycle != nil || !e.Keyed {
				continue
			}
			h := at[i]
			again := e.retries() && !(e.unfit && e.fitting == 1)
			if total := e.Total(); again && total > h.Duration && total != forever && !e.disorder {
				h = horizon{total, e}
			}
			if h.Duration > at[e.to].Duration {
				at[e.to] = h
			}
		}
	}
	for i, s := range k.Services {
		if h := at[i]; s.Retention > 0 && s.Retention < h.Duration {
			k.atService(i, retentionTooShort, "retention",
				fmt.Sprintf("%s forgets an answer after %s, but %s may send its key again for %s.", s.Name, span(s.Retention), k.name(h.by.from), span(h.Duration)),
				fmt.Sprintf("Raise retention of %s from %s to at least %s; 24h leave room for a person who tries again.", s.Name, span(s.Retention), span(h.Duration)),
				Figure{"retention", span(s.Retention)}, Figure{k.place(h.by) + ": policy.timeout", span(h.Duration)})
		}
	}
}
