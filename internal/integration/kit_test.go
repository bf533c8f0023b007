package integration_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// patience is how long a test waits for something that must happen. Tests that pass never need it.
const patience = 20 * time.Second

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// settles makes sure that a test leaves no goroutine behind. It comes first, so that its check runs after all other
// cleanups.
func settles(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<20)
				stacks = stacks[:runtime.Stack(stacks, true)]
				t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// A diary is a Trace that remembers.
type diary struct {
	mu      sync.Mutex
	retries []riprap.Event
	done    []riprap.Event
}

func (d *diary) trace() *riprap.Trace {
	return &riprap.Trace{
		Retry: func(_ context.Context, e riprap.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.retries = append(d.retries, e)
		},
		Done: func(_ context.Context, e riprap.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.done = append(d.done, e)
		},
	}
}

// last returns the Done event of the latest call.
func (d *diary) last(t *testing.T) riprap.Event {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.done) == 0 {
		t.Fatal("no Done event")
	}
	return d.done[len(d.done)-1]
}

// quick returns a policy under which three attempts take a few milliseconds. What bounds them is generous, so that no
// test depends on the speed of the machine.
func quick() *riprap.Policy {
	return &riprap.Policy{
		MaxAttempts: 3,
		Backoff:     riprap.Backoff{Base: time.Millisecond},
		Budget:      &riprap.Budget{Reserve: 1000},
	}
}

// A caller is a client with riprap in it, and what it tells.
type caller struct {
	*http.Client
	*diary
	transport *riphttp.Transport
}

// call returns a client over a base transport, which the test owns: its idle connections are closed at the end.
func call(t *testing.T, base http.RoundTripper) *caller {
	t.Helper()
	c := &caller{diary: new(diary)}
	policy := quick()
	policy.Trace = c.trace()
	c.transport = &riphttp.Transport{Base: base, Policy: policy}
	c.Client = &http.Client{Transport: c.transport}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// plain returns a base transport as a program would have it.
func plain() *http.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.Proxy = nil
	return base
}

// request returns a request that lasts as long as the test. Of a key that is not empty it makes an Idempotency-Key.
func request(t *testing.T, method, url, key string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return req
}

// do sends a request and returns the response with its body read, or the error.
func (c *caller) do(t *testing.T, req *http.Request) (*http.Response, string, error) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return resp, string(content), err
}

// answer sends a request that must be answered with a status and a body.
func (c *caller) answer(t *testing.T, req *http.Request, status int, body string) *http.Response {
	t.Helper()
	resp, got, err := c.do(t, req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	if resp.StatusCode != status || got != body {
		t.Fatalf("%s %s = %d with body %.100q, want %d with %.100q", req.Method, req.URL, resp.StatusCode, got, status, body)
	}
	return resp
}

// A server counts requests and connections.
type server struct {
	*httptest.Server
	requests atomic.Int32
	conns    atomic.Int32
}

// serve returns a server whose handler is told the number of each request, from 1. Changes are made before it starts.
func serve(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request), changes ...func(*httptest.Server)) *server {
	t.Helper()
	s := new(server)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(int(s.requests.Add(1)), w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.conns.Add(1)
		}
	}
	for _, change := range changes {
		change(s.Server)
	}
	if s.TLS != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// Changes for serve.
func overTLS(s *httptest.Server)      { s.TLS = new(tls.Config) }
func overTLSHTTP2(s *httptest.Server) { s.TLS, s.EnableHTTP2 = new(tls.Config), true }
func overHTTP2(s *httptest.Server)    { s.Config.Protocols = cleartextHTTP2() }

// cleartextHTTP2 returns the protocols of a client or server that speaks HTTP/2 without TLS.
func cleartextHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// base returns a transport that trusts the server and speaks its protocol.
func (s *server) base() *http.Transport {
	base := s.Client().Transport.(*http.Transport).Clone()
	base.Proxy = nil
	if p := s.Config.Protocols; p != nil && p.UnencryptedHTTP2() {
		base.Protocols = cleartextHTTP2()
	}
	return base
}

// flaky answers 503 to the first requests and what comes after by handle.
func flaky(failures int, handle http.HandlerFunc) func(int, http.ResponseWriter, *http.Request) {
	return func(n int, w http.ResponseWriter, r *http.Request) {
		if n <= failures {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, "not now")
			return
		}
		handle(w, r)
	}
}

// say answers with a text.
func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, text) }
}

// noise returns n random bytes, always the same ones.
func noise(n int) []byte {
	content := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(content)
	return content
}
