package effects

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// What is proved here could be proved by a harness that sees nothing. These tests take away what the promise rests on.

func TestWithoutTheMiddlewareOperationsHappenTwice(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		ctx := patiently(t)
		dsn, db := d.prepare(t)
		f := launch(t, plan{Database: d.name, DSN: dsn, Mode: unprotected, Seed: 4, Faults: faults{Lost: 200}}, 2)
		l := newLoad(f, 8, 20)
		l.insistent = false // each answer would be another one
		l.run(t, ctx)
		if err := f.end(); err != nil {
			t.Error(err)
		}
		if b := compare(readLedger(t, db), l.told); len(b.duplicated) == 0 {
			t.Errorf("%d operations have %d rows, want some with two", len(l.told), b.rows)
		}
	})
}

func TestExecutedAgainWithoutATransactionOperationsHappenTwice(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		ctx := patiently(t)
		dsn, db := d.prepare(t)
		f := launch(t, plan{Database: d.name, DSN: dsn, Mode: reexecuted, Lease: time.Second, Seed: 5}, 2)
		l := newLoad(f, 64, 0)
		twice := func() bool { return len(compare(readLedger(t, db), nil).duplicated) > 0 }
		for !twice() { // most often the first one is enough
			die(t, ctx, f, l, toll{kills: 1})
		}
	})
}

func TestAClaimByLookUpThenCreateIsWonTwice(t *testing.T) {
	newStores := func() [2]idempotency.Store {
		s := &lookUpThenCreate{Memory: new(idempotency.Memory), second: make(chan struct{})}
		return [2]idempotency.Store{s, s}
	}
	if won := claimAll(t, newStores())[idempotency.ClaimWon]; won < 2 {
		t.Errorf("%d claims of one key were won, want more than one", won)
	}
	if runs, _ := requestAll(t, newStores()); runs < 2 {
		t.Errorf("%d runs, want more than one", runs)
	}
}

// lookUpThenCreate claims keys in two steps, as a service without atomic operations does: two claims may both see no record.
type lookUpThenCreate struct {
	*idempotency.Memory

	mu     sync.Mutex
	missed int
	second chan struct{} // closed when the second claim has seen no record
}

func (s *lookUpThenCreate) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Claimed, error) {
	if _, err := s.Show(ctx, c.ID); !errors.Is(err, idempotency.ErrNotFound) {
		return s.Memory.Claim(ctx, c)
	}
	s.mu.Lock()
	if s.missed++; s.missed == 2 {
		close(s.second)
	}
	s.mu.Unlock()
	<-s.second
	if claimed, err := s.Memory.Claim(ctx, c); err != nil || claimed.Verdict == idempotency.ClaimWon {
		return claimed, err
	}
	return idempotency.Claimed{Verdict: idempotency.ClaimWon, Generation: 1}, nil // created over what is there
}
