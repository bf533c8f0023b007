package proxy

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/riphttp"
)

var twoServices = []manifest.Proxy{
	{
		Service: "payments",
		Policy:  riprap.Policy{AttemptTimeout: 2 * time.Second},
		Routes: []manifest.Route{
			{Match: "GET /reports/", Policy: &riprap.Policy{AttemptTimeout: -1}},
			{Match: "/slow"},
		},
	},
	{Service: "orders"},
}

func busySnapshots(time.Time) []Snapshot {
	return []Snapshot{
		{Service: "payments", To: "http://127.0.0.1:9000", InFlight: 3, Waiting: 1, Routes: []riphttp.Snapshot{
			{Name: "payments", Retries: 7, Latency: riprap.LatencySnapshot{
				Count: 250, P50: 12 * time.Millisecond, P95: 40 * time.Millisecond, P99: 90 * time.Millisecond, TimedOut: 0.004, Bound: 270 * time.Millisecond,
			}},
			{Name: "payments GET /reports/", Retries: math.MaxInt},
		}},
		{Service: "payments", To: "http://127.0.0.1:9000", InFlight: 2},
		{Service: "orders", Routes: []riphttp.Snapshot{{Name: "orders", Latency: riprap.LatencySnapshot{Count: 300, Bound: time.Minute}}}},
		{Service: "gone", InFlight: 1},
	}
}

// visitTo is a request that went as it should.
func visitTo(service, route string) *Visit {
	arrived := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &Visit{
		Service: service, Route: route, Method: "GET", Arrived: arrived, Took: 12 * time.Millisecond, Status: 200, Reached: ReachedYes,
		Attempts: []Attempt{{Begun: arrived.Add(time.Millisecond), Took: 10 * time.Millisecond, Status: 200}},
	}
}

