package keys

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
	"github.com/riprap-go/riprap/internal/pgtest"
)

// typed runs the subcommand and returns what it prints.
func typed(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	err := run(t.Context(), args, strings.NewReader(stdin), &stdout)
	return stdout.String(), err
}

// A base is a database of one kind, and the store in it.
type base struct {
	*sqlstore.Store
	db  *sql.DB
	dsn string // for --store
}

// each runs a test on both kinds of databases, each of its own and with nothing in it.
func each(t *testing.T, test func(t *testing.T, b *base)) {
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newPostgreSQL(t)) })
}

func newSQLite(t *testing.T) *base {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys.db")
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(file)}
	db := dial(t, "sqlite3", u.String()+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	return &base{sqlstore.SQLite(db), db, file}
}

// One server for all tests. It ends with the process, and each test has a schema of its own in it.
var server = struct {
	sync.Mutex
	dsn string
}{}

// untilExit is a test that has not ended before the process does.
type untilExit struct{ testing.TB }

func (untilExit) Cleanup(func()) {}

func newPostgreSQL(t *testing.T) *base {
	t.Helper()
	server.Lock()
	defer server.Unlock()
	if server.dsn == "" {
		server.dsn = pgtest.Start(untilExit{t})
	}
	schema := "keys_" + strings.ToLower(rand.Text())
	if _, err := dial(t, "pgx", server.dsn).Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	dsn := server.dsn + "&search_path=" + schema
	db := dial(t, "pgx", dsn)
	return &base{sqlstore.PostgreSQL(db), db, dsn}
}

func dial(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func (b *base) migrate(t *testing.T) {
	t.Helper()
	if err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// claim takes a key for a run, which is over if the lease is.
func (b *base) claim(t *testing.T, c idempotency.Claim) idempotency.Ticket {
	t.Helper()
	got, err := b.Claim(t.Context(), filled(c))
	if err != nil || got.Verdict != idempotency.ClaimWon {
		t.Fatalf("Claim(%v) = %+v, %v, want it to win", c.ID, got, err)
	}
	return filled(c).Ticket(got.Generation)
}

func filled(c idempotency.Claim) idempotency.Claim {
	c.Fingerprint = []byte("same")
	c.Owner = idempotency.Owner(c.ID[:16])
	if c.Operation == "" {
		c.Operation = "POST /charges"
	}
	if c.Lease == 0 {
		c.Lease = 10*time.Hour + 30*time.Minute
	}
	c.Retention = 24*time.Hour + 30*time.Minute
	return c
}

func (b *base) complete(t *testing.T, k idempotency.Ticket, a idempotency.Answer) {
	t.Helper()
	if err := b.Complete(t.Context(), k, a, 24*time.Hour+30*time.Minute); err != nil {
		t.Fatal(err)
	}
}

var paid = idempotency.Answer{
	Status: 201, Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/charges/17"}}, Body: []byte("{\"id\":17}\n"),
}

// id is that of the key "key-N" of one customer and operation.
func id(n string) idempotency.ID { return idempotency.NewID("customer 7", "POST /charges", "key-"+n) }

// fill makes a key in each state that there is.
func (b *base) fill(t *testing.T) {
	t.Helper()
	b.migrate(t)
	b.complete(t, b.claim(t, idempotency.Claim{ID: id("answered")}), paid)
	b.complete(t, b.claim(t, idempotency.Claim{ID: id("streamed"), Operation: "POST /reports"}), idempotency.Answer{Status: 200, Tombstone: true})
	b.claim(t, idempotency.Claim{ID: id("running")})
	b.claim(t, idempotency.Claim{ID: id("dead"), Lease: -time.Second})
	b.claim(t, idempotency.Claim{ID: id("runs again"), Lease: -time.Second, Reexecute: true, Operation: "PATCH /carts/{id}"})
	b.suspend(t, idempotency.Claim{ID: id("unknown")})
}

func (b *base) suspend(t *testing.T, c idempotency.Claim) {
	t.Helper()
	if err := b.Suspend(t.Context(), b.claim(t, c)); err != nil {
		t.Fatal(err)
	}
}

// again claims a key once more, as another send of its request does.
func (b *base) again(t *testing.T, which idempotency.ID) idempotency.Claimed {
	t.Helper()
	c := filled(idempotency.Claim{ID: which})
	rand.Read(c.Owner[:])
	got, err := b.Claim(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

var (
	where  = regexp.MustCompile(`(?m) in (SQLite file|PostgreSQL, database).*$`)
	recent = regexp.MustCompile(`(?m)\b\d+ s\b`)
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`)
)

// steady is a text without what differs between databases and from run to run.
func (b *base) steady(text string) string {
	text = where.ReplaceAllString(text, " in STORE")
	return moment.ReplaceAllString(recent.ReplaceAllString(text, "0 s"), "MOMENT")
}
