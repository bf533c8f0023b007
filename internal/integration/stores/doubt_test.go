package stores

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

func TestACommitWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	for name, in := range map[string]incident{
		"cut before it arrives":    {},
		"cut after it took effect": {arrives: true},
		"never answered":           {arrives: true, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, dsn := openPostgreSQL(t)
			cutter, through := newCutter(t, dsn)
			db := dial(t, "pgx", through)
			db.SetMaxOpenConns(1) // finding out needs no second connection
			s := sqlstore.PostgreSQL(db)
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			table(t, db)
			c := newClaim("a")
			ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, c))
			insert(t, ctx)
			cutter.onNext.Store(&in)

			patience, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			for range 2 { // asked once more it says the same
				err := transaction.Commit(patience, created, time.Hour)
				if in.arrives && err != nil || !in.arrives && !errors.Is(err, idempotency.ErrNotCommitted) {
					t.Errorf("Commit: %v, want it to know that committed is %t", err, in.arrives)
				}
			}
			wantState, wantCharges := idempotency.StateInProgress, 0
			if in.arrives {
				wantState, wantCharges = idempotency.StateCompleted, 1
			}
			if got, n := state(t, s, c.ID), count(t, db); got != wantState || n != wantCharges {
				t.Errorf("state %d and %d charges, want state %d and %d", got, n, wantState, wantCharges)
			}
		})
	}
}

func TestACommitThatCannotBeFoundOutCanBeAskedAgain(t *testing.T) {
	_, dsn := openPostgreSQL(t)
	cutter, through := newCutter(t, dsn)
	db := dial(t, "pgx", through)
	s := sqlstore.PostgreSQL(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	table(t, db)
	ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
	insert(t, ctx)
	cutter.onNext.Store(&incident{arrives: true, down: true})
	err := transaction.Commit(t.Context(), created, time.Hour)
	if err == nil || errors.Is(err, idempotency.ErrNotCommitted) || errors.Is(err, idempotency.ErrFenced) {
		t.Errorf("Commit while the server is away: %v, want an error that says nothing", err)
	}
	cutter.down.Store(false)
	if err := transaction.Commit(t.Context(), created, time.Hour); err != nil {
		t.Errorf("Commit again: %v", err)
	}
	if n := count(t, db); n != 1 {
		t.Errorf("%d charges, want 1", n)
	}
}
