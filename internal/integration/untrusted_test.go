package integration_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// nobody is the rule of a service at the edge.
func nobody(*http.Request) bool { return false }

// friends are those who show a password, which stands for whatever tells callers apart.
func friends(r *http.Request) bool { return r.Header.Get("Authorization") == "friend" }

// lies are header fields by which a caller could try to change what is done for it, or for others.
var lies = map[string]http.Header{
	"no time":            {deadline.TimeoutHeader: {"1"}},
	"no time, repeated":  {deadline.TimeoutHeader: {"86400000", "1", "1"}},
	"no time, by gRPC":   {"Grpc-Timeout": {"1n"}},
	"no time, by Envoy":  {"X-Envoy-Expected-Rq-Timeout-Ms": {"1"}},
	"a time long past":   {deadline.TimeoutHeader: {"1000"}, deadline.DeadlineHeader: {"1"}},
	"all the time":       {deadline.TimeoutHeader: {"999999999999999"}, deadline.DeadlineHeader: {"999999999999999"}},
	"a ninth attempt":    {deadline.AttemptHeader: {"9"}},
	"a name of its own":  {deadline.CorrelationHeader: {"chosen"}},
	"a server's verdict": {"X-Should-Retry": {"false"}, deadline.ExceededHeader: {"true"}},
	"all of it": {deadline.TimeoutHeader: {"1"}, deadline.DeadlineHeader: {"1"}, deadline.AttemptHeader: {"9"},
		deadline.CorrelationHeader: {"chosen"}, "Grpc-Timeout": {"1n"}, "X-Envoy-Expected-Rq-Timeout-Ms": {"1"},
		"X-Should-Retry": {"false"}},
}

// told are the fields of which a service believes what trusted callers say.
var told = []string{deadline.TimeoutHeader, deadline.DeadlineHeader, deadline.AttemptHeader, deadline.CorrelationHeader,
	"Grpc-Timeout", "X-Envoy-Expected-Rq-Timeout-Ms"}

// wantNoLies checks that a request carries none of the values that a client sent.
func wantNoLies(t *testing.T, where string, got, lies http.Header) {
	t.Helper()
	for _, name := range told {
		for _, value := range got.Values(name) {
			for _, lie := range lies.Values(name) {
				if value == lie {
					t.Errorf("the request %s has %s: %s, which the client sent", where, name, value)
				}
			}
		}
	}
}

// tell adds header fields to a request.
func tell(req *http.Request, header http.Header) *http.Request {
	for name, values := range header {
		req.Header[name] = values
	}
	return req
}

func TestWhatAnUntrustedCallerTellsIsNeitherBelievedNorPassedOn(t *testing.T) {
	for name, header := range lies {
		for _, as := range []string{"service", "proxy", "proxy that tells nothing"} {
			t.Run(name+" to a "+as, func(t *testing.T) {
				settles(t)
				var atB http.Header
				b := serve(t, flaky(1, func(w http.ResponseWriter, r *http.Request) {
					atB = r.Header.Clone()
					if deadline.Left(r.Context()) < 5*time.Second {
						t.Errorf("B has %v left, want the seconds that A has", deadline.Left(r.Context()))
					}
					io.WriteString(w, "done")
				}), behind(deadline.Middleware{}))
				toB := call(t, b.base())
				if as != "proxy that tells nothing" {
					toB.transport.Internal = everybody
				}
				to, err := url.Parse(b.URL)
				if err != nil {
					t.Fatal(err)
				}
				proxy := &httputil.ReverseProxy{Transport: toB.transport, ErrorLog: log.New(io.Discard, "", 0),
					Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
				const limit = time.Hour
				a := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
					ctx := r.Context()
					if left := deadline.Left(ctx); left < limit/2 || left > limit {
						t.Errorf("A has %v left, want its limit of %v", left, limit)
					}
					if deadline.Retried(ctx) || deadline.Attempt(ctx) != 0 {
						t.Errorf("at A Retried = %v, Attempt = %d, want false and 0", deadline.Retried(ctx), deadline.Attempt(ctx))
					}
					wantNoLies(t, "at A", r.Header, header)
					if as != "service" {
						proxy.ServeHTTP(w, r)
						return
					}
					_, body, err := toB.do(t, request(t, "GET", b.URL, "", nil).WithContext(ctx))
					if err != nil {
						t.Errorf("the call of B: %v", err)
					}
					io.WriteString(w, body)
				}, behind(deadline.Middleware{Limit: limit, Trusted: nobody}))

				client := &http.Client{Transport: a.base()}
				t.Cleanup(client.CloseIdleConnections)
				resp, err := client.Do(tell(request(t, "GET", a.URL, "", nil), header))
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 || string(body) != "done" {
					t.Errorf("answer %d %q, want 200 done, by a retry of A", resp.StatusCode, body)
				}
				if id := resp.Header.Values(deadline.CorrelationHeader); len(id) != 1 || id[0] == "chosen" {
					t.Errorf("the answer's correlation id: %q, want one that the client did not choose", id)
				}
				if n := b.requests.Load(); n != 2 {
					t.Errorf("B got %d requests, want 2: the first failed", n)
				}
				wantNoLies(t, "at B", atB, header)
			})
		}
	}
}

