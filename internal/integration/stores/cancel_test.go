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

func TestAContextThatHasEndedChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		c := newClaim("a")
		ticket := mustClaim(t, s, c)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		free := newClaim("b")
		if got, err := s.Claim(ended, free); err == nil {
			t.Errorf("Claim: %+v, want an error", got)
		}
		if err := s.Complete(ended, ticket, created, time.Hour); err == nil {
			t.Error("Complete: no error")
		}
		if err := s.Suspend(ended, ticket); err == nil {
			t.Error("Suspend: no error")
		}
		if err := s.Release(ended, ticket); err == nil {
			t.Error("Release: no error")
		}
		ctx, transaction := s.Transact(ended, ticket)
		if _, err := sqlstore.Tx(ctx); err == nil {
			t.Error("Tx: no error")
		}
		if err := transaction.Rollback(); err != nil {
			t.Errorf("Rollback: %v", err)
		}
		if got := state(t, s, c.ID); got != idempotency.StateInProgress {
			t.Errorf("state %d, want in progress", got)
		}
		if _, err := s.Show(t.Context(), free.ID); !errors.Is(err, idempotency.ErrNotFound) {
			t.Errorf("Show of the key that was asked for too late: %v, want ErrNotFound", err)
		}
	})
}

// A claim that was cut off may have taken the key. Whoever asks again as the same owner finds that out.
func TestAClaimCutOffInTheMidstCanBeMadeAgain(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		cut, taken := 0, 0
		for i := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Microsecond)
			c := newClaim(fmt.Sprint(i))
			_, err := s.Claim(ctx, c)
			cancel()
			if err != nil {
				cut++
				if _, err := s.Show(t.Context(), c.ID); err == nil {
					taken++
				}
			}
			if got, err := s.Claim(t.Context(), c); err != nil || got.Verdict != idempotency.ClaimWon || got.Generation != 1 {
				t.Fatalf("Claim again: %+v, %v, want it won in generation 1", got, err)
			}
		}
		t.Logf("%d claims were cut off, and %d of them had taken the key", cut, taken)
	})
}

// Whatever a handler does with a pool of one connection besides asking it for a second one, nobody waits for himself.
func TestOneConnectionIsEnough(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		db.SetMaxOpenConns(1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var requests sync.WaitGroup
		for i := range 20 {
			requests.Go(func() {
				c := newClaim(fmt.Sprint(i))
				got, err := s.Claim(ctx, c)
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				ticket := c.Ticket(got.Generation)
				run, transaction := s.Transact(ctx, ticket)
				if err := transaction.Renew(ctx, time.Minute); err != nil {
					t.Errorf("Renew: %v", err)
				}
				insert(t, run)
				if err := transaction.Renew(ctx, time.Minute); err != nil {
					t.Errorf("Renew in the transaction: %v", err)
				}
				if i%2 == 0 {
					if err := transaction.Commit(ctx, created, time.Hour); err != nil {
						t.Errorf("Commit: %v", err)
					}
					return
				}
				if err := transaction.Rollback(); err != nil {
					t.Errorf("Rollback: %v", err)
				}
				if err := s.Release(ctx, ticket); err != nil {
					t.Errorf("Release: %v", err)
				}
			})
		}
		requests.Wait()
		if n := count(t, db); n != 10 {
			t.Errorf("%d charges, want 10", n)
		}
	})
}
