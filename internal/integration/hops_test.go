package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

// behind puts a server behind a Middleware.
func behind(m deadline.Middleware) func(*httptest.Server) {
	return func(s *httptest.Server) { s.Config.Handler = m.Handler(s.Config.Handler) }
}

func everybody(*http.Request) bool { return true }

// internal returns a caller that tells a service what package deadline tells.
func internal(t *testing.T, base http.RoundTripper) *caller {
	t.Helper()
	c := call(t, base)
	c.transport.Internal = everybody
	return c
}

// shifted starts a proxy before a service that moves the stamp of each request, as if the clock of the caller were wrong
// by so much.
func shifted(t *testing.T, service *server, by time.Duration, changes ...func(*httptest.Server)) *server {
	t.Helper()
	to, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := service.base()
	t.Cleanup(base.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{Transport: base, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		if stamp, err := strconv.ParseInt(p.In.Header.Get(deadline.DeadlineHeader), 10, 64); err == nil {
			p.Out.Header.Set(deadline.DeadlineHeader, strconv.FormatInt(stamp+by.Milliseconds(), 10))
		}
	}}
	return serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { proxy.ServeHTTP(w, r) }, changes...)
}

// A station is a request at one of three services in a row.
type station struct {
	service string // A, B or C
	w       http.ResponseWriter
	r       *http.Request
	next    func(context.Context) (*http.Response, error) // calls the next service; nil at C
}

// row starts three services in a row, each behind a Middleware and a proxy that shifts stamps, and returns a client and
// the address for it to call.
func row(t *testing.T, by time.Duration, work func(station), changes ...func(*httptest.Server)) (client *caller, url string) {
	t.Helper()
	var next func(context.Context) (*http.Response, error)
	for _, name := range []string{"C", "B", "A"} {
		onward := next
		service := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			work(station{name, w, r, onward})
		}, append(changes, behind(deadline.Middleware{}))...)
		proxy := shifted(t, service, by, changes...)
		client, url = internal(t, proxy.base()), proxy.URL
		caller, address := client, url
		next = func(ctx context.Context) (*http.Response, error) {
			req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
			if err != nil {
				return nil, err
			}
			return caller.Do(req)
		}
	}
	return client, url
}

// each runs a test with stamps that are right, an hour late and an hour early, over HTTP/1.1 and HTTP/2.
func each(t *testing.T, test func(t *testing.T, by time.Duration, changes ...func(*httptest.Server))) {
	t.Helper()
	for name, by := range map[string]time.Duration{"right": 0, "an hour late": time.Hour, "an hour early": -time.Hour} {
		t.Run("stamps "+name+", HTTP/1.1", func(t *testing.T) { test(t, by) })
		t.Run("stamps "+name+", HTTP/2", func(t *testing.T) { test(t, by, overHTTP2) })
	}
}

func TestEachHopSeesLessTimeThanTheOneBefore(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration, changes ...func(*httptest.Server)) {
		settles(t)
		type seen struct {
			service     string
			left        time.Duration
			correlation string
		}
		visits := make(chan seen, 3)
		client, url := row(t, by, func(s station) {
			visits <- seen{s.service, deadline.Left(s.r.Context()), deadline.CorrelationID(s.r.Context())}
			if s.next == nil {
				return
			}
			resp, err := s.next(s.r.Context())
			if err != nil {
				t.Errorf("the call of %s: %v", s.service, err)
				return
			}
			resp.Body.Close()
		}, changes...)

		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		client.answer(t, request(t, "GET", url, "", nil).WithContext(ctx), 200, "")
		before := seen{"the client", patience, ""}
		for range 3 {
			now := <-visits
			if now.left <= 0 || now.left >= before.left {
				t.Errorf("%s has %v left, want more than zero and less than the %v of %s", now.service, now.left, before.left, before.service)
			}
			if before.correlation != "" && now.correlation != before.correlation {
				t.Errorf("%s was called as %q, want %q as %s", now.service, now.correlation, before.correlation, before.service)
			}
			before = now
		}
	})
}

// An end is how a visit ended.
type end struct {
	service string
	err     error // of the request's context; nil if it was still wanted when it was released
}