// An attack sends, until it is called off, what may confuse a service that works for others too: requests with every lie,
// and many whose time is over at once or soon.
func attack(t *testing.T, client *http.Client, address string, off <-chan struct{}) {
	t.Helper()
	var running sync.WaitGroup
	for attacker := range 8 {
		running.Go(func() {
			for n := attacker; ; n++ {
				select {
				case <-off:
					return
				default:
				}
				header := http.Header{deadline.TimeoutHeader: {"1"}}
				switch n % 8 {
				case 0: // long enough to reach the next service
					header = http.Header{deadline.TimeoutHeader: {"40"}}
				case 1:
					header = lies["all of it"]
				case 2:
					header = lies["all the time"].Clone()
					header.Set(deadline.AttemptHeader, "9")
				}
				resp, err := client.Do(tell(request(t, "GET", address, "", nil), header))
				if err != nil {
					t.Errorf("the attacker's request: %v", err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	running.Wait()
}

// A moody service B fails each first request under /once/ and all under /never/, which it counts, and lets those under
// /slow/ wait until their time is over or they are released.
type moody struct {
	*server
	never atomic.Int32
}

func startMoody(t *testing.T, release <-chan struct{}) *moody {
	t.Helper()
	var seen sync.Map
	b := new(moody)
	b.server = serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		_, again := seen.LoadOrStore(r.URL.Path, true)
		switch {
		case strings.HasPrefix(r.URL.Path, "/slow/"):
			select {
			case <-r.Context().Done():
			case <-release:
			}
		case strings.HasPrefix(r.URL.Path, "/never/"):
			b.never.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasPrefix(r.URL.Path, "/once/") && !again:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}, behind(deadline.Middleware{}))
	return b
}

// edge starts a service A that passes requests on to B.
func edge(t *testing.T, b *server, trusted func(*http.Request) bool, budget *riprap.Budget) *server {
	t.Helper()
	to, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := b.base()
	base.MaxIdleConnsPerHost = 16
	t.Cleanup(base.CloseIdleConnections)
	policy := quick()
	policy.Budget = budget
	proxy := &httputil.ReverseProxy{
		Transport: &riphttp.Transport{Base: base, Policy: policy, Internal: everybody},
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to) },
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	return serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { proxy.ServeHTTP(w, r) },
		behind(deadline.Middleware{Trusted: trusted}))
}

func TestUntrustedCallersCannotSwitchRetriesForOthers(t *testing.T) {
	for name, trusted := range map[string]func(*http.Request) bool{"friends are trusted": friends, "everybody is trusted": nil} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			b := startMoody(t, nil)
			a := edge(t, b.server, trusted, &riprap.Budget{Reserve: 1000})
			base := a.base()
			base.MaxIdleConnsPerHost = 16
			client := &http.Client{Transport: base}
			t.Cleanup(client.CloseIdleConnections)

			friend := func(path string) *http.Response {
				req := request(t, "GET", a.URL+path, "", nil)
				req.Header.Set("Authorization", "friend")
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				return resp
			}
			off := make(chan struct{})
			var attacked sync.WaitGroup
			attacked.Go(func() { attack(t, client, a.URL+"/fine/", off) })
			defer attacked.Wait()
			defer close(off)
			for n := range 15 { // that take three retries each
				path := "/once/" + strconv.Itoa(n)
				if resp := friend(path); resp.StatusCode != 200 || resp.Header["X-Should-Retry"] != nil {
					t.Errorf("GET %s = %d, X-Should-Retry %q, want 200 by a retry and no verdict", path, resp.StatusCode, resp.Header["X-Should-Retry"])
				}
				before := b.never.Load()
				if resp := friend("/never/"); resp.StatusCode != 503 || resp.Header["X-Should-Retry"] != nil {
					t.Errorf("GET /never/ = %d, X-Should-Retry %q, want 503 and no verdict", resp.StatusCode, resp.Header["X-Should-Retry"])
				}
				if n := b.never.Load() - before; n != 3 {
					t.Errorf("a failing call of a friend became %d requests to B, want 3", n)
				}
			}
		})
	}
}

// Callers that have no time make the calls of a service fail. That must not look as if the service that it calls were
// down.
func TestCallersWithoutTimeDoNotMakeAServiceGiveUpForOthers(t *testing.T) {
	for name, trusted := range map[string]func(*http.Request) bool{"friends are trusted": friends, "everybody is trusted": nil} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			release := make(chan struct{})
			if trusted != nil {
				close(release) // nobody cuts the attackers short: they are served like anybody
			}
			b := startMoody(t, release)
			a := edge(t, b.server, trusted, &riprap.Budget{Reserve: -1, Ratio: -1}) // spent from the start
			base := a.base()
			base.MaxIdleConnsPerHost = 16
			client := &http.Client{Transport: base}
			t.Cleanup(client.CloseIdleConnections)
			get := func(path string, header http.Header) (*http.Response, error) {
				resp, err := client.Do(tell(request(t, "GET", a.URL+path, "", nil), header))
				if err == nil {
					resp.Body.Close()
				}
				return resp, err
			}
			for range 32 {
				if resp, err := get("/fine/", nil); err != nil || resp.StatusCode != 200 {
					t.Fatalf("GET /fine/ = %v, %v, want 200", resp, err)
				}
			}

			var attackers sync.WaitGroup
			for range 16 {
				attackers.Go(func() {
					for range 10 {
						get("/slow/", http.Header{deadline.TimeoutHeader: {"60"}})
					}
				})
			}
			attackers.Wait()
			resp, err := get("/never/", http.Header{"Authorization": {"friend"}})
			if err != nil || resp.StatusCode != 503 || resp.Header["X-Should-Retry"] != nil {
				t.Errorf("GET /never/ = %v, %v, want 503 without a verdict: most calls of B succeed", resp, err)
			}
		})
	}
}
