package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// administered lets an admin look at what a service does.
func administered(s *Service, p manifest.Proxy) *admin {
	a := newAdmin(adminSources{version: "v1.2.3", snapshots: func(now time.Time) []Snapshot { return []Snapshot{s.Snapshot(now)} }})
	p.Service = s.config.Service
	a.configure([]manifest.Proxy{p})
	s.watch = a.watch()
	return a
}

func TestStateTellsWhatBecameOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := manifest.Proxy{
			RequireKey: []string{"POST /charge"},
			Routes:     []manifest.Route{{Match: "GET /reports/"}},
			Policy:     riprap.Policy{AttemptTimeout: 5 * time.Second},
			Adaptive:   true, MaxReplay: 100,
		}
		reports := 0
		s := serving(t, p, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/reports/may":
				if reports++; reports == 1 {
					w.Header().Set("Retry-After", "3")
					w.WriteHeader(503)
				}
			case r.Header.Get("Idempotency-Key") == "lost":
				panic(http.ErrAbortHandler)
			case r.Method == "PUT":
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(503)
			}
			time.Sleep(20 * time.Millisecond)
		})
		defer s.close()
		a := administered(s.proxy, p)
		charge := func(key, body string) {
			s.send("POST", "/charge", strings.NewReader(body), "X-Customer", "c", "Idempotency-Key", key)
		}
		s.send("GET", "/fine", nil)
		s.send("GET", "/reports/may", nil)
		charge("one", "100")
		charge("one", "100")
		charge("one", "200")
		charge("lost", "100")
		charge("lost", "100")
		s.send("POST", "/charge", strings.NewReader("100"), "X-Customer", "c")
		s.send("PUT", "/large", strings.NewReader(strings.Repeat("x", 101)))
		synctest.Wait()

		got := shown(t, a)
		var events []string
		for _, e := range slices.Backward(got.Events) {
			text := fmt.Sprintf("%s %s %s: %d %s %s %s %s", e.What, e.Method, e.Route, e.Status, e.Problem, e.Key, e.Reached, e.Reason)
			for _, sent := range e.Attempts {
				text += " " + sent.Outcome
				if sent.Asked {
					text += "+"
				}
			}
			events = append(events, strings.Join(strings.Fields(text), " "))
		}
		want := []string{
			"retried GET GET /reports/: 200 yes 503+ 200",
			"replayed POST other: 200 replayed no",
			"conflict POST other: 422 mismatched no",
			"unknown POST other: 502 outcome-unknown suspended unknown unknown closed",
			"unknown POST other: 409 unresolved no",
			"refused POST other: 400 refused no",
			"failed PUT other: 503 yes body-too-large 503",
		}
		if !slices.Equal(events, want) {
			t.Errorf("/state has the events\n\t%s\nwant\n\t%s", strings.Join(events, "\n\t"), strings.Join(want, "\n\t"))
		}

		service := got.Services[0]
		if service.Counts.Requests != 9 || service.Counts.Retries != 1 || service.Counts.Attempts != 6 || service.InFlight != 0 {
			t.Errorf("/state counts %+v, want 9 requests with 6 attempts, one of them a retry", service.Counts)
		}
		for kind, n := range map[string]uint64{"ran": 1, "replayed": 1, "mismatched": 1, "suspended": 1, "unresolved": 1, "refused": 1} {
			if service.Keys[kind] != n {
				t.Errorf("/state counts the keys %v, want %d %s", service.Keys, n, kind)
			}
		}
		for i, route := range []string{"other", "GET /reports/"} {
			d := service.Destinations[i]
			if d.Route != route || !d.Called || d.RetriesLeft == nil || *d.RetriesLeft < 9 || d.Bound == nil || *d.Bound != 5 ||
				d.Latency == nil || d.Latency.P50 < 0.0198 || d.Latency.P50 > 0.0202 {
				t.Errorf("/state has the destination %+v, want %s with its budget, a bound of 5s and a p50 of 20ms", d, route)
			}
		}
		retried := got.Events[len(got.Events)-1].Attempts
		if wait, begun := retried[0].Wait, retried[1].Begun-retried[0].Took; wait < 3 || wait > 3.6 || math.Abs(begun-wait) > 1e-6 {
			t.Errorf("the retried request waited for %v s and went on after %v s, want the 3 s that the service asked for and up to a fifth more", wait, begun)
		}
		wantLines(t, a, `riprap_proxy_not_retried_total{reason="body-too-large",route="other",service="service"} 1`)
	})
}

func TestStateShowsRequestsThatWaitAndAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				time.Sleep(4 * time.Second)
				return
			}
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(503)
		})
		defer s.close()
		a := administered(s.proxy, manifest.Proxy{})
		for _, path := range []string{"/slow", "/slow", "/later"} {
			go s.client.RoundTrip(s.request("GET", path, nil))
		}
		time.Sleep(time.Second)
		if got := shown(t, a).Services[0]; got.InFlight != 3 || got.Waiting != 1 {
			t.Errorf("/state has %d requests in flight and %d that wait, want 3 and 1", got.InFlight, got.Waiting)
		}
		wantLines(t, a, `riprap_proxy_requests_in_flight{service="service"} 3`, `riprap_proxy_requests_waiting{service="service"} 1`)
		time.Sleep(time.Minute)
		if got := shown(t, a).Services[0]; got.InFlight != 0 || got.Waiting != 0 {
			t.Errorf("a minute later /state has %d requests in flight and %d that wait, want none", got.InFlight, got.Waiting)
		}
	})
}

// An instant answers requests without a service.
type instant func(*http.Request) (*http.Response, error)

func (f instant) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// instantly is a service that is answered by a function.
func instantly(t *testing.T, p manifest.Proxy, f instant) (*Service, *admin) {
	t.Helper()
	p.Service, p.To, p.Scope = "service", memhttp.URL, "header:X-Customer"
	s, err := NewService(p, &idempotency.Memory{}, Watch{})
	if err != nil {
		t.Fatalf("NewService(%+v) = %v, want no error", p, err)
	}
	s.transport.Base = f
	return s, administered(s, p)
}

func TestWhatClientsThinkUpCostsNoMemory(t *testing.T) { thinkUp(t, 10_000) }

func TestSoakWhatClientsThinkUpCostsNoMemory(t *testing.T) {
	if os.Getenv("RIPRAP_SOAK") == "" {
		t.Skip("set RIPRAP_SOAK to send a million odd requests")
	}
	thinkUp(t, 1_000_000)
}

