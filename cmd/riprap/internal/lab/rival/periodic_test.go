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
