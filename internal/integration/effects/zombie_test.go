package effects

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// A process stands still when its machine is moved or has too much to do. It does not notice, and goes on with what it was about
// to do.
func TestARunThatStoodStillForLongerThanItsLeaseWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		ctx := patiently(t)
		dsn, db := d.prepare(t)
		store := d.store(db)
		held := func() int {
			records, err := store.List(ctx, idempotency.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			return len(records)
		}
		p := plan{Database: d.name, DSN: dsn, Mode: transactional, Lease: time.Second / 2, Faults: faults{Slow: 1000}}
		zombie := launch(t, p, 1)
		p.Faults = faults{}
		healthy := launch(t, p, 1)

		// Each run holds its key and is about to write when its process stands still.
		const operations = 32
		impatient, giveUp := context.WithCancel(ctx)
		defer giveUp()
		var abandoned sync.WaitGroup
		for i := range operations {
			abandoned.Go(func() {
				post(impatient, &http.Client{Transport: zombie}, "http://ledger.test/entries", operationOf(0, i)) // nobody gets an answer
			})
		}
		waitFor(t, ctx, "runs that hold their keys", func() bool { return held() == operations })
		if err := zombie.slots[0].process.stop(); err != nil {
			t.Skip(err)
		}
		l := newLoad(healthy, 1, operations)
		l.run(t, ctx)
		giveUp()
		abandoned.Wait()
		if err := zombie.slots[0].process.resume(); err != nil {
			t.Fatal(err)
		}
		if err := zombie.end(); err != nil {
			t.Error(err)
		}
		b := compare(readLedger(t, db), l.told)
		b.mustAgree(t)
		if b.rows != operations {
			t.Errorf("%d rows in the ledger, want %d", b.rows, operations)
		}
		mustBeSettled(t, store)
	})
}

// operationOf names an operation of a load's client.
func operationOf(client, i int) string { return fmt.Sprintf("client %d operation %d", client, i) }
