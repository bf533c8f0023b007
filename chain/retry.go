package chain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/riprap-go/riprap"
)

// retry finds retries that harm.
func (k *checker) retry(e *edge) {
	if e.unfit && e.fitting == 1 {
		return // there will be none
	}
	p, caller, place := &e.Policy, k.name(e.from), k.place(e)
	if p.Backoff.Jitter == riprap.None {
		k.atCall(e, noJitter, "policy.backoff.jitter",
			fmt.Sprintf("The waits of %s before it tries %s again are not random.", caller, e.To),
			fmt.Sprintf("Change policy.backoff.jitter of %s from none to full.", place), Figure{"policy.backoff.jitter", "none"})
	}
	if unlimited(p.Budget) {
		has, fix, value := "no budget limits", "Give %s a policy.budget, one for all calls to %s: {ratio: 0.2, reserve: 10} is the default.", "none"
		if p.Budget != nil {
			has, fix, value = "its budget, which is unlimited, does not limit", "Change policy.budget.ratio of %s from unlimited to 0.2, one for all calls to %s.", "unlimited"
		}
		k.atCall(e, noBudget, "policy.budget",
			fmt.Sprintf("%s makes up to %s at %s for a call, and %s how many of all calls do so.", caller, times(e.attempts(), "attempt"), e.To, has),
			fmt.Sprintf(fix, place, e.To), Figure{"policy.maxAttempts", count(e.attempts())}, Figure{"policy.budget", value})
	}
	if !e.Idempotent && !e.Keyed {
		k.atCall(e, retryNotSafe, "idempotent",
			fmt.Sprintf("%s tries %s again, though the call is neither idempotent nor carries a key.", caller, e.To),
			fmt.Sprintf("Lower policy.maxAttempts of %s from %s to 1; or send an idempotency key that %s honors, and set keyed; or set idempotent, if the call is.",
				place, attempts(e.Call), e.To),
			Figure{"policy.maxAttempts", count(e.attempts())}, Figure{"idempotent", "false"}, Figure{"keyed", "false"})
	}
}

// unlimited reports whether a budget grants every retry. Those above it must grant it too; with more than three of them, none
// is granted.
func unlimited(b *riprap.Budget) bool {
	for range 4 {
		if b == nil {
			return true
		}
		if !math.IsInf(b.Ratio, 1) {
			return false
		}
		b = b.Parent
	}
	return b == nil
}

// A load is how many calls arrive at a service for one at the top, by the way of the most that is within the limit.
type load struct {
	calls int   // zero means that every way is above the limit
	top   int   // where that way begins
	via   *edge // the last call on it that is tried again, nil if there is none
}

const defaultMaxCalls = 10

// multiplied finds the calls at which the product of attempts on the way from the top comes above the limit. What is below
// follows from that.
func (k *checker) multiplied() {
	most := k.MaxCalls
	if most == 0 {
		most = defaultMaxCalls
	}
	if most < 0 {
		return
	}
	loads := make([]load, len(k.nodes))
	for _, i := range k.order {
		if len(k.nodes[i].in) == 0 {
			loads[i] = load{calls: 1, top: i}
		}
		for _, e := range k.nodes[i].out {
			if e.cycle != nil || loads[i].calls == 0 {
				continue
			}
			l := loads[i]
			if e.retries() {
				l.via = e
			}
			e.counted = e.attempts()
			if e.unfit && e.counted > most {
				e.counted = e.fitting // too many by itself, and so it is said already
			}
			l.calls = product(l.calls, e.counted)
			if l.calls > most {
				k.tooMany(e, l, loads, most)
			} else if e.to >= 0 && l.calls > loads[e.to].calls {
				loads[e.to] = l
			}
		}
	}
}

func (k *checker) tooMany(e *edge, l load, loads []load, most int) {
	var factors []string
	var figures []Figure
	top, all, others := e, 1, 1 // the first call that is tried again, the product, and that without it
	for via := e; via != nil; via = loads[via.from].via {
		top, all, others = via, product(all, via.counted), all
		factors = append(factors, count(via.counted))
		figures = append(figures, Figure{k.place(via) + ": policy.maxAttempts", count(via.attempts())})
	}
	slices.Reverse(factors)
	slices.Reverse(figures)
	calls := count(l.calls)
	switch {
	case l.calls == math.MaxInt:
		calls = "more than can be counted"
	case len(factors) > 1:
		calls = strings.Join(factors, " × ") + " = " + calls
	}
	fix := fmt.Sprintf("of %s from %s to %d.", k.place(e), attempts(e.Call), max(most/loads[e.from].calls, 1))
	// Retries belong next to what fails, so the layer at the top is the first that should have none.
	if top != e && others <= most {
		fix = fmt.Sprintf("of %s from %s to %d, or %s", k.place(top), attempts(top.Call), most/others, fix)
	}
	k.atCall(e, retriesMultiply, "policy.maxAttempts",
		fmt.Sprintf("While %s is down, one call at %s becomes %s there, and at most %d are allowed.", e.To, k.name(l.top), calls, most),
		"Lower policy.maxAttempts "+fix,
		append(figures, Figure{"calls", count(l.calls)}, Figure{"maxCalls", count(most)})...)
}
