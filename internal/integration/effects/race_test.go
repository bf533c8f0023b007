package effects

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/riphttp"
)

const racers = 1000

// everywhere runs a test with two stores over one set of records: Memory, which is the same one twice, and each database with
// two pools of connections, as two processes have them.
func everywhere(t *testing.T, test func(t *testing.T, stores [2]idempotency.Store)) {
	t.Run("Memory", func(t *testing.T) {
		m := new(idempotency.Memory)
		test(t, [2]idempotency.Store{m, m})
	})
	each(t, func(t *testing.T, d *database) {
		dsn, _ := d.prepare(t)
		var stores [2]idempotency.Store
		for i := range stores {
			db := dial(t, d.driver, dsn)
			db.SetMaxOpenConns(16)
			db.SetMaxIdleConns(16)
			stores[i] = d.store(db)
		}
		test(t, stores)
	})
}

// race starts all racers at once and waits for them.
func race(run func(racer int)) {
	var running sync.WaitGroup
	start := make(chan struct{})
	for racer := range racers {
		running.Go(func() {
			<-start
			run(racer)
		})
	}
	close(start)
	running.Wait()
}

func TestOneOfAThousandClaimsIsWon(t *testing.T) {
	everywhere(t, func(t *testing.T, stores [2]idempotency.Store) {
		verdicts := claimAll(t, stores)
		if want := map[idempotency.Verdict]int{idempotency.ClaimWon: 1, idempotency.ClaimInFlight: racers - 1}; !maps.Equal(verdicts, want) {
			t.Errorf("%d claims of one key had the verdicts %v, want %v", racers, verdicts, want)
		}
	})
}

// claimAll lets all racers claim one key, and counts the verdicts.
func claimAll(t *testing.T, stores [2]idempotency.Store) map[idempotency.Verdict]int {
	ctx := patiently(t)
	var mu sync.Mutex
	verdicts := make(map[idempotency.Verdict]int)
	race(func(racer int) {
		got, err := stores[racer%2].Claim(ctx, newClaim("the operation of all", time.Hour))
		if err != nil {
			t.Errorf("Claim: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		verdicts[got.Verdict]++
	})
	return verdicts
}

func TestAThousandRequestsWithOneKeyRunOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, stores [2]idempotency.Store) {
		runs, answers := requestAll(t, stores)
		if runs != 1 {
			t.Errorf("%d requests with one key had %d runs, want 1", racers, runs)
		}
		if want := map[string]int{"run 1": racers}; !maps.Equal(answers, want) {
			t.Errorf("%d requests with one key had the answers %v, want %v", racers, answers, want)
		}
	})
}

// requestAll lets all racers send one request to either of two servers, and counts the runs and the answers by their bodies. No run ends before half
// of the requests are there.
func requestAll(t *testing.T, stores [2]idempotency.Store) (runs int64, answers map[string]int) {
	ctx := patiently(t)
	var ran, arrived atomic.Int64
	crowded := make(chan struct{})
	var urls [2]string
	for i, store := range stores {
		m := idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, Wait: patience, MaxWaiting: racers, Observe: ignore}
		h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := ran.Add(1)
			<-crowded
			fmt.Fprintf(w, "run %d", n)
		}))
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if arrived.Add(1) == racers/2 {
				close(crowded)
			}
			h.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		urls[i] = s.URL
	}
	base := &http.Transport{MaxIdleConnsPerHost: racers}
	t.Cleanup(base.CloseIdleConnections)
	client := &http.Client{Transport: &riphttp.Transport{Base: base, Policy: &riprap.Policy{
		MaxAttempts: -1, Timeout: -1, AttemptTimeout: patience, Budget: &riprap.Budget{Ratio: math.Inf(1)}}}}
	var mu sync.Mutex
	answers = make(map[string]int)
	race(func(racer int) {
		status, body, _, err := post(ctx, client, urls[racer%2], "the operation of all")
		if err != nil || status != http.StatusOK {
			t.Errorf("POST: %d %s, %v, want 200", status, body, err)
		}
		mu.Lock()
		defer mu.Unlock()
		answers[body]++
	})
	return ran.Load(), answers
}

func ignore(context.Context, idempotency.Event) {}
