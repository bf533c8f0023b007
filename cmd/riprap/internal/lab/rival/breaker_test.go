package rival

import (
	"testing"
	"time"
)

func TestTheBreakerAllowsRetriesWhileThereWereFewFailuresForTheCalls(t *testing.T) {
	b := &Breaker{Share: 0.1}
	first(b, 91, 0, nil)
	first(b, 9, 0, errFailed)
	b.Ended(0, 2, errFailed, errFailed) // a retry's failure counts, and is no call
	if !b.Retry(0, errFailed) {
		t.Error("no retry at 10 failures for 100 calls, want one: it is the share, not more")
	}
	b.Ended(0, 3, errFailed, errFailed)
	if b.Retry(0, errFailed) {
		t.Error("a retry at 11 failures for 100 calls, two of them of retries, want none")
	}
	first(b, 10, time.Hour, nil)
	if !b.Retry(time.Hour, errFailed) {
		t.Error("no retry at 11 failures for 110 calls: it counts for ever")
	}
}

func TestCircuitRefusesFirstTriesUntilOneSucceeds(t *testing.T) {
	c := &Circuit{}
	fail := func(now time.Duration, times int) {
		for range times {
			c.Ended(now, 1, nil, errFailed)
		}
	}
	admits := func(now time.Duration, want bool, when string) {
		t.Helper()
		if got := c.Admit(now, 1, 0); got != want {
			t.Errorf("Admit %s: got %v, want %v", when, got, want)
		}
	}
	fail(0, 5)
	c.Ended(0, 1, nil, nil)
	fail(0, 5)
	admits(0, true, "after five failures, a success and five failures")
	fail(time.Second, 1)
	admits(time.Second, false, "after six failures in a row")
	c.Ended(30*time.Second, 1, nil, nil)
	admits(30*time.Second, false, "after a late success of an attempt sent before")
	admits(61*time.Second, true, "a minute later")
	admits(61*time.Second, false, "while the one let through is under way")
	fail(62*time.Second, 1)
	admits(121*time.Second, false, "less than a minute after that one failed")
	admits(122*time.Second, true, "a minute after that one failed")
	c.Ended(123*time.Second, 1, nil, nil)
	admits(123*time.Second, true, "after the one let through has succeeded")
	fail(124*time.Second, 5)
	admits(124*time.Second, true, "after five more failures")

	sensitive := &Circuit{Failures: 1, Open: time.Second}
	sensitive.Ended(0, 1, nil, errFailed)
	if refused, let := !sensitive.Admit(time.Second-1, 1, 0), sensitive.Admit(time.Second, 1, 0); !refused || !let {
		t.Errorf("one failure, then a second: got refused %v, let through %v, want both", refused, let)
	}
}
