package demo

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestATallyPutsAnAnswerWhereItCameAndWhereItsCallWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(time.Second)
		for _, at := range []time.Duration{50, 150, 250} {
			tally.countAt(made, at*time.Millisecond)
		}
		time.Sleep(350 * time.Millisecond)
		tally.ended(7, 50*time.Millisecond, paid)
		tally.ended(8, 150*time.Millisecond, failure)
		tally.ended(9, 250*time.Millisecond, unsure)
		time.Sleep(step)
		b := tally.read()
		if b[3][answered] != 1 || b[0][kept] != 1 {
			t.Errorf("a click made at 50ms and answered at 350ms: got answered %v, kept %v", b.each(answered), b.each(kept))
		}
		if b[3][failed] != 1 || b[1][lost] != 1 {
			t.Errorf("a click made at 150ms that failed at 350ms: got failed %v, lost %v", b.each(failed), b.each(lost))
		}
		if b[3][doubted] != 1 || b[2][unclear] != 1 {
			t.Errorf("a click made at 250ms of which nothing was known at 350ms: got doubted %v, unclear %v", b.each(doubted), b.each(unclear))
		}
		if want := []int{1, 2, 3, 0}; !slices.Equal(b.inFlight(), want) {
			t.Errorf("three clicks that end at 350ms: got %v in flight, want %v", b.inFlight(), want)
		}
		if got, want := tally.outcomes(), (map[int]told{7: paid, 8: failure, 9: unsure}); !maps.Equal(got, want) {
			t.Errorf("outcomes: got %v, want %v", got, want)
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

func TestATallyBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tally := newTally(time.Second)
		time.Sleep(300 * time.Millisecond) // until the services are up
		tally.begin()
		time.Sleep(250 * time.Millisecond)
		if got, want := tally.now(), 250*time.Millisecond; got != want {
			t.Errorf("now, 250ms after begin: got %v, want %v", got, want)
		}
	})
}

func TestTheFirstErrorIsKept(t *testing.T) {
	tally := newTally(time.Second)
	first := errors.New("disk full")
	tally.fail(first)
	tally.fail(errors.New("closed"))
	if err := tally.broken(); err != first {
		t.Errorf("broken after two errors: got %v, want %v", err, first)
	}
}
