package integration_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/riprap-go/riprap/riphttp"
)

func TestEveryProtocolIsTriedAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*httptest.Server)
		proto  string
	}{
		{"HTTP/1.1", func(*httptest.Server) {}, "HTTP/1.1"},
		{"HTTP/1.1 over TLS", overTLS, "HTTP/1.1"},
		{"HTTP/2 over TLS", overTLSHTTP2, "HTTP/2.0"},
		{"HTTP/2 over plain TCP", overHTTP2, "HTTP/2.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			settles(t)
			server := serve(t, flaky(2, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }), test.change)
			c := call(t, server.base())
			resp := c.answer(t, request(t, "PUT", server.URL, "", strings.NewReader("order")), 200, "order")
			if resp.Proto != test.proto || (resp.TLS != nil) != (server.TLS != nil) {
				t.Errorf("protocol %s, TLS %v; want %s and TLS: %t", resp.Proto, resp.TLS, test.proto, server.TLS != nil)
			}
			if e := c.last(t); e.Attempts != 3 || e.Sends != 3 || server.requests.Load() != 3 {
				t.Errorf("Done event = %+v after %d requests, want three of all", e, server.requests.Load())
			}
		})
	}
}

func TestRequestsOverAUnixSocketAreTriedAgain(t *testing.T) {
	settles(t)
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, flaky(2, say("hello")), func(s *httptest.Server) {
		s.Listener.Close()
		s.Listener = ln
	})
	base := server.base()
	base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", ln.Addr().String())
	}
	c := call(t, base)
	c.answer(t, request(t, "GET", "http://service.test", "", nil), 200, "hello")
	if e := c.last(t); e.Name != "http://service.test" || e.Attempts != 3 {
		t.Errorf("Done event = %+v, want three attempts to http://service.test", e)
	}
}

func TestCallersOwnTraceSeesEachAttempt(t *testing.T) {
	settles(t)
	server := serve(t, flaky(2, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "hello")
	}))
	c := call(t, server.base())
	var mu sync.Mutex
	var seen []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf(format, args...))
	}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn:      func(info httptrace.GotConnInfo) { note("conn, reused: %t", info.Reused) },
		WroteHeaders: func() { note("header") },
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			note("%d %s", code, h.Get("Link"))
			return nil
		},
	})
	c.answer(t, request(t, "GET", server.URL, "", nil).WithContext(ctx), 200, "hello")
	want := []string{"conn, reused: false", "header", "conn, reused: true", "header", "conn, reused: true", "header",
		"103 </style.css>; rel=preload"}
	if !slices.Equal(seen, want) {
		t.Errorf("the caller's trace saw %q, want %q", seen, want)
	}
}

// A roundTripper is a function that sends a request.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestContextOfTheCallerReachesTheBase(t *testing.T) {
	settles(t)
	type key struct{}
	server := serve(t, flaky(2, say("hello")))
	base := server.base()
	t.Cleanup(base.CloseIdleConnections)
	var seen []any
	c := call(t, roundTripper(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r.Context().Value(key{}))
		return base.RoundTrip(r)
	}))
	ctx := context.WithValue(t.Context(), key{}, "mine")
	resp := c.answer(t, request(t, "GET", server.URL, "", nil).WithContext(ctx), 200, "hello")
	if want := []any{"mine", "mine", "mine"}; !slices.Equal(seen, want) {
		t.Errorf("the base saw the values %q, want %q", seen, want)
	}
	if got := resp.Request.Context(); got != ctx {
		t.Errorf("the response's request has the context %v, want the caller's", got)
	}
}

func TestZeroTransportServesAClient(t *testing.T) {
	settles(t)
	server := serve(t, flaky(0, say("hello")))
	client := &http.Client{Transport: new(riphttp.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if content, err := io.ReadAll(resp.Body); err != nil || string(content) != "hello" {
		t.Errorf("body = %q, %v, want hello", content, err)
	}
}

func TestTransportsInEachOtherDoNotMultiplyAttempts(t *testing.T) {
	settles(t)
	server := serve(t, flaky(100, say("hello")))
	base := server.base()
	t.Cleanup(base.CloseIdleConnections)
	inner := &riphttp.Transport{Base: base, Policy: quick()}
	between := roundTripper(func(r *http.Request) (*http.Response, error) { return inner.RoundTrip(r) })
	c := call(t, between)
	c.answer(t, request(t, "GET", server.URL, "", nil), 503, "not now")
	if got := server.requests.Load(); got != 3 {
		t.Errorf("GET was sent %d times, want 3", got)
	}
}

func TestManyGoroutinesShareATransport(t *testing.T) {
	settles(t)
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n%2 == 1 {
			w.WriteHeader(503)
		}
		io.Copy(w, r.Body)
	})
	c := call(t, server.base())
	c.transport.Policy.MaxAttempts = -1
	req := request(t, "PUT", server.URL, "", nil)
	var calls sync.WaitGroup
	for n := range 20 {
		calls.Go(func() {
			body := fmt.Sprint("order ", n)
			mine := req.Clone(req.Context())
			mine.Body, mine.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			c.answer(t, mine, 200, body)
		})
	}
	calls.Wait()
}
