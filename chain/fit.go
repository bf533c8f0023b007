package chain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// fit finds attempts that are too many or too long for the whole call. Attempts without a limit on their number are made for
// as long as there is time, which is one way to use a timeout.
func (k *checker) fit(e *edge) {
	n, total, attempt := e.attempts(), e.timeout(), e.attempt()
	e.fitting = n
	if total == forever || n == math.MaxInt || e.disorder {
		return
	}
	least := max(attempt, e.Policy.MinAttempt)
	begins := e.begins(n, 0)
	takes := plus(begins, least)
	if takes <= total {
		return
	}
	e.unfit, e.fitting = true, e.last(total, least)
	place, now := k.place(e), attempts(e.Call)
	figures := []Figure{
		{"policy.maxAttempts", strconv.Itoa(n)},
		{"policy.attemptTimeout", written(e.Policy.AttemptTimeout)},
		{"longest waits", span(e.waiting(n-1, 0))},
		{"policy.timeout", span(total)},
	}
	text := fmt.Sprintf("%s of %s at %s and the waits between them take up to %s, but the call ends after %s: %s.",
		times(n, "attempt"), span(attempt), e.To, sum(takes), span(total), fits(e.fitting))
	if e.Policy.MinAttempt > attempt {
		text = fmt.Sprintf("%s of %s at %s and the waits between them take up to %s, of which the last must have at least %s, but the call ends after %s: %s.",
			times(n, "attempt"), span(attempt), e.To, sum(takes), span(least), span(total), fits(e.fitting))
		figures = slices.Insert(figures, 2, Figure{"policy.minAttempt", span(least)})
	}
	if limit(e.Policy.AttemptTimeout) >= total {
		text = fmt.Sprintf("The first of %s at %s may take all of the %s that the call has, so that no other is made when %s hangs.",
			times(n, "attempt"), e.To, span(total), e.To)
	}
	fix := fmt.Sprintf("Lower policy.maxAttempts of %s from %s to %d.", place, now, e.fitting)
	if e.fitting == 1 {
		if each := k.shorter(e); each > 0 {
			fix = fmt.Sprintf("Set policy.attemptTimeout of %s to %s.", place, span(each))
			if e.Policy.AttemptTimeout > 0 {
				fix = fmt.Sprintf("Lower policy.attemptTimeout of %s from %s to %s.", place, span(e.Policy.AttemptTimeout), span(each))
			}
			e.fitting = n
		}
	}
	k.atCall(e, attemptsDoNotFit, "policy.maxAttempts", text, fix, figures...)
}

// shorter returns a bound with which all attempts fit, zero if the service called needs more than that for one, or if it would
// be less than half of what somebody has thought right.
func (k *checker) shorter(e *edge) time.Duration {
	n := e.attempts()
	needs := max(scale(max(e.P99, 0), nearest), e.Policy.MinAttempt)
	if e.to >= 0 {
		needs = max(needs, k.below(e.to)+1)
	}
	each := round((e.timeout() - min(e.waiting(n-1, 0), e.timeout())) / time.Duration(n))
	right := min(limit(e.Policy.AttemptTimeout), e.timeout()/time.Duration(n))
	if each <= 0 || each < needs || each < right/2 {
		return 0
	}
	return each
}

func fits(n int) string {
	if n == 1 {
		return "only 1 fits"
	}
	return fmt.Sprintf("only %d fit", n)
}

// attempts writes their number, and that it is the default if nobody has chosen it.
func attempts(c *Call) string {
	if c.Policy.MaxAttempts == 0 {
		return fmt.Sprintf("%d, the default,", defaultMaxAttempts)
	}
	return count(c.attempts())
}

func sum(d time.Duration) string {
	if d == forever {
		return "more than can be counted"
	}
	return span(d)
}

// waits finds limits on the waits between attempts that limit nothing.
func (k *checker) waits(e *edge) {
	if e.endless || e.unfit || e.disorder {
		return
	}
	total, place := min(e.timeout(), limit(k.Services[e.from].Limit)), k.place(e)
	if most := e.Policy.MaxWait; most != 0 && total != forever && limit(most) >= total {
		to := round((total - min(scale(e.attempt(), 2), total)) / 6 * 5) // a fifth is added to it at random
		if to <= 0 {
			to = max(round(total/4), 1)
		}
		k.atCall(e, maxWaitBeyond, "policy.maxWait",
			fmt.Sprintf("%s may ask %s to wait for %s, but the whole call ends after %s.", e.To, k.name(e.from), asked(most), span(total)),
			fmt.Sprintf("Lower policy.maxWait of %s from %s to %s, or leave it out.", place, written(most), span(to)),
			Figure{"policy.maxWait", written(most)}, Figure{"policy.timeout", span(total)})
	}

	n, most := e.attempts(), e.Policy.Backoff.Max
	reached := e.longestWait(n - 1)
	figures := []Figure{{"policy.backoff.max", span(most)}}
	switch {
	case most <= 0:
	case most >= total && total != forever:
		k.atCall(e, capBeyondTotal, "policy.backoff.max",
			fmt.Sprintf("The waits of %s before it tries %s again are capped at %s, but the whole call ends after %s.",
				k.name(e.from), e.To, span(most), span(total)),
			fmt.Sprintf("Lower policy.backoff.max of %s from %s to %s.", place, span(most), span(min(reached, max(round(total/4), 1)))),
			append(figures, Figure{"policy.timeout", span(total)})...)
	// Two attempts have one wait between them: nothing grows, and nobody expects it to.
	case n > 2 && n <= longRun && reached < most:
		k.atCall(e, capNeverReached, "policy.backoff.max",
			fmt.Sprintf("The waits of %s before it tries %s again are capped at %s, but with %s the longest is %s.",
				k.name(e.from), e.To, span(most), times(n, "attempt"), span(reached)),
			fmt.Sprintf("Lower policy.backoff.max of %s from %s to %s.", place, span(most), span(reached)),
			append(figures, Figure{"policy.maxAttempts", strconv.Itoa(n)}, Figure{"longest wait", span(reached)})...)
	}
}

func asked(d time.Duration) string {
	if d < 0 {
		return "as long as it likes"
	}
	return span(d)
}
