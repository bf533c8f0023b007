package chain

import (
	"fmt"
	"time"
)

// A bound is a time that somebody gives: a service's limit on its own work, or a call's on one attempt.
type bound struct {
	time.Duration
	at    int    // the service
	out   *edge  // its call, nil for its limit
	field string // the figure that says so
}

// A window is what a service knows of the time in which it must answer. Several ways lead to a service, and of those that
// are in order only the ends matter: what outlives the tightest is wrong, what is within the loosest is right at least there.
type window struct {
	tight, loose bound
	patience     bound // the longest that a caller waits, for all of its attempts

	// broken says that no way here is in order. Then loose is the bound that was outlived further up, and what outlives it
	// too follows from that: when two timeouts are exchanged, everything between them outlives the one that came up.
	broken bool
}

// outOfOrder finds calls and limits that do not end before the one above them.
//
// A call must be shorter than its caller's limit and than one attempt at its caller, for the caller needs time to answer. A
// limit may be as long as the most patient caller waits for all of its attempts: it is a stop for what went wrong, and equal
// figures on both sides of one call are what everybody writes.
func (k *checker) outOfOrder() {
	in := make([][]window, len(k.nodes)) // what each call brings to a service
	for _, i := range k.order {
		w := k.limited(i, merge(in[i]))
		in[i], k.nodes[i].window = nil, w
		for _, e := range k.nodes[i].out {
			if w := k.within(e, w); e.to >= 0 && e.cycle == nil {
				in[e.to] = append(in[e.to], w)
			}
		}
	}
}

var unbounded = bound{Duration: forever}

// merge joins the windows that the calls of a service give it.
func merge(in []window) window {
	if len(in) == 0 {
		return window{tight: unbounded, loose: unbounded, patience: unbounded}
	}
	merged := in[0]
	for _, w := range in[1:] {
		switch {
		case merged.broken && !w.broken:
			merged = w
		case !merged.broken && w.broken:
		default:
			if w.tight.Duration < merged.tight.Duration {
				merged.tight = w.tight
			}
			if w.loose.Duration > merged.loose.Duration {
				merged.loose = w.loose
			}
			if w.patience.Duration > merged.patience.Duration {
				merged.patience = w.patience
			}
		}
	}
	return merged
}

// limited judges the limit of a service by its window and returns the window for its calls.
func (k *checker) limited(i int, w window) window {
	own := bound{limit(k.Services[i].Limit), i, nil, "limit"}
	switch {
	case own.Duration == forever:
		return w
	case w.broken && own.Duration >= w.loose.Duration:
		k.nodes[i].disorder = own.Duration > w.loose.Duration
		return w
	case w.broken:
		return window{tight: own, loose: own, patience: own}
	case own.Duration > w.patience.Duration:
		k.limitOutlives(i, w)
		w.broken = true
		return w
	}
	if own.Duration < w.tight.Duration {
		w.tight = own
	}
	if own.Duration < w.loose.Duration {
		w.loose = own
	}
	return w
}

// within judges a call by the window of its caller and returns the window that it gives to the service called.
func (k *checker) within(e *edge, w window) window {
	total := e.Total()
	attempt := bound{e.attempt(), e.from, e, attemptField(e.Call)}
	inside := window{tight: attempt, loose: attempt, patience: bound{total, e.from, e, totalField(e.Call)}}
	switch {
	case total == forever: // for no-timeout to say; the service called has the time of its caller, or less for an attempt
		w.patience = w.loose
		if attempt.Duration < w.tight.Duration {
			w.tight = attempt
		}
		if attempt.Duration < w.loose.Duration {
			w.loose, w.broken = attempt, false
		}
		return w
	case total < w.tight.Duration:
		return inside
	case w.broken:
		if total < w.loose.Duration {
			return inside
		}
		e.disorder = true
		return w
	}
	k.callOutlives(e, total, w.tight)
	if total < w.loose.Duration { // by another way than the one found
		return inside
	}
	w.loose, w.broken = w.tight, true
	return w
}

// take notes that a bound takes part in a finding, so that nothing else is said about it: it will change.
func (k *checker) take(b bound) {
	if b.out != nil {
		b.out.disorder = true
	} else {
		k.nodes[b.at].disorder = true
	}
}

func (k *checker) callOutlives(e *edge, total time.Duration, w bound) {
	k.take(w)
	e.disorder = true
	field, place, needs := totalField(e.Call), k.place(e), k.needs(e)
	set := e.Policy.Timeout > 0 || field != "policy.timeout"
	text := fmt.Sprintf("The call of %s to %s may take %s, but %s.", k.name(e.from), e.To, span(total), k.gives(w, e.from))
	if !set {
		text = fmt.Sprintf("The call of %s to %s may take %s: it has no timeout of its own, %s of %s, and waits as long as %s may ask for. But %s.",
			k.name(e.from), e.To, span(total), times(e.attempts(), "attempt"), span(e.attempt()), e.To, k.gives(w, e.from))
	}
	var fix string
	switch to := below(w.Duration, needs); {
	case to == 0:
		fix = k.raise(w, above(max(total, needs)))
	case set:
		fix = fmt.Sprintf("Lower %s of %s from %s to %s.", field, place, span(total), span(to))
	default:
		fix = fmt.Sprintf("Set policy.timeout of %s to %s.", place, span(to))
	}
	k.atCall(e, calleeOutlives, field, text, fix, Figure{field, span(total)}, k.figure(w))
}

func (k *checker) limitOutlives(i int, w window) {
	k.take(w.tight)
	k.take(w.patience)
	k.nodes[i].disorder = true
	own, name := k.Services[i].Limit, k.name(i)
	text := fmt.Sprintf("%s works on a request for up to %s, but no caller waits longer than %s.", name, span(own), span(w.patience.Duration))
	fix := fmt.Sprintf("Lower limit of %s from %s to %s.", name, span(own), span(w.patience.Duration))
	if k.below(i) >= w.patience.Duration {
		fix = k.raise(w.patience, own)
	}
	k.atService(i, calleeOutlives, "limit", text, fix, Figure{"limit", span(own)}, k.figure(w.patience))
}
