package proxy

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/riprap-go/riprap/riphttp"
)

// A metric is one that is computed from the tallies when somebody asks. docs/metrics.md has a row for each.
type metric struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

// metrics are all of them.
var metrics []*metric

func newMetric(kind prometheus.ValueType, name, help string, labels ...string) *metric {
	m := &metric{prometheus.NewDesc("riprap_"+name, help, labels, nil), kind}
	metrics = append(metrics, m)
	return m
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

var (
	requestsTotal = newMetric(counter, "proxy_requests_total",
		"Requests that are over, by the status that the client was sent.", "service", "route", "method", "code")
	attemptsTotal = newMetric(counter, "proxy_attempts_total",
		"Attempts to get an answer from the service, by its status or how they failed.", "service", "route", "outcome")
	retriesTotal = newMetric(counter, "proxy_retries_total",
		"Attempts that were not a request's first.", "service", "route")
	notRetriedTotal = newMetric(counter, "proxy_not_retried_total",
		"Requests that failed and were not tried again, by the reason.", "service", "route", "reason")
	problemsTotal = newMetric(counter, "proxy_problems_total",
		"Answers of the proxy's own, by their type.", "service", "route", "type")
	brokenTotal = newMetric(counter, "proxy_broken_answers_total",
		"Answers that ended before their end.", "service", "route")
	keysTotal = newMetric(counter, "proxy_keys_total",
		"Requests with an idempotency key, by what became of it.", "service", "kind")
	requestsInFlight = newMetric(gauge, "proxy_requests_in_flight",
		"Requests under way.", "service")
	requestsWaiting = newMetric(gauge, "proxy_requests_waiting",
		"Requests under way that wait for their next attempt.", "service")
	openConnections = newMetric(gauge, "proxy_open_connections",
		"Connections that clients have open.", "service")
	retriesLeft = newMetric(gauge, "proxy_retries_left",
		"Retries that the budget has left, +Inf if it is unlimited.", "service", "route")
	attemptLatency = newMetric(gauge, "proxy_attempt_latency_seconds",
		"Time that the service took to its header, over the last minute.", "service", "route", "percentile")
	attemptBound = newMetric(gauge, "proxy_attempt_bound_seconds",
		"Longest that an attempt may take to the service's header, +Inf if nothing bounds it.", "service", "route")
	proxyReady = newMetric(gauge, "proxy_ready",
		"1 if the proxy takes requests, 0 while it starts or ends.")
	reloadsTotal = newMetric(counter, "proxy_config_reloads_total",
		"Times that the configuration was read again, by what came of it.", "outcome")
	loadedTime = newMetric(gauge, "proxy_config_loaded_timestamp_seconds",
		"When the configuration in force was taken, in seconds since 1970.")
	buildInfo = newMetric(gauge, "build_info",
		"1, with the version of riprap and the Go that built it.", "version", "goversion")
)

const (
	tookName = "riprap_proxy_request_duration_seconds"
	tookHelp = "Time from a request's arrival to the end of its answer."
)

// buckets suit answers from memory as well as those that take the 30 s that a request usually has.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// newRegistry returns what /metrics shows, and the histogram that requests are observed by.
func newRegistry(a *admin) (*prometheus.Registry, *prometheus.HistogramVec) {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: tookName, Help: tookHelp, Buckets: buckets}, []string{"service", "route"})
	r := prometheus.NewRegistry()
	r.MustRegister(took, collector{a}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r, took
}

// A collector reads the tallies.
type collector struct{ *admin }

// Describe is a part of prometheus.Collector.
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.Desc
	}
}

// Collect is a part of prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	places := c.places.Load()
	s := sink{to}
	for _, list := range [][]*place{places.config, places.leaving} {
		for _, p := range list {
			s.place(p)
		}
	}
	for service, counts := range places.keys {
		s.words(keysTotal, kindWords.words, counts, label(service))
	}
	now := time.Now()
	loads := c.loads(places, now)
	for service, l := range loads {
		s.send(requestsInFlight, float64(l.inFlight), label(service))
		s.send(requestsWaiting, float64(l.waiting), label(service))
		s.send(openConnections, float64(l.connections), label(service))
	}
	for _, p := range places.config {
		s.route(p, loads[p.service].routes)
	}
	c.itself(s)
}

// itself sends what the proxy knows of itself.
func (c collector) itself(s sink) {
	c.mu.Lock()
	reloads, refused, loaded := c.reloads, c.refused, c.loaded
	c.mu.Unlock()
	s.send(reloadsTotal, float64(reloads), "taken")
	s.send(reloadsTotal, float64(refused), "refused")
	s.send(loadedTime, float64(loaded.UnixMilli())/1000)
	isReady := 0.0
	if c.isReady() {
		isReady = 1
	}
	s.send(proxyReady, isReady)
	s.send(buildInfo, 1, label(c.version), runtime.Version())
}

// A sink is where metrics go.
type sink struct{ to chan<- prometheus.Metric }

func (s sink) send(m *metric, value float64, labels ...string) {
	s.to <- prometheus.MustNewConstMetric(m.Desc, m.kind, value, labels...)
}

// words sends the count of each word.
func (s sink) words(m *metric, words []string, counts []atomic.Uint64, labels ...string) {
	for i, word := range words {
		s.send(m, float64(counts[i].Load()), append(labels[:len(labels):len(labels)], word)...)
	}
}

// seen sends the counts of words that there are many of and that were seen.
func (s sink) seen(m *metric, words []string, counts []atomic.Uint64, labels ...string) {
	for i, word := range words {
		if n := counts[i].Load(); n > 0 {
			s.send(m, float64(n), append(labels[:len(labels):len(labels)], word)...)
		}
	}
}

// place sends what was counted of a place.
func (s sink) place(p *place) {
	l := p.labels
	n := len(statusWords)
	for i, method := range methodWords.words {
		s.seen(requestsTotal, statusWords, p.requests[i*n:(i+1)*n], l[0], l[1], method)
	}
	s.seen(attemptsTotal, outcomeWords, p.attempts, l...)
	s.send(retriesTotal, float64(p.retries.Load()), l...)
	s.words(notRetriedTotal, reasonWords.words, p.notRetried, l...)
	s.words(problemsTotal, problemWords.words, p.problems, l...)
	s.send(brokenTotal, float64(p.broken.Load()), l...)
}

// route sends what is known of a place's budget and bound.
func (s sink) route(p *place, routes map[string]riphttp.Snapshot) {
	l := p.labels
	known, called := routes[p.name()]
	if bound := p.bound(known.Latency); bound > 0 {
		s.send(attemptBound, bound.Seconds(), l...)
	} else {
		s.send(attemptBound, math.Inf(1), l...)
	}
	if !called { // lately
		return
	}
	if known.Retries == math.MaxInt {
		s.send(retriesLeft, math.Inf(1), l...)
	} else {
		s.send(retriesLeft, float64(known.Retries), l...)
	}
	if known.Latency.Count == 0 {
		return
	}
	for _, q := range []struct {
		percentile string
		time.Duration
	}{{"50", known.Latency.P50}, {"95", known.Latency.P95}, {"99", known.Latency.P99}} {
		s.send(attemptLatency, q.Seconds(), l[0], l[1], q.percentile)
	}
}
