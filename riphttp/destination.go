package riphttp

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap"
)

const (
	// A destination that was not called for so long, up to twice that, is forgotten. Nothing is lost: its budget's
	// window is empty and its reserve is full again, its Latency has forgotten, and how its first attempts ended is old.
	idleTime = time.Hour

	// So many destinations are kept. Beyond, those not called lately are forgotten, or else any quarter of them. Each
	// may come back with a full reserve; the budget above them all holds meanwhile.
	maxDestinations = 4096

	// Names are cut off here: those of hosts are no longer (RFC 1035 §2.3.4), and a redirect may lead to one of megabytes.
	maxName = 255 + len(":65535")

	// The reserve of the budget above all destinations.
	sharedReserve = 100
)

// A service says who is called: scheme and host, or a name that Destination gave.
type service struct{ scheme, host string }

func (s service) String() string {
	if s.scheme == "" {
		return s.host
	}
	return s.scheme + "://" + s.host
}

// A destination is what a Transport knows of a service that it calls.
type destination struct {
	service service
	name    string
	budget  riprap.Budget
	latency riprap.Latency // in use if the Transport is Adaptive
	firsts  firsts
	policy  riprap.Policy // the Transport's, complete
	used    atomic.Bool   // since the last sweep

	// How long the service keeps keys, as a time.Duration; zero until it says so.
	retention atomic.Int64
}

// Destinations is the table of the services called. The zero value is ready to use.
type destinations struct {
	last  atomic.Pointer[destination] // the one called last: most clients call few services
	mu    sync.RWMutex
	table map[service]*destination
	all   *riprap.Budget // above those of all destinations
	swept time.Time
}

// destination returns what the Transport knows of the service that a request goes to.
func (t *Transport) destination(req *http.Request) *destination {
	var s service
	if t.Destination != nil {
		s.host = t.Destination(req)
	} else {
		s = origin(req.URL)
	}
	s.host = s.host[:min(len(s.host), maxName)]
	d := &t.destinations
	found := d.last.Load()
	if found == nil || found.service != s {
		d.mu.RLock()
		found = d.table[s]
		d.mu.RUnlock()
		if found == nil {
			found = d.add(s, t, time.Now())
		}
		d.last.Store(found)
	}
	if !found.used.Load() {
		found.used.Store(true)
	}
	return found
}

func (d *destinations) add(s service, t *Transport, now time.Time) *destination {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.table[s]; found != nil {
		return found
	}
	if d.table == nil {
		d.table = make(map[service]*destination)
		d.all = &riprap.Budget{Reserve: sharedReserve}
		d.swept = now
	}
	if len(d.table) >= maxDestinations || now.Sub(d.swept) > idleTime {
		d.sweep(now)
	}
	// A host is part of its URL's text, which would stay in memory with it.
	s = service{strings.Clone(s.scheme), strings.Clone(s.host)}
	added := &destination{service: s, name: s.String(), budget: riprap.Budget{Parent: d.all}}
	var learned *riprap.Latency
	if t.Adaptive {
		learned = &added.latency
	}
	added.policy = *complete(t.Policy, &added.budget, learned)
	d.table[s] = added
	return added
}

// sweep forgets the destinations that were not used since the last sweep, and more if the table is still full.
func (d *destinations) sweep(now time.Time) {
	d.swept = now
	for s, dest := range d.table {
		if !dest.used.Swap(false) {
			delete(d.table, s)
		}
	}
	for s := range d.table { // in no order
		if len(d.table) < maxDestinations*3/4 {
			break
		}
		delete(d.table, s)
	}
}
