package proxy

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/riphttp"
)

// What an admin asks others for, each time that somebody looks. Nil functions are not asked.
type adminSources struct {
	version     string                         // of this program
	snapshots   func(now time.Time) []Snapshot // of the services; those of one name are taken together
	connections func(service string) int64     // that clients have open
	ready       func() bool                    // for requests; nil means always
}

// An admin shows operators what the proxy does: metrics, state, health. It may be used by many goroutines at once. What it holds
// grows with the configuration, and not with what clients send.
type admin struct {
	adminSources
	started time.Time
	places  atomic.Pointer[places]
	events  events
	metrics *prometheus.Registry
	took    *prometheus.HistogramVec

	mu      sync.Mutex // guards what follows
	loaded  time.Time  // when the configuration in force was
	reloads int        // that were taken
	refused int
}

// newAdmin makes an admin without any service.
func newAdmin(sources adminSources) *admin {
	now := time.Now()
	a := &admin{adminSources: sources, started: now, loaded: now}
	a.places.Store(&places{})
	a.metrics, a.took = newRegistry(a)
	return a
}

// configure says which services and routes there are, before the first request that follows the configuration. Counts go on.
func (a *admin) configure(config []manifest.Proxy) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.places.Store(newPlaces(a.places.Load(), config, a.took))
}

// reloaded notes that the configuration was read again, and whether it was taken.
func (a *admin) reloaded(now time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil { // its text is for whoever sent the signal
		a.refused++
		return
	}
	a.reloads++
	a.loaded = now
}

// watch is what services tell of their requests.
func (a *admin) watch() Watch { return Watch{Ended: a.ended, Keyed: a.keyed} }

func (a *admin) ended(v *Visit) {
	p := a.places.Load().byID[placeID{v.Service, v.Route}]
	if p == nil {
		return // it lasted for two reloads, and its route is gone
	}
	what := v.notable()
	p.add(v, what)
	if what != "" {
		a.events.add(newEvent(v, p, what))
	}
}

func (a *admin) keyed(service string, e idempotency.Event) {
	if counts := a.places.Load().keys[service]; counts != nil {
		counts[kindOf(e.Kind)].Add(1)
	}
}

// handler serves /metrics, /state, /livez and /readyz.
func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{CoalesceGather: true}))
	mux.HandleFunc("GET /state", a.serveState)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.isReady() {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "not ready\n")
			return
		}
		io.WriteString(w, "ok\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		mux.ServeHTTP(w, r)
	})
}

func (a *admin) isReady() bool { return a.ready == nil || a.ready() }

// A load is what a service has to do just now.
type load struct {
	to                string
	inFlight, waiting int64
	connections       int64
	routes            map[string]riphttp.Snapshot // by the name of the budget and bound
}

// loads asks the services.
func (a *admin) loads(places *places, now time.Time) map[string]*load {
	all := map[string]*load{}
	for service := range places.keys {
		all[service] = &load{routes: map[string]riphttp.Snapshot{}}
		if a.connections != nil {
			all[service].connections = a.connections(service)
		}
	}
	if a.snapshots == nil {
		return all
	}
	for _, s := range a.snapshots(now) {
		l := all[s.Service]
		if l == nil {
			continue // a configuration that came this moment
		}
		l.to = s.To
		l.inFlight += s.InFlight
		l.waiting += s.Waiting
		for _, r := range s.Routes {
			l.routes[r.Name] = r
		}
	}
	return all
}