// waiting is work that lasts until nobody wants it any more, or until it is released. C says when it is reached.
func waiting(reached chan<- struct{}, release <-chan struct{}, ends chan<- end) func(station) {
	return func(s station) {
		ctx := s.r.Context()
		if s.next == nil {
			reached <- struct{}{}
		} else if resp, err := s.next(ctx); err == nil {
			resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			ends <- end{s.service, ctx.Err()}
		case <-release:
			ends <- end{s.service, nil}
		}
	}
}

// everyHopEnds waits until all three services have seen the end of their request, one time each.
func everyHopEnds(t *testing.T, ends <-chan end, want ...error) {
	t.Helper()
	seen := map[string]bool{}
	for len(seen) < 3 {
		select {
		case e := <-ends:
			ok := false
			for _, err := range want {
				ok = ok || errors.Is(e.err, err)
			}
			if !ok || seen[e.service] {
				t.Errorf("the request at %s ended with %v, seen before: %v; want one of %v once", e.service, e.err, seen[e.service], want)
			}
			seen[e.service] = true
		case <-time.After(patience):
			t.Fatalf("the end was seen at %v only", seen)
		}
	}
}

func TestEveryHopSeesThatTheCallerLeft(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration, changes ...func(*httptest.Server)) {
		settles(t)
		reached, release, ends := make(chan struct{}, 9), make(chan struct{}), make(chan end, 27)
		defer close(release)
		client, url := row(t, by, waiting(reached, release, ends), changes...)

		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, _, err := client.do(t, request(t, "GET", url, "", nil).WithContext(ctx))
			gone <- err
		}()
		<-reached
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the client's error: %v, want context.Canceled", err)
		}
		everyHopEnds(t, ends, context.Canceled)
		if len(reached) > 0 || len(ends) > 0 {
			t.Errorf("after the end of the call C was reached %d times and %d handlers ran, want neither", len(reached), len(ends))
		}
	})
}

func TestEveryHopEndsByTheDeadlineOfTheClient(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration, changes ...func(*httptest.Server)) {
		settles(t)
		release := make(chan struct{})
		defer close(release)
		var reached chan struct{}
		var ends chan end
		for timeout := 200 * time.Millisecond; len(reached) == 0; timeout *= 2 { // until the machine is quick enough
			reached, ends = make(chan struct{}, 9), make(chan end, 27)
			client, url := row(t, by, waiting(reached, release, ends), changes...)
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			resp, _, err := client.do(t, request(t, "GET", url, "", nil).WithContext(ctx))
			late := errors.Is(err, context.DeadlineExceeded) || err == nil && resp.StatusCode == http.StatusGatewayTimeout
			if !late {
				t.Fatalf("GET = %v, %v, want an end by the deadline", resp, err)
			}
		}
		// A hop whose callee was refused for lack of time is cancelled by its caller, if that is quicker.
		everyHopEnds(t, ends, context.DeadlineExceeded, context.Canceled)
		if len(reached) != 1 {
			t.Errorf("C was called %d times, want once: there was no time for a retry", len(reached))
		}
	})
}

// A problem is what a refusal says.
type problem struct {
	Type, Title, Detail string
	Status              int
}

// wantRefusal checks that an answer is that of a Middleware to a request that comes too late.
func wantRefusal(t *testing.T, resp *http.Response, body string) {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Errorf("body %q: %v", body, err)
	}
	h := resp.Header
	if resp.StatusCode != 504 || p.Status != 504 || h.Get(deadline.ExceededHeader) != "true" || h.Get("X-Should-Retry") != "false" ||
		h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("answer %d with header %v and body %s, want a 504 with %s: true, X-Should-Retry: false and a problem",
			resp.StatusCode, h, body, deadline.ExceededHeader)
	}
}

