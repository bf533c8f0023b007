package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

var created = idempotency.Answer{Status: 201}

func TestARunThatLostItsKeyGetsNoTransaction(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		c := newClaim("a")
		c.Lease = -1
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, c))
		mustClaim(t, s, newClaim("a")) // the thief
		for range 2 {
			if _, err := sqlstore.Tx(ctx); !errors.Is(err, idempotency.ErrFenced) {
				t.Errorf("Tx: %v, want ErrFenced", err)
			}
		}
		if err := transaction.Commit(t.Context(), created, time.Hour); !errors.Is(err, idempotency.ErrFenced) {
			t.Errorf("Commit: %v, want ErrFenced", err)
		}
		if got := state(t, s, c.ID); got != idempotency.StateInProgress {
			t.Errorf("the thief's record is in state %d, want it in progress", got)
		}
	})
}

func TestEachCallGivesTheSameTransaction(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
		defer transaction.Rollback()
		var got [2]*sql.Tx
		var calls sync.WaitGroup
		for i := range got {
			calls.Go(func() { got[i], _ = sqlstore.Tx(ctx) })
		}
		calls.Wait()
		if got[0] == nil || got[0] != got[1] {
			t.Errorf("Tx: %p and %p, want the same", got[0], got[1])
		}
	})
}

func TestThereIsNoTransactionOutsideOfARun(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		if _, err := sqlstore.Tx(t.Context()); err == nil {
			t.Error("Tx of any context: no error")
		}
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
		if err := transaction.Commit(t.Context(), created, time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Tx(ctx); err == nil {
			t.Error("Tx after Commit: no error")
		}
		ctx, transaction = s.Transact(t.Context(), mustClaim(t, s, newClaim("b")))
		if err := transaction.Rollback(); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Tx(ctx); err == nil {
			t.Error("Tx after Rollback: no error")
		}
	})
}

func TestARollbackUndoesTheWritesAndTheKeyStaysHeld(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		ticket := mustClaim(t, s, newClaim("a"))
		ctx, transaction := s.Transact(t.Context(), ticket)
		insert(t, ctx)
		for range 2 {
			if err := transaction.Rollback(); err != nil {
				t.Errorf("Rollback: %v", err)
			}
		}
		if n := count(t, db); n != 0 {
			t.Errorf("%d charges, want none", n)
		}
		if got, err := s.Claim(t.Context(), newClaim("a")); err != nil || got.Verdict != idempotency.ClaimInFlight {
			t.Errorf("Claim: %+v, %v, want ClaimInFlight", got, err)
		}
		if err := s.Release(t.Context(), ticket); err != nil {
			t.Errorf("Release: %v", err)
		}
	})
}

// The process may end right after it: then nobody knows the answer, and nobody may run the request again.
func TestAHandlerThatCommitsByItselfLeavesItsKeyUnknown(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		c := newClaim("a")
		ticket := mustClaim(t, s, c)
		ctx, transaction := s.Transact(t.Context(), ticket)
		if err := insert(t, ctx).Commit(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			err := transaction.Commit(t.Context(), created, time.Hour)
			if err == nil || errors.Is(err, idempotency.ErrNotCommitted) || errors.Is(err, idempotency.ErrFenced) {
				t.Errorf("Commit: %v, want an error that does not say that nothing was written", err)
			}
		}
		if got := state(t, s, c.ID); got != idempotency.StateUnknown {
			t.Errorf("state %d, want unknown", got)
		}
		if err := s.Release(t.Context(), ticket); !errors.Is(err, idempotency.ErrFenced) {
			t.Errorf("Release: %v, want ErrFenced", err)
		}
		if err := s.Suspend(t.Context(), ticket); err != nil {
			t.Errorf("Suspend: %v", err)
		}
	})
}

func TestARollbackAfterAHandlersOwnCommitIsAnError(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
		if err := insert(t, ctx).Commit(); err != nil {
			t.Fatal(err)
		}
		if err := transaction.Rollback(); err == nil {
			t.Error("Rollback: no error, and the charge is there")
		}
	})
}

