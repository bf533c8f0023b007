package effects

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/riprap-go/riprap/idempotency/sqlstore"
	"github.com/riprap-go/riprap/internal/pgtest"
)

// A database is one of the two kinds that the keys and the ledger are in.
type database struct {
	name   string
	driver string
	store  func(*sql.DB) *sqlstore.Store
	create string                        // the ledger
	open   func(testing.TB) (dsn string) // of a database that has nothing in it
}

var databases = []*database{
	{"PostgreSQL", "pgx", sqlstore.PostgreSQL, `CREATE TABLE ledger (row bigserial PRIMARY KEY, operation text NOT NULL, nonce text NOT NULL)`, openPostgreSQL},
	{"SQLite", "sqlite3", sqlstore.SQLite, `CREATE TABLE ledger (row INTEGER PRIMARY KEY, operation TEXT NOT NULL, nonce TEXT NOT NULL)`, openSQLite},
}

// each runs a test on both kinds, at the same time.
func each(t *testing.T, test func(t *testing.T, d *database)) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// server is one PostgreSQL for all tests, each of which has a schema of its own. It ends with the process.
var server struct {
	sync.Mutex
	*pgtest.Server
}

// untilExit is a test that has not ended before the process does.
type untilExit struct{ testing.TB }

func (untilExit) Cleanup(func()) {}

func postgres(t testing.TB) *pgtest.Server {
	t.Helper()
	server.Lock()
	defer server.Unlock()
	if server.Server == nil {
		server.Server = pgtest.StartServer(untilExit{t})
	}
	return server.Server
}

func openPostgreSQL(t testing.TB) (dsn string) {
	t.Helper()
	s := postgres(t)
	if err := s.Restart(); err != nil { // a test before may have left it as it crashed
		t.Fatal(err)
	}
	db := dial(t, "pgx", s.DSN())
	schema := "effects_" + strings.ToLower(rand.Text())
	if _, err := db.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	return s.DSN() + "&search_path=" + schema
}

func openSQLite(t testing.TB) (dsn string) {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(filepath.Join(t.TempDir(), "ledger.db"))}
	return u.String() + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
}

func dial(t testing.TB, driver, dsn string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// prepare makes the tables in a new database.
func (d *database) prepare(t testing.TB) (dsn string, db *sql.DB) {
	t.Helper()
	dsn = d.open(t)
	db = dial(t, d.driver, dsn)
	if err := d.store(db).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(d.create); err != nil {
		t.Fatal(err)
	}
	return dsn, db
}

// An entry is a row of the ledger, and what the client is told of it. Nothing keeps an operation from having two.
type entry struct {
	Row   int64  `json:"row"`
	Nonce string `json:"nonce"`
}

// write adds an entry to the ledger, by a transaction or without one.
func write(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, operation string) (e entry, err error) {
	e.Nonce = rand.Text()
	err = q.QueryRowContext(ctx, `INSERT INTO ledger (operation, nonce) VALUES ($1, $2) RETURNING row`, operation, e.Nonce).Scan(&e.Row)
	return e, err
}

// readLedger returns the entries by their operations.
func readLedger(t testing.TB, db *sql.DB) map[string][]entry {
	t.Helper()
	rows, err := db.Query(`SELECT operation, row, nonce FROM ledger`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	ledger := make(map[string][]entry)
	for rows.Next() {
		var operation string
		var e entry
		if err := rows.Scan(&operation, &e.Row, &e.Nonce); err != nil {
			t.Fatal(err)
		}
		ledger[operation] = append(ledger[operation], e)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ledger
}

// A balance is the ledger compared with what clients were told.
type balance struct {
	rows       int
	duplicated []string // operations with more than one row
	lost       []string // that a client was told to be done, without a row
	mistold    []string // whose client was told of something else than its row
}

func compare(ledger map[string][]entry, told map[string]entry) (b balance) {
	for operation, entries := range ledger {
		b.rows += len(entries)
		if len(entries) > 1 {
			b.duplicated = append(b.duplicated, operation)
		}
	}
	for operation, e := range told {
		switch entries := ledger[operation]; {
		case len(entries) == 0:
			b.lost = append(b.lost, operation)
		case !slices.Contains(entries, e):
			b.mistold = append(b.mistold, operation)
		}
	}
	return b
}

// mustAgree fails a test unless each operation has one row at most, and each client was told of it.
func (b balance) mustAgree(t testing.TB) {
	t.Helper()
	for what, operations := range map[string][]string{
		"have more than one row":                               b.duplicated,
		"were acknowledged and have no row":                    b.lost,
		"were acknowledged with something else than their row": b.mistold,
	} {
		if len(operations) > 0 {
			t.Errorf("%d operations %s, for example %s", len(operations), what, operations[0])
		}
	}
}
