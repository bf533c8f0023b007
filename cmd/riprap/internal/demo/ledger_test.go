package demo

import (
	"maps"
	"path/filepath"
	"sync"
	"testing"
)

// newLedger is a ledger for a test.
func newLedger(t *testing.T) *ledger {
	t.Helper()
	l, err := openLedger(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatalf("openLedger: %v", err)
	}
	t.Cleanup(l.close)
	return l
}

func TestTheLedgerKnowsHowOftenAClickWasCharged(t *testing.T) {
	l := newLedger(t)
	for _, click := range []int{3, 1, 3, 0, 3} {
		if err := l.charge(click); err != nil {
			t.Fatalf("charge(%d) = %v, want no error", click, err)
		}
	}
	got, err := l.charges()
	if want := map[int]int{0: 1, 1: 1, 3: 3}; err != nil || !maps.Equal(got, want) {
		t.Errorf("charges() = %v, %v, want %v", got, err, want)
	}
}

func TestALedgerWithoutAPlaceIsAnError(t *testing.T) {
	if l, err := openLedger(t.Context(), filepath.Join(t.TempDir(), "missing", "ledger.db")); err == nil {
		l.close()
		t.Error("openLedger in a folder that is not there: got no error, want one")
	}
}

func TestABurstOfChargesOpensNoConnectionOfItsOwn(t *testing.T) {
	l := newLedger(t)
	var burst sync.WaitGroup
	for click := range 50 {
		burst.Go(func() {
			if err := l.charge(click); err != nil {
				t.Errorf("charge(%d) = %v, want no error", click, err)
			}
		})
	}
	burst.Wait()
	if s := l.db.Stats(); s.MaxOpenConnections != connections || s.MaxIdleClosed > 0 {
		t.Errorf("after 50 charges at once: got a bound of %d connections and %d closed again, want %d and none", s.MaxOpenConnections, s.MaxIdleClosed, connections)
	}
	if charges, err := l.charges(); err != nil || len(charges) != 50 {
		t.Errorf("charges() = %d of them, %v, want 50", len(charges), err)
	}
}