// get asks an admin.
func get(t *testing.T, a *admin, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// shown is the state as a page reads it.
func shown(t *testing.T, a *admin) *state {
	t.Helper()
	w := get(t, a, "/state")
	var s state
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 200 {
		t.Fatalf("GET /state = %d %v: %s", w.Code, err, w.Body)
	}
	return &s
}

// wantLines fails if the metrics lack a line.
func wantLines(t *testing.T, a *admin, lines ...string) {
	t.Helper()
	w := get(t, a, "/metrics")
	if w.Code != 200 {
		t.Fatalf("GET /metrics = %d: %s", w.Code, w.Body)
	}
	got := strings.Split(w.Body.String(), "\n")
	for _, line := range lines {
		if !slices.Contains(got, line) {
			name, _, _ := strings.Cut(line, "{")
			t.Errorf("GET /metrics lacks\n\t%s\nit has\n\t%s", line, strings.Join(slices.DeleteFunc(slices.Clone(got), func(l string) bool {
				return !strings.HasPrefix(l, name)
			}), "\n\t"))
		}
	}
}

func TestHealthSaysWhetherTheProxyIsAliveAndReady(t *testing.T) {
	isReady := false
	a := newAdmin(adminSources{ready: func() bool { return isReady }})
	for _, test := range []struct {
		ready bool
		path  string
		code  int
		body  string
	}{
		{false, "/livez", 200, "ok\n"},
		{false, "/readyz", 503, "not ready\n"},
		{true, "/livez", 200, "ok\n"},
		{true, "/readyz", 200, "ok\n"},
		{true, "/", 404, "404 page not found\n"},
	} {
		isReady = test.ready
		if w := get(t, a, test.path); w.Code != test.code || w.Body.String() != test.body || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("GET %s while ready is %v = %d %q %v, want %d %q and no caching", test.path, test.ready, w.Code, w.Body, w.Header(), test.code, test.body)
		}
	}
	w := httptest.NewRecorder()
	if a.handler().ServeHTTP(w, httptest.NewRequest("POST", "/state", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /state = %d, want 405: nothing here can be changed", w.Code)
	}
}

func TestMetricsKeepToTheConventionsOfPrometheus(t *testing.T) {
	a := newAdmin(adminSources{version: "v1.2.3", snapshots: busySnapshots})
	a.configure(twoServices)
	a.ended(visitTo("payments", ""))
	problems, err := testutil.GatherAndLint(a.metrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
}

func TestMetricsCountWhatBecameOfRequests(t *testing.T) {
	a := newAdmin(adminSources{version: "v1.2.3"})
	a.configure(twoServices)
	a.ended(visitTo("payments", "GET /reports/"))

	retried := visitTo("payments", "")
	retried.Took = 3 * time.Second
	retried.Attempts = []Attempt{{Status: 503, Wait: time.Second, Asked: true}, {Failure: "reset", Wait: time.Second}, {Status: 200}}
	a.ended(retried)

	large := visitTo("payments", "")
	large.Method, large.Status, large.Reason = "PUT", 502, "body-too-large"
	large.Problem, large.Attempts = "no-answer", []Attempt{{Failure: "closed"}}
	a.ended(large)

	odd := visitTo("payments", "")
	odd.Method, odd.Status, odd.Problem, odd.Reason, odd.Broken = "OTHER", 567, "a new one", "a new one", true
	odd.Attempts = []Attempt{{Status: 567}, {Failure: "a new one"}, {}}
	a.ended(odd)

	left := visitTo("orders", "")
	left.Status, left.Reason = 0, "canceled"
	left.Attempts = []Attempt{{Failure: "canceled"}}
	a.ended(left)
	a.ended(visitTo("unheard of", ""))

	for range 3 {
		a.keyed("payments", idempotency.Event{Kind: idempotency.Replayed})
	}
	a.keyed("payments", idempotency.Event{Kind: idempotency.NotCommitted})
	a.keyed("payments", idempotency.Event{Kind: 99})
	a.keyed("unheard of", idempotency.Event{Kind: idempotency.Ran})

	wantLines(t, a,
		`riprap_proxy_requests_total{code="200",method="GET",route="GET /reports/",service="payments"} 1`,
		`riprap_proxy_requests_total{code="200",method="GET",route="other",service="payments"} 1`,
		`riprap_proxy_requests_total{code="502",method="PUT",route="other",service="payments"} 1`,
		`riprap_proxy_requests_total{code="5xx",method="OTHER",route="other",service="payments"} 1`,
		`riprap_proxy_requests_total{code="none",method="GET",route="other",service="orders"} 1`,
		`riprap_proxy_request_duration_seconds_bucket{route="GET /reports/",service="payments",le="0.01"} 0`,
		`riprap_proxy_request_duration_seconds_bucket{route="GET /reports/",service="payments",le="0.025"} 1`,
		`riprap_proxy_request_duration_seconds_sum{route="other",service="payments"} 3.024`,
		`riprap_proxy_attempts_total{outcome="503",route="other",service="payments"} 1`,
		`riprap_proxy_attempts_total{outcome="reset",route="other",service="payments"} 1`,
		`riprap_proxy_attempts_total{outcome="5xx",route="other",service="payments"} 1`,
		`riprap_proxy_attempts_total{outcome="other",route="other",service="payments"} 1`,
		`riprap_proxy_attempts_total{outcome="none",route="other",service="payments"} 1`,
		`riprap_proxy_retries_total{route="other",service="payments"} 4`,
		`riprap_proxy_retries_total{route="GET /reports/",service="payments"} 0`,
		`riprap_proxy_not_retried_total{reason="body-too-large",route="other",service="payments"} 1`,
		`riprap_proxy_not_retried_total{reason="other",route="other",service="payments"} 1`,
		`riprap_proxy_not_retried_total{reason="budget",route="/slow",service="payments"} 0`,
		`riprap_proxy_problems_total{route="other",service="payments",type="no-answer"} 1`,
		`riprap_proxy_problems_total{route="other",service="payments",type="other"} 1`,
		`riprap_proxy_broken_answers_total{route="other",service="payments"} 1`,
		`riprap_proxy_keys_total{kind="replayed",service="payments"} 3`,
		`riprap_proxy_keys_total{kind="not-committed",service="payments"} 1`,
		`riprap_proxy_keys_total{kind="other",service="payments"} 1`,
		`riprap_proxy_keys_total{kind="ran",service="orders"} 0`,
		`riprap_proxy_requests_in_flight{service="orders"} 0`,
	)
}

func TestMetricsShowWhatServicesKnowOfThemselves(t *testing.T) {
	a := newAdmin(adminSources{
		version: "v1.2.3", snapshots: busySnapshots,
		connections: func(service string) int64 { return int64(len(service)) },
		ready:       func() bool { return false },
	})
	a.configure(twoServices)
	a.reloaded(time.UnixMilli(1_772_366_400_500), nil)
	a.reloaded(time.Now(), errors.New("riprap.yaml:3:1: secret"))
	a.reloaded(time.Now(), errors.New("riprap.yaml:3:1: secret"))
	wantLines(t, a,
		`riprap_proxy_requests_in_flight{service="payments"} 5`,
		`riprap_proxy_requests_waiting{service="payments"} 1`,
		`riprap_proxy_open_connections{service="payments"} 8`,
		`riprap_proxy_open_connections{service="orders"} 6`,
		`riprap_proxy_retries_left{route="other",service="payments"} 7`,
		`riprap_proxy_retries_left{route="GET /reports/",service="payments"} +Inf`,
		`riprap_proxy_attempt_latency_seconds{percentile="50",route="other",service="payments"} 0.012`,
		`riprap_proxy_attempt_latency_seconds{percentile="95",route="other",service="payments"} 0.04`,
		`riprap_proxy_attempt_latency_seconds{percentile="99",route="other",service="payments"} 0.09`,
		`riprap_proxy_attempt_bound_seconds{route="other",service="payments"} 0.27`,
		`riprap_proxy_attempt_bound_seconds{route="GET /reports/",service="payments"} +Inf`,
		`riprap_proxy_attempt_bound_seconds{route="/slow",service="payments"} 2`,
		`riprap_proxy_attempt_bound_seconds{route="other",service="orders"} 9.5`, // what 30s leave for each of three
		`riprap_proxy_ready 0`,
		`riprap_proxy_config_reloads_total{outcome="taken"} 1`,
		`riprap_proxy_config_reloads_total{outcome="refused"} 2`,
		`riprap_proxy_config_loaded_timestamp_seconds 1.7723664005e+09`,
	)
	text := get(t, a, "/metrics").Body.String()
	for _, name := range []string{`riprap_build_info{goversion="go1`, "go_goroutines", "process_start_time_seconds"} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("GET /metrics lacks %s", name)
		}
	}
}

