package idempotency_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// A service is a handler behind a Middleware and a server in memory.
type service struct {
	t      *testing.T
	store  *book
	client *http.Client
	server *memhttp.Server

	mu     sync.Mutex
	events []idempotency.Event
	runs   int
}

// serve starts a service. Store, Scope and Observe are filled in where they are missing.
func serve(t *testing.T, m idempotency.Middleware, h http.HandlerFunc) *service {
	t.Helper()
	return serveInside(t, m, h, func(h http.Handler) http.Handler { return h })
}

func serveInside(t *testing.T, m idempotency.Middleware, h http.HandlerFunc, outside func(http.Handler) http.Handler) *service {
	t.Helper()
	s := &service{t: t}
	if m.Store == nil {
		m.Store = &book{pages: make(map[idempotency.ID]*page)}
	}
	s.store, _ = m.Store.(*book)
	if m.Scope == nil {
		m.Scope = idempotency.SingleTenant
	}
	m.Observe = func(_ context.Context, e idempotency.Event) {
		s.mu.Lock()
		s.events = append(s.events, e)
		s.mu.Unlock()
	}
	s.server = memhttp.Serve(outside(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.runs++
		s.mu.Unlock()
		h(w, r)
	}))))
	s.client = &http.Client{Transport: s.server.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

func (s *service) stop() {
	s.client.CloseIdleConnections()
	s.server.Stop()
}

// An answer is a response with its body read.
type answer struct {
	*http.Response
	body string
	err  error
}

// problem returns the name of the problem that an answer stands for, "" for none.
func (a answer) problem() string {
	if a.Response == nil || a.Header.Get("Content-Type") != "application/problem+json" {
		return ""
	}
	_, name, _ := strings.Cut(a.member("type").(string), "#")
	return name
}

// member returns a member of a problem.
func (a answer) member(name string) any {
	var members map[string]any
	json.Unmarshal([]byte(a.body), &members)
	return members[name]
}

func (a answer) replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// post sends a request with this key.
func (s *service) post(key, body string) answer {
	s.t.Helper()
	return s.send(s.request("POST", "/charges", key, body))
}

func (s *service) request(method, path, key, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, memhttp.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.GetBody = nil // else net/http sends it again by itself
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

func (s *service) send(r *http.Request) (a answer) {
	a.Response, a.err = s.client.Do(r)
	if a.err != nil {
		a.Response = &http.Response{}
		return a
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	a.body, a.err = string(body), err
	return a
}

// ran returns how often the handler was called.
func (s *service) ran() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs
}

// kinds returns what became of the requests, in order.
func (s *service) kinds() (kinds []idempotency.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (s *service) wantKinds(want ...idempotency.Kind) {
	s.t.Helper()
	if got := s.kinds(); !slices.Equal(got, want) {
		s.t.Errorf("events = %v, want %v", got, want)
	}
}

// wantProblem checks an answer of the middleware's own.
func (s *service) wantProblem(a answer, status int, name string) {
	s.t.Helper()
	if a.err != nil || a.StatusCode != status || a.problem() != name {
		s.t.Errorf("answer = %d %s, %v, want the problem %q with %d", a.StatusCode, a.body, a.err, name, status)
	}
}

// wantAnswer checks an answer of the handler, sent again or not.
func (s *service) wantAnswer(a answer, status int, body string, replayed bool) {
	s.t.Helper()
	if a.err != nil || a.StatusCode != status || a.body != body || a.replayed() != replayed {
		s.t.Errorf("answer = %d %q (replayed: %v), %v, want %d %q (replayed: %v)", a.StatusCode, a.body, a.replayed(), a.err, status, body, replayed)
	}
}

func (s *service) wantRuns(want int) {
	s.t.Helper()
	if got := s.ran(); got != want {
		s.t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// created is a handler that works.
func created(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.WriteHeader(http.StatusCreated)
	w.Write(append([]byte("did "), body...))
}

// bubble runs a test in fake time.
func bubble(t *testing.T, m idempotency.Middleware, h http.HandlerFunc, test func(s *service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, m, h)
		defer s.stop()
		test(s)
	})
}
