package effects

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/riprap-go/riprap/idempotency"
)

// An outage is a database that can be made to fail, and to work again.
type outage struct{ begin, end func() error }

// brittle returns a new database for an outage: PostgreSQL crashes, and SQLite's file is locked by somebody.
func (d *database) brittle(t *testing.T) (*sql.DB, outage) {
	dsn, db := d.prepare(t)
	if d.name == "PostgreSQL" {
		s := postgres(t)
		return db, outage{s.Crash, s.Restart}
	}
	impatient := dial(t, d.driver, strings.Replace(dsn, "busy_timeout(20000)", "busy_timeout(1)", 1))
	locker, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	execute := func(statement string) func() error {
		return func() error {
			_, err := locker.ExecContext(context.Background(), statement)
			return err
		}
	}
	return impatient, outage{execute("BEGIN IMMEDIATE"), execute("ROLLBACK")}
}

func TestWithTheStoreDownBeforeTheClaimNothingRuns(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		ctx := patiently(t)
		db, outage := d.brittle(t)
		h := idempotency.Middleware{
			Store: d.store(db), Scope: idempotency.SingleTenant, Transactional: true, Observe: ignore,
		}
		var runs atomic.Int64
		s := httptest.NewServer(h.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			if _, err := writeWithKey(r.Context(), "the operation"); err != nil {
				t.Errorf("write: %v", err)
			}
		})))
		t.Cleanup(s.Close)

		if err := outage.begin(); err != nil {
			t.Fatal(err)
		}
		status, body, header, err := post(ctx, s.Client(), s.URL, "the operation")
		if err != nil || status != http.StatusServiceUnavailable || problem(body) != "store-unavailable" || header.Get("Retry-After") == "" {
			t.Errorf("POST with the store down: %d %s %v, %v, want 503 store-unavailable with Retry-After", status, body, header, err)
		}
		if n := runs.Load(); n != 0 {
			t.Errorf("the handler ran %d times with the store down", n)
		}
		if err := outage.end(); err != nil {
			t.Fatal(err)
		}
		if status, body, _, err := post(ctx, s.Client(), s.URL, "the operation"); err != nil || status != http.StatusOK {
			t.Errorf("POST with the store up again: %d %s, %v, want 200", status, body, err)
		}
		if rows := len(readLedger(t, db)["the operation"]); rows != 1 || runs.Load() != 1 {
			t.Errorf("%d runs and %d rows, want one", runs.Load(), rows)
		}
	})
}

func TestAnAnswerThatTheStoreWasDownForIsKeptOnceItIsBack(t *testing.T) {
	each(t, func(t *testing.T, d *database) {
		ctx := patiently(t)
		db, outage := d.brittle(t)
		kept := make(chan idempotency.Kind, 1)
		h := idempotency.Middleware{
			Store: d.store(db), Scope: idempotency.SingleTenant, Lease: patience,
			Observe: func(_ context.Context, e idempotency.Event) {
				if e.Kind == idempotency.Ran || e.Kind == idempotency.Unrecorded {
					kept <- e.Kind
				}
			},
		}
		var runs atomic.Int64
		s := httptest.NewServer(h.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := runs.Add(1)
			if err := outage.begin(); err != nil {
				t.Errorf("begin of the outage: %v", err)
			}
			fmt.Fprintf(w, "run %d", n)
		})))
		t.Cleanup(s.Close)

		status, body, header, err := post(ctx, s.Client(), s.URL, "the operation")
		if err != nil || status != http.StatusOK || body != "run 1" || header.Get("Idempotent-Replayed") != "" {
			t.Errorf("POST with the store down at the end of the run: %d %q, %v, want the answer all the same", status, body, err)
		}
		if err := outage.end(); err != nil {
			t.Fatal(err)
		}
		select {
		case kind := <-kept:
			if kind != idempotency.Ran {
				t.Errorf("with the store up again the run is %v, want that its answer is kept", kind)
			}
		case <-ctx.Done():
			t.Fatal("the answer was not kept in all that time")
		}
		status, body, header, err = post(ctx, s.Client(), s.URL, "the operation")
		if err != nil || status != http.StatusOK || body != "run 1" || header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("POST again: %d %q %v, %v, want the answer replayed", status, body, header, err)
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
	})
}

func TestARunWhoseTransactionIsLostWithTheStoreRunsAgain(t *testing.T) {
	ctx := patiently(t)
	d := databases[0]
	db, outage := d.brittle(t)
	var runs atomic.Int64
	h := idempotency.Middleware{Store: d.store(db), Scope: idempotency.SingleTenant, Transactional: true, Observe: ignore}
	s := httptest.NewServer(h.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := runs.Add(1)
		if _, err := writeWithKey(r.Context(), "the operation"); err != nil {
			t.Errorf("write: %v", err)
		}
		if n == 1 {
			if err := outage.begin(); err != nil {
				t.Errorf("crash: %v", err)
			}
			if err := outage.end(); err != nil {
				t.Errorf("restart: %v", err)
			}
		}
		fmt.Fprintf(w, "run %d", n)
	})))
	t.Cleanup(s.Close)

	status, body, _, err := post(ctx, s.Client(), s.URL, "the operation")
	if err != nil || status != http.StatusServiceUnavailable || problem(body) != "not-committed" {
		t.Errorf("POST with a crash before the commit: %d %s, %v, want 503 not-committed", status, body, err)
	}
	if rows := len(readLedger(t, db)); rows != 0 {
		t.Errorf("%d rows in the ledger after a run that was not committed", rows)
	}
	for range 2 {
		if status, body, _, err := post(ctx, s.Client(), s.URL, "the operation"); err != nil || status != http.StatusOK || body != "run 2" {
			t.Errorf("POST again: %d %s, %v, want the answer of run 2", status, body, err)
		}
	}
	if rows := len(readLedger(t, db)["the operation"]); rows != 1 || runs.Load() != 2 {
		t.Errorf("%d rows after %d runs, want one row after two", rows, runs.Load())
	}
}