func TestCountsGoOnAfterAReload(t *testing.T) {
	a := newAdmin(adminSources{})
	a.configure(twoServices)
	for _, route := range []string{"", "/slow"} {
		a.ended(visitTo("payments", route))
	}
	a.keyed("orders", idempotency.Event{Kind: idempotency.Ran})

	a.configure(twoServices[:1])
	a.ended(visitTo("payments", ""))
	a.ended(visitTo("orders", "")) // was under way
	wantLines(t, a,
		`riprap_proxy_requests_total{code="200",method="GET",route="other",service="payments"} 2`,
		`riprap_proxy_requests_total{code="200",method="GET",route="/slow",service="payments"} 1`,
		`riprap_proxy_requests_total{code="200",method="GET",route="other",service="orders"} 1`,
		`riprap_proxy_keys_total{kind="ran",service="orders"} 1`,
		`riprap_proxy_request_duration_seconds_count{route="other",service="orders"} 1`,
	)
	if got := shown(t, a).Services; len(got) != 1 {
		t.Errorf("after a service has left, /state shows %d services, want 1", len(got))
	}

	a.configure(twoServices[:1])
	a.ended(visitTo("orders", ""))
	if text := get(t, a, "/metrics").Body.String(); strings.Contains(text, "orders") {
		t.Errorf("after another reload /metrics still has the service that left:\n%s", text)
	}
	a.configure(twoServices)
	wantLines(t, a, `riprap_proxy_request_duration_seconds_count{route="other",service="orders"} 0`)
}

func TestEveryProblemIsAWordOfTheMetrics(t *testing.T) {
	for _, file := range []string{"problem.go", "visit.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:Type: +|Problem = )"([a-z-]+)"`).FindAllSubmatch(text, -1) {
			if !slices.Contains(problemWords.words, string(m[1])) {
				t.Errorf("%s has the problem %s, which is not among %q", file, m[1], problemWords.words)
			}
		}
	}
}
