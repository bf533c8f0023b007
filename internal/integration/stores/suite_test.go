package stores

import (
	"context"
	"testing"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
	"github.com/riprap-go/riprap/idempotency/storetest"
)

func TestStoresPassTheSuite(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			storetest.Run(t, func(tb testing.TB) idempotency.Store {
				db := connect(tb, d)
				db.SetMaxOpenConns(16)
				s := d.store(db)
				if err := s.Migrate(context.Background()); err != nil {
					tb.Fatal(err)
				}
				return s
			})
		})
	}
}

func TestTransactionsPassTheSuite(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			storetest.RunTransactions(t, func(tb testing.TB) (idempotency.Transactor, storetest.Effects) {
				db := connect(tb, d)
				db.SetMaxOpenConns(16)
				s := d.store(db)
				if err := s.Migrate(context.Background()); err != nil {
					tb.Fatal(err)
				}
				table(tb, db)
				return s, storetest.Effects{
					Write: func(ctx context.Context) error {
						tx, err := sqlstore.Tx(ctx)
						if err == nil {
							_, err = tx.ExecContext(ctx, "INSERT INTO charges VALUES (1990)")
						}
						return err
					},
					Count: func(tb testing.TB) int { return count(tb, db) },
				}
			})
		})
	}
}
