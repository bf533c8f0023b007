package integration_test

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

func TestRetriesAgainstADeadServerFade(t *testing.T) {
	settles(t)
	const callers, calls, reserve = 20, 25, 10
	var dead atomic.Bool
	dead.Store(true)
	failing := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if dead.Load() {
			w.WriteHeader(503)
		}
	})
	healthy := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	base := plain()
	base.MaxIdleConnsPerHost = callers
	transport := &riphttp.Transport{Base: base, Policy: &riprap.Policy{Backoff: riprap.Backoff{Base: time.Millisecond}}}
	client := &http.Client{Transport: transport}
	t.Cleanup(client.CloseIdleConnections)

	// run makes the calls and returns how many the servers got.
	run := func() (toFailing, toHealthy int32) {
		before, healthyBefore := failing.requests.Load(), healthy.requests.Load()
		var running sync.WaitGroup
		for range callers {
			running.Go(func() {
				for range calls {
					for _, server := range []*server{failing, healthy} {
						resp, err := client.Get(server.URL)
						if err != nil {
							t.Errorf("GET: %v", err)
							return
						}
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}
			})
		}
		running.Wait()
		return failing.requests.Load() - before, healthy.requests.Load() - healthyBefore
	}

	toFailing, toHealthy := run()
	if toFailing <= callers*calls || toFailing > callers*calls+reserve {
		t.Errorf("%d calls became %d requests to a dead server, want at most %d more and at least one", callers*calls, toFailing, reserve)
	}
	if toHealthy != callers*calls {
		t.Errorf("%d calls became %d requests to a healthy server", callers*calls, toHealthy)
	}
	dead.Store(false)
	if toFailing, _ := run(); toFailing != callers*calls {
		t.Errorf("%d calls became %d requests to a server that has recovered", callers*calls, toFailing)
	}
}
