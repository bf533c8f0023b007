package proxy

import (
	"cmp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// A tally counts the requests of one route of a service. What a request costs is some atomic additions.
type tally struct {
	took       prometheus.Observer
	requests   []atomic.Uint64 // by method and status
	attempts   []atomic.Uint64 // by outcome
	notRetried []atomic.Uint64 // by reason
	problems   []atomic.Uint64 // by type
	notable    []atomic.Uint64 // by what was notable
	retries    atomic.Uint64
	broken     atomic.Uint64
}

func newTally(took prometheus.Observer) *tally {
	return &tally{
		took:       took,
		requests:   make([]atomic.Uint64, len(methodWords.words)*len(statusWords)),
		attempts:   make([]atomic.Uint64, len(outcomeWords)),
		notRetried: reasonWords.counts(),
		problems:   problemWords.counts(),
		notable:    notableWords.counts(),
	}
}

// add counts a request that is over.
func (t *tally) add(v *Visit, notable string) {
	t.took.Observe(v.Took.Seconds())
	t.requests[methodWords.find(v.Method)*len(statusWords)+statusOf(v.Status)].Add(1)
	for i := range v.Attempts {
		t.attempts[outcomeOf(&v.Attempts[i])].Add(1)
	}
	if n := len(v.Attempts); n > 1 {
		t.retries.Add(uint64(n - 1))
	}
	if v.Broken {
		t.broken.Add(1)
	}
	if v.Reason != "" {
		t.notRetried[reasonWords.find(v.Reason)].Add(1)
	}
	if v.Problem != "" {
		t.problems[problemWords.find(v.Problem)].Add(1)
	}
	if notable != "" {
		t.notable[notableWords.find(notable)].Add(1)
	}
}

// total sums counts up.
func total(counts []atomic.Uint64) (n uint64) {
	for i := range counts {
		n += counts[i].Load()
	}
	return n
}

// A placeID names a place as a Visit does.
type placeID struct{ service, route string }

// name is that of the place's budget and bound.
func (id placeID) name() string { return strings.TrimSuffix(id.service+" "+id.route, " ") }

// label is a text as a label may be.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// A place is where requests go: a route of a service, with its tally.
type place struct {
	placeID
	*tally
	labels  []string      // of service and route; what matches no pattern has a word there that is none
	ceiling time.Duration // of an attempt's bound; zero or less means none
}

// bound is what an attempt has at most; zero means that there is no bound.
func (p *place) bound(l riprap.LatencySnapshot) time.Duration {
	switch {
	case l.Bound <= 0:
		return max(p.ceiling, 0)
	case p.ceiling <= 0:
		return l.Bound
	}
	return min(l.Bound, p.ceiling)
}

// places are all that there are. They do not change: another configuration has others.
type places struct {
	config  []*place // in its order
	leaving []*place // not in it any more: there may be requests under way
	byID    map[placeID]*place
	keys    map[string][]atomic.Uint64 // of each service, by what became of them
}

// newPlaces makes the places of a configuration, with what was counted before. A place that is not in it any more stays until
// the one after it, so that what is shown has an end, whatever names there were.
func newPlaces(old *places, config []manifest.Proxy, took *prometheus.HistogramVec) *places {
	p := &places{byID: map[placeID]*place{}, keys: map[string][]atomic.Uint64{}}
	for i := range config {
		c := &config[i]
		p.add(old, c, manifest.Route{}, took)
		for _, r := range c.Routes {
			p.add(old, c, r, took)
		}
	}
	for _, before := range old.config {
		if p.byID[before.placeID] == nil {
			p.leaving = append(p.leaving, before)
			p.byID[before.placeID] = before
			p.keysOf(old, before.service)
		}
	}
	for _, before := range old.leaving {
		if p.byID[before.placeID] == nil {
			took.DeleteLabelValues(before.labels...)
		}
	}
	return p
}

func (p *places) add(old *places, c *manifest.Proxy, r manifest.Route, took *prometheus.HistogramVec) {
	id := placeID{c.Service, r.Match}
	if p.byID[id] != nil {
		return
	}
	policy := cmp.Or(r.Policy, &c.Policy)
	added := &place{
		placeID: id,
		labels:  []string{label(id.service), cmp.Or(label(id.route), others)},
		ceiling: manifest.Effective(*policy).AttemptTimeout,
	}
	if before := old.byID[id]; before != nil {
		added.tally = before.tally
	} else {
		added.tally = newTally(took.WithLabelValues(added.labels...))
	}
	p.byID[id] = added
	p.config = append(p.config, added)
	p.keysOf(old, c.Service)
}

func (p *places) keysOf(old *places, service string) {
	if p.keys[service] != nil {
		return
	}
	if p.keys[service] = old.keys[service]; p.keys[service] == nil {
		p.keys[service] = kindWords.counts()
	}
}
