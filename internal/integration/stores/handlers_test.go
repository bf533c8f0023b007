package stores

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

func transactional(s *sqlstore.Store, h http.HandlerFunc) (http.Handler, *[]idempotency.Kind) {
	kinds := new([]idempotency.Kind)
	return idempotency.Middleware{
		Store: s, Scope: idempotency.SingleTenant, Transactional: true,
		Observe: func(_ context.Context, e idempotency.Event) { *kinds = append(*kinds, e.Kind) },
	}.Handler(h), kinds
}

func post(h http.Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/charges", strings.NewReader("{}"))
	r.Header.Set("Idempotency-Key", "k")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWhoCallsAHandlerThatCommitsByItselfIsToldThatTheOutcomeIsUnknown(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		h, kinds := transactional(s, func(w http.ResponseWriter, r *http.Request) {
			if err := insert(t, r.Context()).Commit(); err != nil {
				t.Error(err)
			}
			io.WriteString(w, "done")
		})
		for range 2 {
			if w := post(h); w.Code != 409 || !strings.Contains(w.Body.String(), "#outcome-unknown") {
				t.Errorf("answer = %d %s, want outcome-unknown with 409", w.Code, w.Body)
			}
		}
		if n := count(t, db); n != 1 {
			t.Errorf("%d charges, want the one that the handler committed", n)
		}
		if len(*kinds) != 2 || (*kinds)[0] != idempotency.Suspended || (*kinds)[1] != idempotency.Unresolved {
			t.Errorf("events %v, want Suspended, and Unresolved for the second request", *kinds)
		}
	})
}

func TestAHandlerThatOutlivesItsContextKeepsNoOtherKeyWaiting(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		c := newClaim("hangs")
		if _, err := s.Claim(ctx, c); err != nil {
			t.Fatal(err)
		}
		ctx, tx := s.Transact(ctx, c.Ticket(1))
		defer tx.Rollback()
		insert(t, ctx)
		cancel()

		// As long as the writers stand in line for each other at most.
		ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
		defer stop()
		if got, err := s.Claim(ctx, newClaim("another")); err != nil || got.Verdict != idempotency.ClaimWon {
			t.Errorf("Claim = %v, %v, want ClaimWon", got.Verdict, err)
		}
	})
}

func TestAnAnswerWithoutTheTransactionThatTheHandlerAskedForIsNoAnswer(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		broken := true
		h, _ := transactional(s, func(w http.ResponseWriter, r *http.Request) {
			if broken {
				rename(t, db, "riprap_keys", "elsewhere")
				if _, err := sqlstore.Tx(r.Context()); err == nil {
					t.Error("Tx without the table: no error")
				}
				rename(t, db, "elsewhere", "riprap_keys")
			} else {
				insert(t, r.Context())
			}
			io.WriteString(w, "done")
		})
		if w := post(h); w.Code != 503 || !strings.Contains(w.Body.String(), "#not-committed") {
			t.Errorf("answer = %d %s, want not-committed with 503", w.Code, w.Body)
		}
		broken = false
		if w := post(h); w.Code != 200 || count(t, db) != 1 {
			t.Errorf("answer = %d %s and %d charges, want 200 and one", w.Code, w.Body, count(t, db))
		}
	})
}

func rename(t *testing.T, db *sql.DB, from, to string) {
	t.Helper()
	if _, err := db.Exec("ALTER TABLE " + from + " RENAME TO " + to); err != nil {
		t.Fatal(err)
	}
}

func TestAReaperWithoutAnIntervalPanics(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, _ *sql.DB) {
		defer func() {
			if recover() == nil {
				t.Error("ReapEvery with an interval of zero did not panic")
			}
		}()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.ReapEvery(ctx, 0)
	})
}