func TestAHandlerThatRollsBackByItselfHasNotCommitted(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		c := newClaim("a")
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, c))
		if err := insert(t, ctx).Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := transaction.Commit(t.Context(), created, time.Hour); !errors.Is(err, idempotency.ErrNotCommitted) {
			t.Errorf("Commit: %v, want ErrNotCommitted", err)
		}
		if got := state(t, s, c.ID); got != idempotency.StateInProgress {
			t.Errorf("state %d, want in progress", got)
		}
		if err := transaction.Rollback(); err != nil {
			t.Errorf("Rollback: %v", err)
		}
	})
}

// Then database/sql knows nothing of it, and what the handler writes after that is committed by itself.
func TestAHandlerThatRollsBackInSQLLeavesItsKeyUnknown(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		c := newClaim("a")
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, c))
		if _, err := insert(t, ctx).Exec("ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := transaction.Commit(t.Context(), created, time.Hour); !errors.Is(err, idempotency.ErrSuspended) {
				t.Errorf("Commit: %v, want ErrSuspended", err)
			}
		}
		if got := state(t, s, c.ID); got != idempotency.StateUnknown {
			t.Errorf("state %d, want unknown", got)
		}
	})
}

// A handler that has written and then has to refuse keeps the refusal, and not what it wrote.
func TestAHandlerMayRollBackToASavepointAndKeepItsAnswer(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
		tx, err := sqlstore.Tx(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{"SAVEPOINT before", "INSERT INTO charges VALUES (1990)", "ROLLBACK TO SAVEPOINT before"} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		if err := transaction.Commit(t.Context(), idempotency.Answer{Status: 422}, time.Hour); err != nil {
			t.Errorf("Commit: %v", err)
		}
		got, err := s.Claim(t.Context(), newClaim("a"))
		if err != nil || got.Verdict != idempotency.ClaimReplay || got.Answer.Status != 422 {
			t.Errorf("Claim afterwards: %+v, %v, want the refusal replayed", got, err)
		}
		if n := count(t, db); n != 0 {
			t.Errorf("%d charges, want none", n)
		}
	})
}

func TestATransactionEndsWithTheHandlersContext(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		run, cancel := context.WithCancel(t.Context())
		ctx, transaction := s.Transact(run, mustClaim(t, s, newClaim("a")))
		tx := insert(t, ctx)
		cancel()
		for tx.QueryRow("SELECT 1").Scan(new(int)) == nil {
			// until database/sql has seen it
		}
		if err := transaction.Commit(t.Context(), created, time.Hour); !errors.Is(err, idempotency.ErrNotCommitted) {
			t.Errorf("Commit: %v, want ErrNotCommitted", err)
		}
		if n := count(t, db); n != 0 {
			t.Errorf("%d charges, want none", n)
		}
	})
}

// What a client does that leaves at the last moment must not make a commit unknown.
func TestTheHandlersContextDoesNotEndACommit(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		for range 50 {
			run, cancel := context.WithCancel(t.Context())
			ticket := mustClaim(t, s, newClaim(time.Now().String()))
			ctx, transaction := s.Transact(run, ticket)
			insert(t, ctx)
			before := count(t, db)
			go cancel()
			err := transaction.Commit(t.Context(), created, time.Hour)
			if err != nil && !errors.Is(err, idempotency.ErrNotCommitted) {
				t.Fatalf("Commit: %v, want nil or ErrNotCommitted", err)
			}
			if n, committed := count(t, db)-before, err == nil; (n == 1) != committed {
				t.Fatalf("Commit: %v, and %d charges", err, n)
			}
		}
	})
}

func TestAHeartbeatDoesNotWaitForTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		c := newClaim("a")
		c.Lease = time.Second
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, c))
		defer transaction.Rollback()
		if err := transaction.Renew(soon(t), time.Hour); err != nil {
			t.Errorf("Renew before the transaction: %v", err)
		}
		if r, err := s.Show(t.Context(), c.ID); err != nil || r.Lease < time.Minute {
			t.Errorf("Show: lease %v, %v, want about an hour", r.Lease, err)
		}
		if _, err := sqlstore.Tx(ctx); err != nil {
			t.Fatal(err)
		}
		if err := transaction.Renew(soon(t), time.Hour); err != nil {
			t.Errorf("Renew in the transaction: %v", err)
		}
	})
}

func TestAnAnswerWithoutATransactionIsCompleted(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		_, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
		for range 2 {
			if err := transaction.Commit(t.Context(), created, time.Hour); err != nil {
				t.Errorf("Commit: %v", err)
			}
		}
		if got, err := s.Claim(t.Context(), newClaim("a")); err != nil || got.Verdict != idempotency.ClaimReplay {
			t.Errorf("Claim: %+v, %v, want ClaimReplay", got, err)
		}
	})
}

func TestAnErrorThatTheHandlerIgnoredIsNotCommitted(t *testing.T) {
	db := connect(t, databases[0])
	s := sqlstore.PostgreSQL(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	table(t, db)
	ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
	insert(t, ctx).Exec("SELECT 1/0") // PostgreSQL rolls back whatever comes now
	if err := transaction.Commit(t.Context(), created, time.Hour); !errors.Is(err, idempotency.ErrNotCommitted) {
		t.Errorf("Commit: %v, want ErrNotCommitted", err)
	}
	if n := count(t, db); n != 0 {
		t.Errorf("%d charges, want none", n)
	}
}

// SQLite's deferred transaction would fail at its first write, were that not its first statement: somebody else has written since it read.
func TestHandlersThatReadFirstAndThenWriteDoNotFailEachOther(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			driver, dsn := d.open(t)
			var stores []*sqlstore.Store // of processes of their own
			var db *sql.DB
			for range 4 {
				db = dial(t, driver, dsn)
				stores = append(stores, d.store(db))
			}
			if err := stores[0].Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			table(t, db)
			var handlers sync.WaitGroup
			for i, s := range stores {
				handlers.Go(func() {
					for j := range 20 {
						readAndWrite(t, s, fmt.Sprint(i, j))
					}
				})
			}
			handlers.Wait()
			if n := count(t, db); n != 80 {
				t.Errorf("%d charges, want 80", n)
			}
		})
	}
}

func readAndWrite(t *testing.T, s *sqlstore.Store, key string) {
	ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim(key)))
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		t.Errorf("Tx: %v", err)
		return
	}
	if err := tx.QueryRow("SELECT count(*) FROM charges").Scan(new(int)); err != nil {
		t.Errorf("read: %v", err)
	}
	insert(t, ctx)
	if err := transaction.Commit(t.Context(), created, time.Hour); err != nil {
		t.Errorf("Commit: %v", err)
	}
}

func TestRetentionBeginsWithTheAnswerAndNotWithTheTransaction(t *testing.T) {
	db := connect(t, databases[0])
	s := sqlstore.PostgreSQL(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT pg_sleep(0.2)"); err != nil {
		t.Fatal(err)
	}
	if err := transaction.Commit(t.Context(), created, time.Hour); err != nil {
		t.Fatal(err)
	}
	var until int64
	if err := db.QueryRow("SELECT expires_at - begun_at FROM riprap_keys").Scan(&until); err != nil {
		t.Fatal(err)
	}
	if got := time.Duration(until) * time.Microsecond; got < time.Hour+200*time.Millisecond {
		t.Errorf("%v of retention since the claim, want an hour and the handler's 200ms", got)
	}
}

func state(t testing.TB, s *sqlstore.Store, id idempotency.ID) idempotency.State {
	t.Helper()
	r, err := s.Show(t.Context(), id)
	if err != nil {
		t.Fatalf("Show: %v", err)
	}
	return r.State
}
