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

func TestOnlyWhatNobodyNeedsIsReaped(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		claim := func(key string, change func(*idempotency.Claim)) idempotency.Ticket {
			c := newClaim(key)
			change(&c)
			return mustClaim(t, s, c)
		}
		dead := func(c *idempotency.Claim) { c.Lease, c.Retention = -1, -1 }
		if err := s.Complete(t.Context(), claim("answered long ago", dead), created, -1); err != nil {
			t.Fatal(err)
		}
		claim("dead, and may run again", dead)

		if err := s.Complete(t.Context(), claim("answered", dead), created, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := s.Suspend(t.Context(), claim("unknown", dead)); err != nil {
			t.Fatal(err)
		}
		claim("dead, and may not run again", func(c *idempotency.Claim) { dead(c); c.Reexecute = false })
		claim("live, its retention is over", func(c *idempotency.Claim) { c.Retention = -1 })
		claim("dead, and retained", func(c *idempotency.Claim) { c.Lease = -1 })

		for _, want := range []int{1, 1, 0} {
			if n, err := s.Reap(t.Context(), 1); n != want || err != nil {
				t.Errorf("Reap: %d, %v, want %d", n, err, want)
			}
		}
		if records, err := s.List(t.Context(), idempotency.Filter{}); len(records) != 5 || err != nil {
			t.Errorf("List: %d records, %v, want the 5 that are needed", len(records), err)
		}
	})
}

// Records are taken over while reapers want to delete them: who has won a key keeps it.
func TestReapersAndClaimsDoNotTakeFromEachOther(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		db.SetMaxOpenConns(12)
		ctx, cancel := context.WithCancel(t.Context())
		var reapers, claimers sync.WaitGroup
		for range 3 {
			reapers.Go(func() {
				if err := s.ReapEvery(ctx, time.Microsecond); !errors.Is(err, context.Canceled) {
					t.Errorf("ReapEvery: %v, want the end of its context", err)
				}
			})
		}
		for i := range 6 {
			claimers.Go(func() {
				for j := range 40 {
					c := newClaim(fmt.Sprint(i%3, j))
					c.Lease, c.Retention = -1, -1
					got, err := s.Claim(t.Context(), c)
					if err != nil {
						t.Errorf("Claim: %v", err)
						return
					}
					if got.Verdict != idempotency.ClaimWon && got.Verdict != idempotency.ClaimInFlight {
						t.Errorf("Claim: %+v, want it won", got)
					}
				}
				for j := range 10 {
					c := newClaim(fmt.Sprint("live", i, j))
					c.Retention = -1
					ticket := mustClaim(t, s, c)
					if err := s.Complete(t.Context(), ticket, created, time.Hour); err != nil {
						t.Errorf("Complete: %v", err)
					}
				}
			})
		}
		claimers.Wait()
		for n := -1; n != 60; {
			if err := db.QueryRow("SELECT count(*) FROM riprap_keys").Scan(&n); err != nil || n < 60 {
				t.Fatalf("%d records, %v, want the 60 that are needed", n, err)
			}
		}
		cancel()
		reapers.Wait()
	})
}
