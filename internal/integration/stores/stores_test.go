// Package stores tests the stores that need a database, on real ones: a private PostgreSQL, and SQLite in files.
package stores

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
	"github.com/riprap-go/riprap/internal/pgtest"
)

// A database is one of the two kinds, and how to get an empty one.
type database struct {
	name  string
	store func(*sql.DB) *sqlstore.Store
	open  func(t testing.TB) (driver, dsn string) // of a database that has nothing in it
}

var databases = []database{
	{"PostgreSQL", sqlstore.PostgreSQL, openPostgreSQL},
	{"SQLite", sqlstore.SQLite, openSQLite},
}

// server is one PostgreSQL for all tests, which syncs as it would in production. It ends with the process. Each test has a schema
// of its own in it.
var server struct {
	sync.Mutex
	dsn string
}

// untilExit is a test that has not ended before the process does.
type untilExit struct{ testing.TB }

func (untilExit) Cleanup(func()) {}

func openPostgreSQL(t testing.TB) (driver, dsn string) {
	t.Helper()
	server.Lock()
	defer server.Unlock()
	if server.dsn == "" {
		server.dsn = pgtest.StartServer(untilExit{t}, "fsync=on").DSN()
	}
	db := dial(t, "pgx", server.dsn)
	schema := "riprap_" + strings.ToLower(rand.Text())
	if _, err := db.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Exec("DROP SCHEMA " + schema + " CASCADE") })
	return "pgx", server.dsn + "&search_path=" + schema
}

func openSQLite(t testing.TB) (driver, dsn string) {
	return "sqlite3", sqliteDSN(filepath.Join(t.TempDir(), "keys.db"))
}

func sqliteDSN(file string) string {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(file)}
	return u.String() + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=deferred"
}

// each runs a test on both kinds, each time on a new store and its database.
func each(t *testing.T, test func(t *testing.T, s *sqlstore.Store, db *sql.DB)) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := connect(t, d)
			s := d.store(db)
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			test(t, s, db)
		})
	}
}

func connect(t testing.TB, d database) *sql.DB {
	driver, dsn := d.open(t)
	return dial(t, driver, dsn)
}

func dial(t testing.TB, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// newClaim asks for a key named in the test.
func newClaim(key string) idempotency.Claim {
	c := idempotency.Claim{
		ID:          idempotency.NewID("tenant", "POST /charges", key),
		Fingerprint: []byte{1, 2, 3},
		Operation:   "POST /charges",
		Lease:       time.Minute,
		Retention:   time.Hour,
		Reexecute:   true,
	}
	rand.Read(c.Owner[:])
	return c
}

func mustClaim(t testing.TB, s *sqlstore.Store, c idempotency.Claim) idempotency.Ticket {
	t.Helper()
	got, err := s.Claim(context.Background(), c)
	if err != nil || got.Verdict != idempotency.ClaimWon && got.Verdict != idempotency.ClaimStolen {
		t.Fatalf("Claim: %+v, %v, want it won", got, err)
	}
	return c.Ticket(got.Generation)
}

func TestAnAnswerAndTheHandlersWritesAreKeptTogether(t *testing.T) {
	each(t, func(t *testing.T, s *sqlstore.Store, db *sql.DB) {
		table(t, db)
		ticket := mustClaim(t, s, newClaim("a"))
		ctx, transaction := s.Transact(t.Context(), ticket)
		insert(t, ctx)
		answer := idempotency.Answer{Status: 201, Body: []byte("charged")}
		if err := transaction.Commit(t.Context(), answer, time.Hour); err != nil {
			t.Fatalf("Commit: %v", err)
		}
		if n := count(t, db); n != 1 {
			t.Errorf("%d charges, want 1", n)
		}
		got, err := s.Claim(t.Context(), newClaim("a"))
		if err != nil || got.Verdict != idempotency.ClaimReplay || string(got.Answer.Body) != "charged" {
			t.Errorf("Claim afterwards: %+v, %v, want the answer replayed", got, err)
		}
	})
}

// table makes the table that a handler writes to.
func table(t testing.TB, db *sql.DB) {
	t.Helper()
	if _, err := db.Exec("CREATE TABLE charges (cents integer)"); err != nil {
		t.Fatal(err)
	}
}

// insert is what a handler does.
func insert(t testing.TB, ctx context.Context) *sql.Tx {
	t.Helper()
	tx, err := sqlstore.Tx(ctx)
	if err != nil {
		t.Fatalf("Tx: %v", err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO charges VALUES (1990)"); err != nil {
		t.Fatalf("insert: %v", err)
	}
	return tx
}

func count(t testing.TB, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM charges").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
