package effects

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/riphttp"
)

// A load is clients that work through operations, each until it has an answer: by a riphttp.Transport, and with the same key
// again whenever that has given up.
type load struct {
	client *http.Client

	clients    int
	operations int         // of each client, at least
	more       func() bool // whether clients go on after that; nil: no
	insistent  bool        // clients ask once more about some operations that they have an answer to, which must be the same

	acknowledged atomic.Int64

	mu   sync.Mutex
	told map[string]entry // what the clients were told, by operation
	held map[string]bool  // operations of which they were told that nobody knows
	seen map[string]int   // how many answers there were, by what became of the request
}

// attemptTimeout is how long clients wait for a server that does not answer.
const attemptTimeout = time.Second

func newLoad(base http.RoundTripper, clients, operations int) *load {
	l := &load{clients: clients, operations: operations, insistent: true, told: make(map[string]entry), held: make(map[string]bool), seen: make(map[string]int)}
	l.client = &http.Client{Transport: &riphttp.Transport{
		Base: counting{base, l},
		Policy: &riprap.Policy{
			MaxAttempts:    6,
			Timeout:        -1,
			AttemptTimeout: attemptTimeout,
			Backoff:        riprap.Backoff{Base: 5 * time.Millisecond, Max: 250 * time.Millisecond},
			Budget:         &riprap.Budget{Ratio: math.Inf(1)},
		},
	}}
	return l
}

// counting is a RoundTripper that looks at what became of requests.
type counting struct {
	base http.RoundTripper
	l    *load
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.base.RoundTrip(r)
	what := "no answer"
	if err == nil {
		what = cmp.Or(resp.Header.Get(became), "of no middleware")
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.l.seen[what]++
	return resp, err
}

// run returns when each client has an answer to each of its operations.
func (l *load) run(t testing.TB, ctx context.Context) {
	t.Helper()
	var running sync.WaitGroup
	for client := range l.clients {
		running.Go(func() {
			for i := 0; i < l.operations || l.more != nil && l.more(); i++ {
				operation := operationOf(client, i)
				err := l.operate(ctx, operation)
				if err == nil && l.insistent && i%16 == 0 {
					err = l.operate(ctx, operation)
				}
				if err != nil {
					t.Errorf("%s: %v", operation, err)
					return
				}
			}
		})
	}
	running.Wait()
	var seen []string
	for _, what := range slices.Sorted(maps.Keys(l.seen)) {
		seen = append(seen, fmt.Sprintf("%d %s", l.seen[what], what))
	}
	t.Logf("%d operations; answers: %s", len(l.told)+len(l.held), strings.Join(seen, ", "))
}

// operate sends an operation until there is an answer.
func (l *load) operate(ctx context.Context, operation string) error {
	for {
		e, held, err := l.send(ctx, operation)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("no answer in all that time; the last failure is: %w", err)
		case err != nil:
			continue
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if held {
			l.held[operation] = true
			return nil
		}
		before, ok := l.told[operation]
		switch {
		case ok && before != e:
			return fmt.Errorf("answered with %+v, and before with %+v", e, before)
		case ok:
			return nil
		}
		l.told[operation] = e
		l.acknowledged.Add(1)
		return nil
	}
}

// send sends an operation by one call of the transport.
func (l *load) send(ctx context.Context, operation string) (e entry, held bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ledger.test/entries", strings.NewReader(operation))
	if err != nil {
		return e, false, err
	}
	req.Header.Set("Idempotency-Key", `"`+operation+`"`)
	resp, err := l.client.Do(req)
	if err != nil {
		return e, false, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return e, false, err
	case resp.StatusCode == http.StatusCreated:
		return e, false, json.Unmarshal(body, &e)
	case resp.Header.Get(became) == idempotency.Unresolved.String():
		return e, true, nil
	}
	return e, false, fmt.Errorf("%s: %s", resp.Status, body)
}
