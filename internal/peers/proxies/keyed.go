package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/idempotency/sqlstore"
)

// posts is what wrk does for POSTs: with a fresh Idempotency-Key each if its argument is one that keys may begin with.
const posts = `local prefix, n = nil, 0
function init(args)
	prefix = args[1]
	wrk.method = "POST"
	wrk.body = '{"customer":"c_42","cents":1990,"currency":"EUR","order":"o_1","note":"as agreed"}'
	wrk.headers["Content-Type"] = "application/json"
	wrk.headers["X-Customer"] = "c_42"
end
function request()
	if prefix then
		n = n + 1
		wrk.headers["Idempotency-Key"] = prefix .. n
	end
	return wrk.format()
end
`

// A keyedRound compares POSTs that are run once with what they are made of.
type keyedRound struct {
	plain turn    // POSTs without keys, through the same proxy
	keyed turn    // POSTs with a fresh key each
	store float64 // claims and completions a second, by the store alone
}

// harmonic is the rate of something that is done with one rate first and with the other one then.
func harmonic(a, b float64) float64 { return 1 / (1/a + 1/b) }

// keyed measures what a key costs, on SQLite with all that is promised synced to the disk.
func (b *bench) keyed(ctx context.Context) ([]keyedRound, error) {
	var procs processes
	defer procs.stop()
	script := filepath.Join(b.dir, "posts.lua")
	if err := os.WriteFile(script, []byte(posts), 0o644); err != nil {
		return nil, err
	}
	for _, old := range []string{"keys.db", "keys.db-wal", "keys.db-shm", "alone.db", "alone.db-wal", "alone.db-shm"} {
		if err := os.Remove(filepath.Join(b.dir, old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	backend, err := b.backend(&procs, free)
	if err != nil {
		return nil, err
	}
	proxy, err := b.start(&procs, candidates[len(candidates)-1], free, backend)
	if err != nil {
		return nil, err
	}
	var rounds []keyedRound
	for round := range b.rounds {
		var r keyedRound
		progress("keys, round %d of %d", round+1, b.rounds)
		if r.plain, err = b.measure(ctx, proxy, load{url: proxy.url + "/orders", script: script, placement: free}); err != nil {
			return nil, fmt.Errorf("POST without a key: %w", err)
		}
		prefix := rand.Text()
		if r.keyed, err = b.measure(ctx, proxy, load{url: proxy.url + "/charge", script: script, args: []string{prefix}, placement: free}); err != nil {
			return nil, fmt.Errorf("POST with a key: %w", err)
		}
		if r.store, err = b.alone(ctx); err != nil {
			return nil, fmt.Errorf("the store alone: %w", err)
		}
		rounds = append(rounds, r)
	}
	return rounds, nil
}

// alone lets a process of its own claim and complete keys, and returns how many a second.
func (b *bench) alone(ctx context.Context) (float64, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(b.dir, "proxies"), "keep", filepath.Join(b.dir, "alone.db"), b.turn.String()).Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

// keep claims and completes keys for a while, as many at once as the load has clients, and prints how many a second. The database
// is opened as riprap proxy opens it.
func keep(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: proxies keep FILE DURATION")
	}
	length, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", "file:"+args[0]+"?_pragma=busy_timeout(5000)&_pragma=synchronous(full)&_pragma=journal_mode(wal)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(clients)
	db.SetMaxIdleConns(clients)
	ctx, store := context.Background(), sqlstore.SQLite(db)
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	var done atomic.Int64
	var failed error
	var once sync.Once
	var workers sync.WaitGroup
	prefix, began := rand.Text(), time.Now()
	for range clients {
		workers.Go(func() {
			for time.Since(began) < length {
				if err := keepOne(ctx, store, prefix+fmt.Sprint(done.Add(1))); err != nil {
					once.Do(func() { failed = err })
					return
				}
			}
		})
	}
	workers.Wait()
	fmt.Printf("%.1f\n", float64(done.Load())/time.Since(began).Seconds())
	return failed
}

func keepOne(ctx context.Context, store idempotency.Store, key string) error {
	c := idempotency.Claim{
		ID: idempotency.NewID("c_42", "POST /charge", key), Fingerprint: make([]byte, 32), Operation: "POST /charge",
		Lease: time.Minute, Retention: 24 * time.Hour, Reexecute: true,
	}
	rand.Read(c.Owner[:])
	got, err := store.Claim(ctx, c)
	if err != nil {
		return err
	}
	if got.Verdict != idempotency.ClaimWon {
		return fmt.Errorf("a key that nobody used was claimed and not won: %v", got.Verdict)
	}
	answer := idempotency.Answer{Status: 200, Body: []byte(strings.Repeat("x", 105)),
		Header: map[string][]string{"Content-Type": {"application/json"}, "Date": {time.Now().UTC().Format(time.RFC1123)}}}
	return store.Complete(ctx, c.Ticket(got.Generation), answer, 24*time.Hour)
}
