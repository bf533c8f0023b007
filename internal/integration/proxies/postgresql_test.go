package proxies

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/riprap-go/riprap/internal/pgtest"
)

// Two proxies in front of one service, as behind a load balancer: a client that tries again may come to the other one.
func TestProxiesShareTheirKeysInPostgreSQL(t *testing.T) {
	l := newLedger(t, http1, func(int) fault { return "" })
	var fronts [2]*proxy
	dsn := pgtest.Start(t)
	for i := range fronts {
		fronts[i] = stand(t, l.url, "--require-key", "POST /charge", "--scope", "header:X-Customer", "--store", dsn)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	const operations, sends = 40, 4
	var all sync.WaitGroup
	for n := range operations {
		operation := "op-" + strconv.Itoa(n)
		for i := range sends {
			all.Go(func() { // at once: one runs, the others hear that it does, or get its answer
				w := way{method: "POST", path: "/charge", field: "Idempotency-Key", body: "amount=5", length: 8}
				if got, told := order(tr, fronts[i%2].url, w, operation); got != charged && got != running {
					t.Errorf("%s = %s (%s), want it charged or still running", operation, got, told)
				}
			})
		}
	}
	all.Wait()
	for n := range operations { // and now everybody gets the answer
		operation := "op-" + strconv.Itoa(n)
		for _, front := range fronts {
			w := way{method: "POST", path: "/charge", field: "Idempotency-Key", body: "amount=5", length: 8}
			if got, told := order(tr, front.url, w, operation); got != charged {
				t.Errorf("%s once more = %s (%s), want its answer", operation, got, told)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests != operations || len(l.charges) != operations {
		t.Errorf("the service got %d requests for %d operations, want one for each of %d", l.requests, len(l.charges), operations)
	}
	for _, p := range fronts {
		if strings.Contains(p.out.String(), dsn) {
			t.Error("the proxy wrote where its keys are with all that is in the URL")
		}
	}
}
