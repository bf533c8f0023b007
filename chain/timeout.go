package chain

import (
	"fmt"
	"math"
	"time"
)

// untimed finds a call that nothing ends but its caller.
func (k *checker) untimed(e *edge) {
	if e.Total() != forever {
		return
	}
	e.endless = true
	why := "neither an attempt nor the whole of it has a timeout"
	figures := []Figure{{"policy.timeout", written(e.Policy.Timeout)}}
	switch {
	case e.attempt() == forever:
		figures = append(figures, Figure{"policy.attemptTimeout", written(e.Policy.AttemptTimeout)})
	case e.attempts() == math.MaxInt:
		why = "its attempts are bounded, but not their number"
		figures = append(figures, Figure{"policy.maxAttempts", "none"})
	default:
		why = "it waits between its attempts for as long as " + e.To + " asks for"
		figures = append(figures, Figure{"policy.maxWait", written(e.Policy.MaxWait)})
	}
	k.atCall(e, noTimeout, "policy.timeout",
		fmt.Sprintf("Nothing ends the call of %s to %s: %s.", k.name(e.from), e.To, why),
		fmt.Sprintf("Set policy.timeout of %s to %s.", k.place(e), k.timeoutFor(e)), figures...)
}

// timeoutFor advises a timeout for a call that has none.
func (k *checker) timeoutFor(e *edge) string {
	needs, window := k.needs(e), k.nodes[e.from].window.tight.Duration
	if p99 := scale(max(e.P99, 0), sensible); p99 < window {
		needs = max(needs, p99)
	}
	switch to := below(window, needs); {
	case window != forever && to > 0:
		return span(to)
	case window != forever:
		return fmt.Sprintf("less than %s, and what is below it accordingly", span(window))
	case needs > 0:
		return span(above(needs))
	}
	return span(30*time.Second) + ", or less if its callers do not wait that long"
}

// An attempt's bound is good from two to about three times the p99.
const (
	nearest  = 2
	sensible = 3
	farAbove = 10
)

// latency finds an attempt whose bound has little to do with what is observed.
func (k *checker) latency(e *edge) {
	bound, p99 := e.attempt(), e.P99
	if p99 <= 0 || bound == forever || e.disorder || e.unfit {
		return
	}
	field, place := attemptField(e.Call), k.place(e)
	figures := []Figure{{field, span(bound)}, {"p99", span(p99)}}
	switch advised := scale(p99, sensible); {
	case bound < scale(p99, nearest):
		k.atCall(e, boundNearP99, field,
			fmt.Sprintf("An attempt of %s at %s may take %s, which is less than twice its p99 of %s.", k.name(e.from), e.To, span(bound), span(p99)),
			fmt.Sprintf("Raise %s of %s from %s to %s, three times the p99%s.", field, place, span(bound), span(advised), k.accordingly(e, advised)), figures...)
	// A Latency lowers the bound by itself. What it does not do is to hold when the service hangs, so that everywhere else
	// its ceiling is what counts.
	case e.Policy.Latency == nil && bound > max(scale(p99, farAbove), lostPacket):
		k.atCall(e, boundFarAboveP99, field,
			fmt.Sprintf("An attempt of %s at %s may take %s, which is more than ten times its p99 of %s.", k.name(e.from), e.To, span(bound), span(p99)),
			fmt.Sprintf("Lower %s of %s from %s to %s.", field, place, span(bound), span(max(advised, lostPacket))), figures...)
	}
}

// accordingly says whether more has to change if an attempt gets a higher bound.
func (k *checker) accordingly(e *edge, to time.Duration) string {
	higher, crowded := *e.Call, false
	if attemptField(e.Call) == "policy.timeout" {
		higher.Policy.Timeout = to
	} else {
		higher.Policy.AttemptTimeout, crowded = to, e.crowded(to)
	}
	if crowded || higher.Total() >= k.nodes[e.from].window.tight.Duration {
		return ", and what is above accordingly"
	}
	return ""
}

// lostPacket is how long it takes until the first packet of a connection is sent again (RFC 6298, section 2.1). A bound no
// longer than that is not far above anything.
const lostPacket = time.Second
