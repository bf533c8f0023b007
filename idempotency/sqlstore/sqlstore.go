// Package sqlstore keeps idempotency keys in PostgreSQL or SQLite, through database/sql and whatever driver the program
// has. It is the [idempotency.Transactor] by which a handler's own writes and the record of the key are committed together:
//
//	store := sqlstore.PostgreSQL(db)
//	if err := store.Migrate(ctx); err != nil { … }
//	m := idempotency.Middleware{Store: store, Scope: customer, Transactional: true}
//
//	func charge(w http.ResponseWriter, r *http.Request) {
//		tx, err := sqlstore.Tx(r.Context())
//		…
//		_, err = tx.ExecContext(r.Context(), `INSERT INTO charges …`)
//
// The handler neither commits nor rolls back; the middleware does, together with the answer.
//
// # PostgreSQL
//
// Any version from 12 on, at any isolation level that the database has as its default, and always the primary: a replica does not know yet
// what was claimed. A key that waits for its handler is protected by the row lock of the handler's transaction, and a
// duplicate takes no lock, so that it is answered at once and holds no connection. What a crash of the server may lose is what fsync
// and synchronous_commit say; Migrate refuses synchronous_commit=off.
//
// # SQLite
//
// Version 3.37 or later, in a file on a disk of this host. The data source name has to ask for these, since each holds for a
// connection and none is every driver's default:
//
//   - busy_timeout, 5000 ms for example: without it two writers at once are an error instead of a short wait;
//   - journal_mode=WAL: duplicates are then answered while a handler's transaction is open;
//   - synchronous=FULL: otherwise the last keys and answers may be lost with the power, and a request run twice. Migrate refuses less.
//
// With github.com/ncruces/go-sqlite3 or modernc.org/sqlite that is
//
//	file:shop.db?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
//
// and with github.com/mattn/go-sqlite3
//
//	file:shop.db?_busy_timeout=5000&_journal_mode=WAL&_synchronous=FULL
//
// SQLite has one writer at a time: while a handler has a transaction, every other request with a new key waits, as long as
// busy_timeout. Keep such handlers short, and call nobody over the network in between.
//
// # Connections
//
// No method needs a connection while it holds another, so a pool of a single one works. A handler that has its
// transaction open and asks the same pool for a second connection may wait for itself.
package sqlstore

import (
	"database/sql"
	"sync"

	"github.com/riprap-go/riprap/idempotency"
)

// A Store keeps keys in a database. Its tables are called riprap_keys and riprap_schema; see Migrate. Make one with
// [PostgreSQL] or [SQLite] and keep it for as long as the program lives; it may be used by many goroutines at once.
//
// Errors of the database are wrapped, so that errors.As finds the driver's.
type Store struct {
	db *sql.DB
	*dialect
	writers queue // SQLite: who is to write next

	prepared sync.Map // of *sql.Stmt, by the text of the query
}

var (
	_ idempotency.Transactor = (*Store)(nil)
	_ idempotency.Operator   = (*Store)(nil)
)

// PostgreSQL returns a store in a PostgreSQL database, which stays the caller's: Store does not close it.
func PostgreSQL(db *sql.DB) *Store { return &Store{db: db, dialect: postgresql} }

// SQLite returns a store in a SQLite database, which stays the caller's: Store does not close it. The package comment says what
// the data source name needs.
func SQLite(db *sql.DB) *Store { return &Store{db: db, dialect: sqlite, writers: make(queue, 1)} }
