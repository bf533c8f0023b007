package demo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestATallyPutsAnAnswerWhereItCameAndWhereItsCallWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(time.Second)
		tally.countAt(made, 50*time.Millisecond)
		tally.countAt(made, 150*time.Millisecond)
		time.Sleep(350 * time.Millisecond)
		tally.ended(50*time.Millisecond, nil)
		tally.ended(150*time.Millisecond, errors.New("refused"))
		time.Sleep(step)
		b := tally.read()
		if b[3][answered] != 1 || b[0][kept] != 1 {
			t.Errorf("a call made at 50ms and answered at 350ms: got answered %v, kept %v", b.each(answered), b.each(kept))
		}
		if b[3][failed] != 1 || b[1][lost] != 1 {
			t.Errorf("a call made at 150ms that failed at 350ms: got failed %v, lost %v", b.each(failed), b.each(lost))
		}
	})
}

func TestATallyHoldsWholeBinsOfItsRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(time.Second)
		time.Sleep(250 * time.Millisecond)
		if got := len(tally.read()); got != 2 {
			t.Errorf("read after 250ms: got %d bins, want 2", got)
		}
		time.Sleep(time.Hour)
		tally.count(made)
		tally.highest(longest, 7)
		b := tally.read()
		if len(b) != 10 || b.sum(made, 0, 10) != 0 || b.sum(longest, 0, 10) != 0 {
			t.Errorf("read after the end: got %d bins with %d calls, want 10 with none", len(b), b.sum(made, 0, 10))
		}
	})
}

func TestWaitIsRelativeToTheStartAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(time.Second)
		time.Sleep(300 * time.Millisecond)
		if err := tally.wait(t.Context(), 800*time.Millisecond); err != nil || tally.now() != 800*time.Millisecond {
			t.Errorf("wait for 800ms: got %v at %v, want no error at 800ms", err, tally.now())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := tally.wait(ctx, 2*time.Second); !errors.Is(err, context.DeadlineExceeded) || tally.now() != 900*time.Millisecond {
			t.Errorf("wait for 2s with 100ms left: got %v at %v, want a deadline error at 900ms", err, tally.now())
		}
	})
}
