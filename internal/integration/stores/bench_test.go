package stores

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// Taking a key and keeping its answer, compared with what it cannot do without: one INSERT and one UPDATE of the same columns, each
// committed by itself. The retention counts from the answer, so the UPDATE moves the row in the index of expiries.
func BenchmarkClaimAndComplete(b *testing.B) {
	for _, d := range databases {
		for _, clients := range []int{1, 64} {
			for _, impl := range []string{"raw", "riprap"} {
				b.Run(fmt.Sprintf("db=%s/clients=%d/impl=%s", d.name, clients, impl), func(b *testing.B) {
					db := connect(b, d)
					db.SetMaxIdleConns(clients)
					s := d.store(db)
					if err := s.Migrate(b.Context()); err != nil {
						b.Fatal(err)
					}
					run := func(ctx context.Context, id idempotency.ID) error {
						c := newClaim("")
						c.ID = id
						got, err := s.Claim(ctx, c)
						if err == nil {
							err = s.Complete(ctx, c.Ticket(got.Generation), benchAnswer, time.Hour)
						}
						return err
					}
					if impl == "raw" {
						run = raw(b, db, d, s.Migrations())
					}
					var n atomic.Int64
					operate := func() {
						id := idempotency.NewID("", "", fmt.Sprint(n.Add(1)))
						if err := run(context.Background(), id); err != nil {
							b.Error(err)
						}
					}
					operate()
					if clients == 1 {
						for b.Loop() {
							operate()
						}
						return
					}
					b.SetParallelism(clients / runtime.GOMAXPROCS(0))
					b.ResetTimer()
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							operate()
						}
					})
				})
			}
		}
	}
}

var benchAnswer = idempotency.Answer{Status: 201, Header: map[string][]string{"Content-Type": {"application/json"}}, Body: []byte(`{"id":"ch_1","cents":1990}`)}

// raw makes a table like the store's, and returns what inserts and updates a row of it.
func raw(b *testing.B, db *sql.DB, d database, migrations fs.FS) func(context.Context, idempotency.ID) error {
	text, err := fs.ReadFile(migrations, "0001_keys.sql")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(strings.NewReplacer("riprap_keys", "raw_keys", "riprap_schema", "raw_schema").Replace(string(text))); err != nil {
		b.Fatal(err)
	}
	prepare := func(query string) *sql.Stmt {
		if d.name == "SQLite" {
			query = strings.ReplaceAll(query, "$", "?") // there $1 is a name, and its number the place where it is met
		}
		st, err := db.Prepare(query)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { st.Close() })
		return st
	}
	insert := prepare(`INSERT INTO raw_keys (id, fingerprint, operation, state, owner, generation, reexecute, begun_at, lease_until, expires_at)
		VALUES ($1, $2, $3, 1, $4, 1, $5, $6, $7, $8)`)
	update := prepare(`UPDATE raw_keys SET state = 2, status = $2, tombstone = $3, header = $4, body = $5, expires_at = $6 WHERE id = $1`)
	return func(ctx context.Context, id idempotency.ID) error {
		var owner idempotency.Owner
		rand.Read(owner[:])
		now := time.Now().UnixMicro()
		if _, err := insert.ExecContext(ctx, id[:], []byte{1, 2, 3}, "POST /charges", owner[:], true, now, now+60e6, now+3600e6); err != nil {
			return err
		}
		result, err := update.ExecContext(ctx, id[:], 201, false, []byte("Content-Type: application/json"), benchAnswer.Body, time.Now().UnixMicro()+3600e6)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("%d rows updated, %w", n, err)
		}
		return nil
	}
}
