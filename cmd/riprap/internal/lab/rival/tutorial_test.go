package rival

import (
	"testing"
	"time"
)

func TestPeriodicBudgetsOfAllProcessesFillAtTheSameInstant(t *testing.T) {
	early, late := &Periodic{}, &Periodic{Retries: 3}
	granted := func(p *Periodic, now time.Duration) (n int) {
		for p.Retry(now, errFailed) {
			n++
		}
		return n
	}
	for _, step := range []struct {
		now         time.Duration
		early, late int
	}{
		{0, 60, 3},
		{59 * time.Second, 0, 0},
		{time.Minute, 60, 3},
		{119 * time.Second, 0, 0},
		{10 * time.Minute, 60, 3}, // what was not used is lost
	} {
		if got := granted(early, step.now); got != step.early {
			t.Errorf("zero Periodic at %v: got %d retries, want %d", step.now, got, step.early)
		}
		if got := granted(late, step.now); got != step.late {
			t.Errorf("Periodic{Retries: 3} at %v: got %d retries, want %d", step.now, got, step.late)
		}
	}
	short := &Periodic{Retries: 1, Period: time.Second}
	if first, second, third := short.Retry(0, nil), short.Retry(time.Second-1, nil), short.Retry(time.Second, nil); !first || second || !third {
		t.Errorf("one retry a second, at 0 s, 0.99 s and 1 s: got %v, %v, %v, want true, false, true", first, second, third)
	}
}

func TestAddedJitterIsGoneAtTheLongestWait(t *testing.T) {
	a := &Added{Spread: time.Second, Max: 32 * time.Second}
	for _, c := range []struct {
		own  time.Duration
		u    float64
		want time.Duration
	}{
		{time.Second, 0, time.Second},
		{4 * time.Second, 0.5, 4500 * time.Millisecond},
		{32 * time.Second, 0, 32 * time.Second},
		{32 * time.Second, 0.9, 32 * time.Second},
		{31500 * time.Millisecond, 0.9, 32 * time.Second},
	} {
		if got := a.Wait(c.own, 0, c.u); got != c.want {
			t.Errorf("Wait(%v, 0, %v): got %v, want %v", c.own, c.u, got, c.want)
		}
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
