package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// A stage is a service with a proxy before it, both in memory, for tests in fake time.
type stage struct {
	t      *testing.T
	proxy  *Service
	front  *memhttp.Server
	client *http.Transport

	mu     sync.Mutex
	visits []*Visit
	stop   []func()
}

// behind puts a proxy before what listens.
func behind(t *testing.T, service *memhttp.Listener, p manifest.Proxy) *stage {
	t.Helper()
	s := &stage{t: t}
	p.Service = "service"
	if p.To == "" {
		p.To = memhttp.URL
	}
	if p.Scope == "" {
		p.Scope = "header:X-Customer"
	}
	var err error
	if s.proxy, err = NewService(p, &idempotency.Memory{}, Watch{Ended: s.ended}); err != nil {
		t.Fatalf("NewService(%+v) = %v, want no error", p, err)
	}
	base := s.proxy.transport.Base.(*upstream)
	base.DialContext, base.uploads.DialContext = service.DialContext, service.DialContext
	s.front = memhttp.Serve(s.proxy)
	s.client = s.front.Transport()
	return s
}

// serving is a stage before a handler.
func serving(t *testing.T, p manifest.Proxy, h http.HandlerFunc) *stage {
	service := memhttp.Serve(h)
	s := behind(t, service.Listener, p)
	s.stop = append(s.stop, service.Stop)
	return s
}

// playing is a stage before a script.
func playing(t *testing.T, p manifest.Proxy, play func(n int, peer *memhttp.Peer)) *stage {
	service := memhttp.Play(play)
	s := behind(t, service.Listener, p)
	s.stop = append(s.stop, service.Stop)
	return s
}

func (s *stage) ended(v *Visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visits = append(s.visits, v)
}

// close ends all that the stage is made of.
func (s *stage) close() {
	s.client.CloseIdleConnections()
	s.front.Stop()
	s.proxy.CloseIdleConnections()
	for _, stop := range s.stop {
		stop()
	}
}

// visit returns what became of the last request.
func (s *stage) visit() *Visit {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.visits) == 0 {
		s.t.Fatal("no request has ended, want one")
	}
	return s.visits[len(s.visits)-1]
}

// A reply is an answer, read to its end.
type reply struct {
	*http.Response
	body string
	err  error // of the body
	problem
}

// is is the name of the problem that the reply tells of, with its status; "" if it tells of none.
func (r *reply) is() string {
	_, name, _ := strings.Cut(r.Type, "#")
	return name
}

// send sends a request by the proxy. The fields are names and values.
func (s *stage) send(method, path string, body io.Reader, fields ...string) *reply {
	s.t.Helper()
	return s.do(s.request(method, path, body, fields...))
}

func (s *stage) request(method, path string, body io.Reader, fields ...string) *http.Request {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, memhttp.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	return req
}

func (s *stage) do(req *http.Request) *reply {
	s.t.Helper()
	resp, err := s.client.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("%s %s = %v, want an answer", req.Method, req.URL.Path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r := &reply{Response: resp, body: string(body), err: err}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		if err := json.Unmarshal(body, &r.problem); err != nil {
			s.t.Fatalf("%s %s: problem %q: %v", req.Method, req.URL.Path, body, err)
		}
	}
	return r
}
