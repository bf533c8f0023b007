package proxy

import (
	"encoding/json"
	"math"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap/riphttp"
)

// state is what /state shows. docs/metrics.md has a row for each field.
type state struct {
	Format   int            `json:"format"` // of this document; grows when a field changes its meaning
	Time     time.Time      `json:"time"`
	Started  time.Time      `json:"started"`
	Version  string         `json:"version"`
	Go       string         `json:"go"`
	Ready    bool           `json:"ready"`
	Config   configState    `json:"config"`
	Services []serviceState `json:"services"`
	Events   []event        `json:"events"` // the newest first
}

type configState struct {
	Loaded  time.Time `json:"loaded"` // when the one in force was taken
	Reloads int       `json:"reloads"`
	Refused int       `json:"refused"`
}

type serviceState struct {
	Service      string             `json:"service"`
	To           string             `json:"to"`
	InFlight     int64              `json:"in_flight"`
	Waiting      int64              `json:"waiting"`
	Connections  int64              `json:"connections"`
	Keys         map[string]uint64  `json:"keys"` // by what became of them
	Counts       countState         `json:"counts"`
	Destinations []destinationState `json:"destinations"`
}

// A destinationState is of what shares a budget and a bound.
type destinationState struct {
	Route       string        `json:"route"`
	Counts      countState    `json:"counts"`
	Called      bool          `json:"called"`        // lately: else nothing is known of it
	RetriesLeft *int          `json:"retries_left"`  // null: not called, or unlimited
	Unlimited   bool          `json:"unlimited"`     // the budget is
	Bound       *float64      `json:"bound_seconds"` // of an attempt; null: nothing bounds it
	Latency     *latencyState `json:"latency"`       // null: not observed
}

// A latencyState is of attempts in the last minute.
type latencyState struct {
	Count    int     `json:"count"`
	P50      float64 `json:"p50_seconds"`
	P95      float64 `json:"p95_seconds"`
	P99      float64 `json:"p99_seconds"`
	TimedOut float64 `json:"timed_out"` // the share that did
}

// A countState counts what has ended since the proxy was started.
type countState struct {
	Requests uint64            `json:"requests"`
	Attempts uint64            `json:"attempts"`
	Retries  uint64            `json:"retries"`
	Events   map[string]uint64 `json:"events"` // requests by what was notable
}

// serveState writes the state.
func (a *admin) serveState(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.Encode(a.state(time.Now())) // what fails is the client
}

func (a *admin) state(now time.Time) *state {
	s := &state{
		Format: 1, Time: now, Started: a.started, Version: a.version, Go: runtime.Version(), Ready: a.isReady(),
		Services: []serviceState{}, Events: a.events.last(),
	}
	a.mu.Lock()
	s.Config = configState{a.loaded, a.reloads, a.refused}
	a.mu.Unlock()
	places := a.places.Load()
	loads := a.loads(places, now)
	index := map[string]int{}
	for _, p := range places.config {
		l := loads[p.service]
		i, known := index[p.service]
		if !known {
			i = len(s.Services)
			index[p.service] = i
			s.Services = append(s.Services, serviceState{
				Service: label(p.service), To: l.to, InFlight: l.inFlight, Waiting: l.waiting, Connections: l.connections,
				Keys: byWord(kindWords, places.keys[p.service]), Counts: countState{Events: map[string]uint64{}},
			})
		}
		s.Services[i].Destinations = append(s.Services[i].Destinations, p.state(l.routes))
		s.Services[i].Counts.add(&s.Services[i].Destinations[len(s.Services[i].Destinations)-1].Counts)
	}
	return s
}

// state is what is known of a place.
func (p *place) state(routes map[string]riphttp.Snapshot) destinationState {
	known, called := routes[p.name()]
	d := destinationState{
		Route:  p.labels[1],
		Called: called,
		Counts: countState{total(p.requests), total(p.attempts), p.retries.Load(), byWord(notableWords, p.notable)},
	}
	if bound := p.bound(known.Latency); bound > 0 {
		seconds := bound.Seconds()
		d.Bound = &seconds
	}
	if d.Unlimited = called && known.Retries == math.MaxInt; called && !d.Unlimited {
		d.RetriesLeft = &known.Retries
	}
	if l := known.Latency; l.Count > 0 {
		d.Latency = &latencyState{l.Count, l.P50.Seconds(), l.P95.Seconds(), l.P99.Seconds(), l.TimedOut}
	}
	return d
}

func (c *countState) add(d *countState) {
	c.Requests += d.Requests
	c.Attempts += d.Attempts
	c.Retries += d.Retries
	for what, n := range d.Events {
		c.Events[what] += n
	}
}

// byWord is the count of each word.
func byWord(v *vocabulary, counts []atomic.Uint64) map[string]uint64 {
	all := make(map[string]uint64, len(v.words))
	for i, word := range v.words {
		all[word] = counts[i].Load()
	}
	return all
}
