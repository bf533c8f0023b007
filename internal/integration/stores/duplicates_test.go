package stores

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// soon bounds what must not wait for a transaction that is open for longer.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestADuplicateIsAnsweredWhileTheFirstsTransactionIsOpen(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
		defer transaction.Rollback()
		insert(t, ctx)
		got, err := s.Claim(soon(t), newClaim("a"))
		if err != nil || got.Verdict != idempotency.ClaimInFlight || got.Lease <= 0 {
			t.Errorf("Claim in the meantime: %+v, %v, want ClaimInFlight with what is left of the lease", got, err)
		}
		other := newClaim("a")
		other.Fingerprint = []byte{9}
		if got, err := s.Claim(soon(t), other); err != nil || got.Verdict != idempotency.ClaimMismatch {
			t.Errorf("Claim of another request: %+v, %v, want ClaimMismatch", got, err)
		}
	})
}

func TestARunWhoseLeaseIsOverHoldsItsKeyByItsTransaction(t *testing.T) {
	db := connect(t, databases[0])
	s := sqlstore.PostgreSQL(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	table(t, db)
	c := newClaim("a")
	c.Lease, c.Retention = -1, -1
	ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, c))
	insert(t, ctx)

	if got, err := s.Claim(soon(t), newClaim("a")); err != nil || got.Verdict != idempotency.ClaimInFlight {
		t.Errorf("Claim: %+v, %v, want ClaimInFlight at once", got, err)
	}
	if err := s.Resolve(soon(t), c.ID, nil, 0); !errors.Is(err, idempotency.ErrSettled) {
		t.Errorf("Resolve: %v, want ErrSettled", err)
	}
	if n, err := s.Reap(soon(t), 10); n != 0 || err != nil {
		t.Errorf("Reap: %d, %v, want nothing deleted", n, err)
	}
	if err := transaction.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Claim(soon(t), newClaim("a")); err != nil || got.Verdict != idempotency.ClaimWon || got.Generation != 2 {
		t.Errorf("Claim after the rollback: %+v, %v, want it won in generation 2", got, err)
	}
}

func TestWhoWantsToTakeAKeyOverGetsTheAnswerThatWasCommitted(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		c := newClaim("a")
		c.Lease = -1
		ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, c))
		insert(t, ctx)
		thief := make(chan idempotency.Claimed)
		go func() {
			for {
				got, err := s.Claim(context.Background(), newClaim("a"))
				if err != nil {
					t.Errorf("Claim: %v", err)
				}
				if err != nil || got.Verdict != idempotency.ClaimInFlight {
					thief <- got
					return
				}
			}
		}()
		if err := transaction.Commit(t.Context(), idempotency.Answer{Status: 201}, time.Hour); err != nil {
			t.Errorf("Commit: %v", err)
		}
		if got := <-thief; got.Verdict != idempotency.ClaimReplay || got.Answer.Status != 201 {
			t.Errorf("Claim: %+v, want the answer", got)
		}
		if n := count(t, db); n != 1 {
			t.Errorf("%d charges, want 1", n)
		}
	})
}

func TestAThousandRacersForAKeyAreOneRun(t *testing.T) {
	for _, d := range databases {
		for _, isolation := range []string{"", "&default_transaction_isolation=serializable"} {
			if isolation != "" && d.name != "PostgreSQL" {
				continue
			}
			t.Run(d.name+isolation, func(t *testing.T) {
				driver, dsn := d.open(t)
				var stores []*sqlstore.Store // of two processes
				var db *sql.DB
				for range 2 {
					db = dial(t, driver, dsn+isolation)
					db.SetMaxOpenConns(16)
					stores = append(stores, d.store(db))
				}
				if err := stores[0].Migrate(t.Context()); err != nil {
					t.Fatal(err)
				}
				table(t, db)
				race(t, stores)
				if n := count(t, db); n != 1 {
					t.Errorf("%d charges, want 1", n)
				}
			})
		}
	}
}

// race lets a thousand requests with one key run until each has the answer.
func race(t *testing.T, stores []*sqlstore.Store) {
	var won, replayed atomic.Int64
	var racers sync.WaitGroup
	start := make(chan struct{})
	for i := range 1000 {
		racers.Go(func() {
			<-start
			s := stores[i%len(stores)]
			c := newClaim("a")
			for {
				got, err := s.Claim(t.Context(), c)
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				switch got.Verdict {
				case idempotency.ClaimInFlight:
					continue
				case idempotency.ClaimReplay:
					replayed.Add(1)
				case idempotency.ClaimWon:
					won.Add(1)
					ctx, transaction := s.Transact(t.Context(), c.Ticket(got.Generation))
					insert(t, ctx)
					if err := transaction.Commit(t.Context(), idempotency.Answer{Status: 201}, time.Hour); err != nil {
						t.Errorf("Commit: %v", err)
					}
				default:
					t.Errorf("Claim: %+v", got)
				}
				return
			}
		})
	}
	close(start)
	racers.Wait()
	if won.Load() != 1 || replayed.Load() != 999 {
		t.Errorf("%d claims won and %d replayed, want 1 and 999", won.Load(), replayed.Load())
	}
}
