package stores

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// The clock of the process stands still in the year 2000 here, and that of the server does not.
func TestThePostgreSQLServersClockDecides(t *testing.T) {
	_, dsn := openPostgreSQL(t)
	synctest.Test(t, func(t *testing.T) {
		db := dial(t, "pgx", dsn)
		defer db.Close()
		s := sqlstore.PostgreSQL(db)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := func(c idempotency.Claim) time.Time {
			r, err := s.Show(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			if r.Lease <= 0 && r.State == idempotency.StateInProgress || r.Lease > c.Lease || r.Retention <= 0 || r.Retention > c.Retention {
				t.Errorf("lease of %v and retention of %v left, want at most %v and %v", r.Lease, r.Retention, c.Lease, c.Retention)
			}
			return r.Begun
		}
		c := newClaim("a")
		ticket := mustClaim(t, s, c)
		if at := begun(c); at.Year() < 2020 {
			t.Errorf("begun at %v by the clock of the process", at)
		}
		if err := s.Renew(t.Context(), ticket, c.Lease); err != nil {
			t.Fatal(err)
		}
		begun(c)
		if err := s.Complete(t.Context(), ticket, created, c.Retention); err != nil {
			t.Fatal(err)
		}
		begun(c)
	})
}