func TestRequestWhoseTimeIsOverIsNotBegun(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration, changes ...func(*httptest.Server)) {
		settles(t)
		service := serve(t, flaky(0, say("done")), append(changes, behind(deadline.Middleware{}))...)
		proxy := shifted(t, service, by, changes...)
		client := call(t, proxy.base())
		for name, value := range map[string]string{
			deadline.TimeoutHeader: "9", "grpc-timeout": "9999u", "x-envoy-expected-rq-timeout-ms": "1",
		} {
			req := request(t, "GET", proxy.URL, "", nil)
			req.Header.Set(name, value)
			req.Header.Set(deadline.DeadlineHeader, strconv.FormatInt(time.Now().UnixMilli(), 10))
			resp, body, err := client.do(t, req)
			if err != nil {
				t.Fatal(err)
			}
			wantRefusal(t, resp, body)
		}
		if n := service.requests.Load(); n != 0 {
			t.Errorf("the handler was called %d times, want never", n)
		}
		if n := proxy.requests.Load(); n != 3 {
			t.Errorf("%d requests for three calls, want no retries", n)
		}
	})
}

// A caller that has a moment left, but not enough for the next hop, does not even send.
func TestCallWithoutUsefulTimeIsNotSent(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration, changes ...func(*httptest.Server)) {
		settles(t)
		var atC atomic.Int32
		client, url := row(t, by, func(s station) {
			switch s.service {
			case "C":
				atC.Add(1)
			case "B": // has worked nearly to the end
				until, _ := s.r.Context().Deadline()
				ctx, cancel := context.WithDeadline(s.r.Context(), until)
				defer cancel()
				waitFor(t, "the last milliseconds", func() bool { return deadline.Left(ctx) < 15*time.Millisecond })
				if resp, err := s.next(ctx); err == nil {
					resp.Body.Close()
					t.Error("the call to C was answered")
				}
			default:
				if resp, err := s.next(s.r.Context()); err == nil {
					resp.Body.Close()
				}
			}
		}, changes...)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		client.do(t, request(t, "GET", url, "", nil).WithContext(ctx))
		if n := atC.Load(); n != 0 {
			t.Errorf("C was called %d times, want never", n)
		}
	})
}

func TestWorkIsNotBegunAfterQueueingTooLong(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration, changes ...func(*httptest.Server)) {
		settles(t)
		turn, left := make(chan struct{}), make(chan time.Duration, 1)
		service := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			<-turn
			left <- deadline.Left(r.Context())
			if deadline.Left(r.Context()) <= 0 {
				return
			}
			io.WriteString(w, "done")
		}, append(changes, behind(deadline.Middleware{}))...)
		proxy := shifted(t, service, by, changes...)
		client := call(t, proxy.base())

		req := request(t, "GET", proxy.URL, "", nil) // whose client waits, so that the answer can be seen
		req.Header.Set(deadline.TimeoutHeader, "50")
		type answer struct {
			resp *http.Response
			body string
			err  error
		}
		answers := make(chan answer, 1)
		go func() {
			resp, body, err := client.do(t, req)
			answers <- answer{resp, body, err}
		}()
		waitFor(t, "the request in the queue", func() bool { return service.requests.Load() == 1 })
		arrived := time.Now() // or a little earlier
		waitFor(t, "the deadline", func() bool { return time.Since(arrived) > 50*time.Millisecond })
		close(turn)
		if got := <-left; got > 0 {
			t.Errorf("Left after the deadline = %v, want zero or less", got)
		}
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		wantRefusal(t, a.resp, a.body)
	})
}

// The verdict of such an answer is meant for a caller whose time is over. This one has more.
func TestServiceThatRanOutOfTimeIsTriedAgainByACallerThatHasMore(t *testing.T) {
	for _, test := range []struct {
		name     string
		internal func(*http.Request) bool
		requests int32
		status   int
	}{
		{"of the same house", everybody, 2, 200},
		{"of another", nil, 1, 504},
	} {
		t.Run(test.name, func(t *testing.T) {
			settles(t)
			service := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					<-r.Context().Done()
					return
				}
				w.WriteHeader(http.StatusOK) // which stands, however slow the machine is
			}, behind(deadline.Middleware{Limit: 50 * time.Millisecond}))
			client := call(t, service.base())
			client.transport.Internal = test.internal
			resp, _, err := client.do(t, request(t, "GET", service.URL, "", nil))
			if n := service.requests.Load(); err != nil || resp.StatusCode != test.status || n != test.requests {
				t.Errorf("GET = %v, %v after %d requests, want %d after %d", resp, err, n, test.status, test.requests)
			}
		})
	}
}