// thinkUp sends so many requests, each with a method, path, query, host and fields of its own.
func thinkUp(t *testing.T, most int) {
	t.Helper()
	s, a := instantly(t, manifest.Proxy{
		RequireKey: []string{"POST /charge"},
		Routes:     []manifest.Route{{Match: "GET /reports/{id}"}},
		Policy:     riprap.Policy{MaxAttempts: 1},
	}, func(r *http.Request) (*http.Response, error) {
		status := 200
		if len(r.URL.Path)%2 == 0 {
			status = 503
		}
		return &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	odd := func(from, to int) {
		for i := from; i < to; i++ {
			method, path := fmt.Sprintf("M%d", i), fmt.Sprintf("/reports/%d%s", i, strings.Repeat("x", i%2))
			switch i % 4 {
			case 1:
				method = "GET"
			case 2:
				method, path = "POST", "/charge"
			}
			r := httptest.NewRequest(method, path+fmt.Sprintf("?q=%d", i), nil)
			r.Host = fmt.Sprintf("h%d.test", i)
			r.Header.Set("Idempotency-Key", fmt.Sprintf("k%d", i%100)) // the store remembers those
			r.Header.Set("X-Customer", "c")
			r.Header.Set("X-Correlation-Id", fmt.Sprintf("c%d", i))
			s.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
	look := func() (series int, state int, heap uint64) {
		state = get(t, a, "/state").Body.Len()
		series = strings.Count(get(t, a, "/metrics").Body.String(), "\nriprap_")
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return series, state, m.HeapAlloc
	}
	odd(0, 2000)
	series, state, heap := look()
	odd(2000, most)
	seriesThen, stateThen, heapThen := look()
	if seriesThen != series || series > 500 {
		t.Errorf("after %d odd requests there are %d time series, want as many as after 2000, which are %d", most, seriesThen, series)
	}
	if stateThen > state+10_000 {
		t.Errorf("after %d odd requests /state has %d bytes, want about as many as after 2000, which are %d", most, stateThen, state)
	}
	if heapThen > heap+512<<10 {
		t.Errorf("after %d odd requests the heap has %d KiB, want about as many as after 2000, which are %d", most, heapThen>>10, heap>>10)
	}
	if got := shown(t, a); len(got.Events) != mostEvents || got.Services[0].Counts.Requests != uint64(most) {
		t.Errorf("/state has %d events of %d requests, want %d of %d", len(got.Events), got.Services[0].Counts.Requests, mostEvents, most)
	}
}

func TestNoSecretIsShown(t *testing.T) {
	written := filepath.Join(t.TempDir(), "stderr")
	file, err := os.Create(written)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stderr := os.Stderr
	os.Stderr = file
	log.SetOutput(file)
	defer func() { os.Stderr = stderr; log.SetOutput(stderr) }()

	failures := []instant{
		func(r *http.Request) (*http.Response, error) { return nil, fmt.Errorf("dial %s: %w", r.URL, io.EOF) },
		func(r *http.Request) (*http.Response, error) { return nil, errors.New(r.URL.String()) },
		func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Header: http.Header{"Set-Cookie": {"C00KIE"}}, Body: io.NopCloser(strings.NewReader("B0DY"))}, nil
		},
		func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader("B0DY"), cutOff{}))}, nil
		},
	}
	n := 0
	s, a := instantly(t, manifest.Proxy{
		RequireKey: []string{"POST /v1/{secret}/x"},
		Routes:     []manifest.Route{{Match: "GET /v1/{secret}/x"}},
		Policy:     riprap.Policy{MaxAttempts: 2, Backoff: riprap.Backoff{Base: 1, Max: 1}},
	}, func(r *http.Request) (*http.Response, error) {
		n++
		resp, err := failures[n%len(failures)](r)
		if resp != nil {
			resp.ProtoMajor, resp.ProtoMinor, resp.Request = 1, 1, r
		}
		return resp, err
	})
	secrets := []string{
		"KEYINPATH", "T0K", "S1G", "p4ss", "B34R", "user@example.com", "C0RR", "C00KIE", "h0st", "M3THOD", "B0DY", "CUST0MER", "F0RWARDED", "10.9.8.7",
	}
	for _, method := range []string{"GET", "POST", "PUT", "M3THOD", "CONNECT"} {
		for range 2 * len(failures) {
			r := httptest.NewRequest(method, "http://u:p4ss@h0st.test/v1/KEYINPATH/x?token=T0K&sig=S1G", strings.NewReader("B0DY"))
			r.RemoteAddr = "10.9.8.7:6543"
			for name, value := range map[string]string{
				"Authorization": "Bearer B34R", "Idempotency-Key": "user@example.com", "X-Correlation-Id": "C0RR", "Cookie": "s=C00KIE",
				"X-Customer": "CUST0MER", "X-Forwarded-For": "F0RWARDED",
			} {
				r.Header.Set(name, value)
			}
			func() {
				defer func() { recover() }() // an answer that breaks off
				s.ServeHTTP(httptest.NewRecorder(), r)
			}()
		}
	}
	if got := shown(t, a); len(got.Events) < 30 {
		t.Fatalf("/state has %d events, want one of nearly each request", len(got.Events))
	}
	logged, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	for sink, text := range map[string][]byte{
		"/metrics": get(t, a, "/metrics").Body.Bytes(), "/state": get(t, a, "/state").Body.Bytes(), "stderr": logged,
	} {
		for _, secret := range secrets {
			if at := bytes.Index(text, []byte(secret)); at >= 0 {
				t.Errorf("%s shows the secret %s: …%s…", sink, secret, text[max(at-60, 0):min(at+60, len(text))])
			}
		}
	}
}

type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
