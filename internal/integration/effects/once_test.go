package effects

import (
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// everything is what happens between clients and servers.
var everything = faults{Refused: 20, Reset: 20, Late: 2, Slow: 2, Lost: 20, Cut: 20, Withheld: 2}

func TestEveryOperationHappensOnceWhateverIsLost(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		ctx := patiently(t)
		dsn, db := d.prepare(t)
		f := launch(t, plan{Database: d.name, DSN: dsn, Mode: transactional, Lease: time.Second, Seed: 1, Faults: everything}, 2)
		l := newLoad(f, 64, 200)
		l.run(t, ctx)
		if err := f.end(); err != nil {
			t.Error(err)
		}
		b := compare(readLedger(t, db), l.told)
		b.mustAgree(t)
		if want := l.clients * l.operations; b.rows != want || len(l.told) != want {
			t.Errorf("%d rows in the ledger and %d operations acknowledged, want %d", b.rows, len(l.told), want)
		}
		mustBeSettled(t, d.store(db))
	})
}

// mustBeSettled fails a test if a key is left of which nobody knows how its run ended.
func mustBeSettled(t testing.TB, store idempotency.Operator) {
	t.Helper()
	var after idempotency.ID
	for {
		records, err := store.List(t.Context(), idempotency.Filter{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.State != idempotency.StateCompleted {
				t.Errorf("key %v is left in state %d", r.ID, r.State)
			}
			after = r.ID
		}
		if len(records) == 0 {
			return
		}
	}
}
