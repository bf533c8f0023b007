package riprap_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// Markers are what the layers of a chain tell each other about retries.
type markers struct {
	attempt bool // downward: this request is a retry, or serves one
	useless bool // upward: trying again is useless
	eager   bool // ... which is said on every spent budget
}

// An edge is the way from a caller to a service in the same process. What its markers leave out gets lost on it.
type edge struct {
	markers
	to http.Handler
}

func (e edge) RoundTrip(r *http.Request) (*http.Response, error) {
	// As on a network the service sees no value of the caller's context, only that it ended.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	arrived := r.Clone(ctx)
	if !e.attempt {
		arrived.Header.Del(deadline.AttemptHeader)
	}
	w := httptest.NewRecorder()
	e.to.ServeHTTP(w, arrived)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	answer := w.Result()
	if !e.useless {
		answer.Header.Del("X-Should-Retry")
	}
	return answer, nil
}

// A layered service is a chain client→A→B→C with three attempts on each edge, whose last service fails by chance.
type layered struct {
	markers
	failing float64
	budget  func() *riprap.Budget // of each edge; nil leaves it to the Transport
	seed    uint64

	mu     sync.Mutex
	random *rand.Rand // of the jitter
	served atomic.Int32
}

func (b *layered) jitter() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.random.Float64()
}

// client returns a client whose calls arrive at a service.
func (b *layered) client(to http.Handler) *http.Client {
	policy := &riprap.Policy{MaxAttempts: 3, Rand: b.jitter}
	if b.budget != nil {
		policy.Budget = b.budget()
	}
	if b.eager {
		policy.Trace = &riprap.Trace{Done: func(ctx context.Context, e riprap.Event) {
			if errors.Is(e.Reason, riprap.ErrBudget) {
				deadline.GiveUp(ctx)
			}
		}}
	}
	return &http.Client{Transport: &riphttp.Transport{
		Base: edge{b.markers, to}, Policy: policy, Internal: func(*http.Request) bool { return true },
	}}
}

// get asks a service for a call's answer and returns its status.
func get(ctx context.Context, client *http.Client, call string) int {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://service.test/"+call, nil)
	if err != nil {
		panic(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return http.StatusBadGateway
	}
	resp.Body.Close()
	return resp.StatusCode
}

// relay is a service that answers what another one does.
func (b *layered) relay(to http.Handler) http.Handler {
	client := b.client(to)
	return deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(get(r.Context(), client, r.URL.Path[1:]))
	}))
}

// last answers after 20 ms, or fails after 5 ms. Whether the nth request for a call fails is the same in every run with
// the seed, so that runs differ by their markers only.
func (b *layered) last() http.Handler {
	var mu sync.Mutex
	times := map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.served.Add(1)
		mu.Lock()
		times[r.URL.Path]++
		n := times[r.URL.Path]
		mu.Unlock()
		h := fnv.New64a()
		fmt.Fprint(h, b.seed, " ", r.URL.Path, " ", n)
		if rand.New(rand.NewPCG(h.Sum64(), 0)).Float64() < b.failing {
			time.Sleep(5 * time.Millisecond)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		time.Sleep(20 * time.Millisecond)
	})
}

// run makes so many calls, a hundred a second, and returns the share that was answered and how many requests C got for
// each.
func (b *layered) run(t *testing.T, calls int) (answered, load float64) {
	synctest.Test(t, func(t *testing.T) {
		b.random = rand.New(rand.NewPCG(b.seed, 1))
		arrivals := rand.New(rand.NewPCG(b.seed, 2))
		client := b.client(b.relay(b.relay(b.last())))
		var good atomic.Int32
		var running sync.WaitGroup
		for n := range calls {
			time.Sleep(time.Duration(arrivals.ExpFloat64() * float64(10*time.Millisecond)))
			running.Go(func() {
				if get(t.Context(), client, strconv.Itoa(n)) == http.StatusOK {
					good.Add(1)
				}
			})
		}
		running.Wait()
		answered, load = float64(good.Load())/float64(calls), float64(b.served.Load())/float64(calls)
	})
	return answered, load
}

// layerBudgets are those of each edge.
var layerBudgets = []struct {
	name   string
	budget func() *riprap.Budget
}{
	{"unlimited", func() *riprap.Budget { return &riprap.Budget{Ratio: math.Inf(1)} }},
	{"default", nil},
}

var bothMarkers = markers{attempt: true, useless: true}

func TestMarkersOfTheLayersCostNoAnswersInABrownout(t *testing.T) {
	for _, budgets := range layerBudgets {
		t.Run(budgets.name, func(t *testing.T) {
			answered := func(m markers) float64 {
				share, _ := (&layered{markers: m, failing: .5, budget: budgets.budget, seed: 1}).run(t, 2000)
				return share
			}
			without, with := answered(markers{}), answered(bothMarkers)
			if without-with > .02 {
				t.Errorf("half of C's answers are failures: %.3f answered with markers, %.3f without, want at most .02 less", with, without)
			}
		})
	}
}

// The table takes a minute, and its figures hang on every decision of the engine's.
func TestSoakLayersTable(t *testing.T) {
	if os.Getenv("RIPRAP_SOAK") == "" {
		t.Skip("set RIPRAP_SOAK, or run make soak")
	}
	columns := []markers{{}, {attempt: true}, {useless: true}, bothMarkers, {attempt: true, useless: true, eager: true}}
	rows := [][]string{{"budgets, failures at C", "no markers", "request's", "response's", "both", "response's on every spent budget",
		"requests at C for each call: no markers", "both"}}
	for _, budgets := range layerBudgets {
		for _, failing := range []float64{.2, .5, .8} {
			row := []string{fmt.Sprintf("%s, %.0f %%", budgets.name, 100*failing)}
			var loads []string
			for _, m := range columns {
				answered, load := (&layered{markers: m, failing: failing, budget: budgets.budget, seed: 1}).run(t, 5000)
				row = append(row, fmt.Sprintf("%.1f %%", 100*answered))
				if m == (markers{}) || m == bothMarkers {
					loads = append(loads, fmt.Sprintf("%.2f", load))
				}
			}
			rows = append(rows, append(row, loads...))
		}
	}
	checkTable(t, "layers.md", "brownout", rows)
}
