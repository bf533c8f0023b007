package sqlstore_test

import (
	"context"
	"database/sql"
	"log"
	"net/http"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// The handler writes through the transaction of its request. Its writes and the answer are kept together, or neither.
func ExampleTx() {
	charge := func(w http.ResponseWriter, r *http.Request) {
		tx, err := sqlstore.Tx(r.Context())
		if err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		if _, err := tx.ExecContext(r.Context(), `INSERT INTO charges (cents) VALUES (1990)`); err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	}
	http.HandleFunc("POST /charges", charge)
}

func ExamplePostgreSQL() {
	db, err := sql.Open("pgx", "postgres://shop@db.internal/shop")
	if err != nil {
		log.Fatal(err)
	}
	store := sqlstore.PostgreSQL(db)
	if err := store.Migrate(context.Background()); err != nil {
		log.Fatal(err)
	}
	keyed := idempotency.Middleware{
		Store:         store,
		Scope:         func(r *http.Request) string { return r.Header.Get("X-Customer") }, // set by the authentication before
		Transactional: true,
	}
	_ = keyed // keyed.Handler(mux)
}

func ExampleSQLite() {
	db, err := sql.Open("sqlite3", "file:shop.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		log.Fatal(err)
	}
	store := sqlstore.SQLite(db)
	if err := store.Migrate(context.Background()); err != nil {
		log.Fatal(err)
	}
	keyed := idempotency.Middleware{
		Store:         store,
		Scope:         func(r *http.Request) string { return r.Header.Get("X-Customer") }, // set by the authentication before
		Transactional: true,
	}
	_ = keyed // keyed.Handler(mux)
}
