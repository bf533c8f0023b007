package stores

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// What SQLite rolls a whole transaction back for, in the midst of it. Whoever thinks that the statement alone has failed goes on, and what it
// writes then is committed by itself.
var losses = []struct {
	name string
	lose func(t *testing.T, tx *sql.Tx) error
}{
	{"a statement that was interrupted", func(t *testing.T, tx *sql.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := tx.ExecContext(ctx, `INSERT INTO notes
			WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`)
		return err
	}},
	{"a conflict that rolls back", func(t *testing.T, tx *sql.Tx) error {
		_, err := tx.Exec("INSERT OR ROLLBACK INTO notes VALUES (1)")
		return err
	}},
	{"a trigger that rolls back", func(t *testing.T, tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO notes VALUES (2)")
		return err
	}},
}

func TestAHandlerThatGoesOnWithoutItsTransactionIsNotRunAgain(t *testing.T) {
	for _, loss := range losses {
		for _, status := range []int{http.StatusCreated, http.StatusInternalServerError} {
			t.Run(loss.name+" "+http.StatusText(status), func(t *testing.T) {
				s, db := withNotes(t)
				m := idempotency.Middleware{
					Store: s, Scope: idempotency.SingleTenant, Transactional: true, Observe: func(context.Context, idempotency.Event) {},
				}
				h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					tx, err := sqlstore.Tx(r.Context())
					if err != nil {
						t.Errorf("Tx: %v", err)
						return
					}
					if err := loss.lose(t, tx); err == nil {
						t.Error("the note was written, want an error that loses the transaction")
					}
					if _, err := tx.Exec("INSERT INTO charges VALUES (1990)"); err != nil {
						t.Errorf("charge: %v", err)
					}
					w.WriteHeader(status)
				}))
				for range 2 {
					r := httptest.NewRequest("POST", "/charges", nil)
					r.Header.Set("Idempotency-Key", "k")
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if w.Code < 400 {
						t.Errorf("status %d, want an error", w.Code)
					}
				}
				if n := count(t, db); n != 1 {
					t.Errorf("%d charges, want one", n)
				}
				stuck, err := s.List(t.Context(), idempotency.Filter{Stuck: true})
				if err != nil || len(stuck) != 1 || stuck[0].State != idempotency.StateUnknown {
					t.Errorf("stuck: %+v, %v, want the key, unknown", stuck, err)
				}
			})
		}
	}
}

// Should the store be away at that moment, it may not be said later that nothing was written.
func TestALostTransactionStaysLost(t *testing.T) {
	s, _ := withNotes(t)
	ctx, transaction := s.Transact(t.Context(), mustClaim(t, s, newClaim("a")))
	losses[1].lose(t, insert(t, ctx))
	ended, end := context.WithCancel(t.Context())
	end()
	if err := transaction.Commit(ended, created, time.Hour); err == nil || errors.Is(err, idempotency.ErrNotCommitted) {
		t.Errorf("Commit whose context has ended: %v, want an error that does not say that nothing was written", err)
	}
}

// withNotes returns a store in SQLite beside a table of charges and one of notes.
func withNotes(t *testing.T) (*sqlstore.Store, *sql.DB) {
	db := connect(t, databases[1])
	s := sqlstore.SQLite(db)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	table(t, db)
	for _, statement := range []string{
		"CREATE TABLE notes (n integer UNIQUE)",
		"INSERT INTO notes VALUES (1)",
		"CREATE TRIGGER no_two BEFORE INSERT ON notes WHEN NEW.n = 2 BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return s, db
}
