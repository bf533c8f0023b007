package riphttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

const serviceURL = "http://service.test/path"

// A stub is a Base that answers by a script. It reads each request's body in full and closes it.
type stub struct {
	play func(n int, r *http.Request) (*http.Response, error) // n counts from 1

	mu   sync.Mutex
	sent []sent
}

// What a stub has seen of an attempt.
type sent struct {
	begun, ended time.Time
	method, url  string
	header       http.Header
	body         string
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	seen := sent{begun: time.Now(), method: r.Method, url: r.URL.String(), header: r.Header.Clone()}
	var failed error
	if r.Body != nil {
		var body []byte
		body, failed = io.ReadAll(r.Body)
		seen.body = string(body)
		r.Body.Close()
	}
	s.mu.Lock()
	s.sent = append(s.sent, seen)
	n := len(s.sent)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.sent[n-1].ended = time.Now()
		s.mu.Unlock()
	}()
	if failed != nil {
		return nil, failed
	}
	return s.play(n, r)
}

func (s *stub) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

// gaps returns the times between the end of each attempt and the start of the next.
func (s *stub) gaps() (gaps []time.Duration) {
	for i := 1; i < len(s.sent); i++ {
		gaps = append(gaps, s.sent[i].begun.Sub(s.sent[i-1].ended))
	}
	return gaps
}

// script returns a stub that gives these in turn, and the last of them from then on: a status code, a function that
// makes a response, or an error.
func script(steps ...any) *stub {
	return &stub{play: func(n int, r *http.Request) (*http.Response, error) {
		switch step := steps[min(n, len(steps))-1].(type) {
		case int:
			return response(step, http.StatusText(step)), nil
		case func() *http.Response:
			return step(), nil
		case func(*http.Request) (*http.Response, error):
			return step(r)
		case error:
			return nil, step
		default:
			panic(step)
		}
	}}
}

// reply is a step of a script: a response with names and values of header fields.
func reply(code int, body string, header ...string) func() *http.Response {
	return func() *http.Response { return response(code, body, header...) }
}

// hang is a step of a script: no answer until the attempt is over.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

var errWire = errors.New("the connection broke")

// even makes all waits of its own exactly a second, so that tests can tell them.
func even() *riprap.Policy {
	return &riprap.Policy{
		Backoff: riprap.Backoff{Base: time.Second, Factor: 1, Jitter: riprap.None},
		Rand:    func() float64 { return 0 },
	}
}

// newRequest makes a request; header holds names and values. A body that is no string becomes one without GetBody.
func newRequest(t testing.TB, method, url string, body any, header ...string) *http.Request {
	t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case io.Reader:
		reader = b
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// roundTrip sends a request through a Transport and checks that a response or an error comes back, and not both.
func roundTrip(t testing.TB, rt http.RoundTripper, req *http.Request) (*http.Response, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	if (resp == nil) == (err == nil) {
		t.Fatalf("RoundTrip = %v, %v, want a response or an error", resp, err)
	}
	return resp, err
}

// result sends a request, reads the response and returns its status and body, or the error.
func result(t testing.TB, rt http.RoundTripper, req *http.Request) (code int, body string, err error) {
	t.Helper()
	resp, err := roundTrip(t, rt, req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(content), err
}

// wantAnswer sends a request and checks status and body.
func wantAnswer(t testing.TB, rt http.RoundTripper, req *http.Request, code int, body string) {
	t.Helper()
	gotCode, gotBody, err := result(t, rt, req)
	if gotCode != code || gotBody != body || err != nil {
		t.Errorf("%s: %d %q, %v, want %d %q", req.Method, gotCode, gotBody, err, code, body)
	}
}

func wantCalls(t testing.TB, s *stub, want int) {
	t.Helper()
	if got := s.calls(); got != want {
		t.Errorf("the service got %d requests, want %d", got, want)
	}
}

// wantGaps compares the times between attempts.
func wantGaps(t testing.TB, s *stub, want ...time.Duration) {
	t.Helper()
	got := s.gaps()
	if len(got) != len(want) {
		t.Errorf("gaps between attempts: %v, want %v", got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("gaps between attempts: %v, want %v", got, want)
			return
		}
	}
}

// inBubble runs a subtest in fake time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// A body whose Close is counted. With an err it fails with that after its content, with hang it never ends until it
// is closed or ctx is done.
type trackedBody struct {
	io.Reader
	ctx    context.Context
	hang   bool
	err    error
	closed atomic.Int32
	once   sync.Once
	ended  chan struct{}
}

func track(content string) *trackedBody {
	return &trackedBody{Reader: strings.NewReader(content), ended: make(chan struct{}), ctx: context.Background()}
}

func (b *trackedBody) Read(p []byte) (int, error) {
	if b.closed.Load() > 0 {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.Reader.Read(p)
	switch {
	case n > 0 || err == nil:
	case b.hang:
		select {
		case <-b.ended:
			return 0, http.ErrBodyReadAfterClose
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	if b.err != nil && err == io.EOF {
		err = b.err
	}
	return n, err
}

func (b *trackedBody) Close() error {
	b.closed.Add(1)
	b.once.Do(func() { close(b.ended) })
	return nil
}

// A log of what a Trace was told.
type events struct {
	mu       sync.Mutex
	order    []string
	attempts []riprap.Event
	retries  []riprap.Event
	done     []riprap.Event
}

func (e *events) trace() *riprap.Trace {
	return &riprap.Trace{
		Attempt: func(ctx context.Context, ev riprap.Event) context.Context {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.order = append(e.order, "attempt")
			e.attempts = append(e.attempts, ev)
			return nil
		},
		Retry: func(_ context.Context, ev riprap.Event) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.order = append(e.order, "retry")
			e.retries = append(e.retries, ev)
		},
		Done: func(_ context.Context, ev riprap.Event) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.order = append(e.order, "done")
			e.done = append(e.done, ev)
		},
	}
}

// ended returns the Done event and checks that there was just one.
func (e *events) ended(t testing.TB) riprap.Event {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.done) != 1 {
		t.Fatalf("Done was called %d times, want once", len(e.done))
	}
	return e.done[0]
}

// traced returns a copy of a policy that tells e.
func traced(p *riprap.Policy, e *events) *riprap.Policy {
	own := *p
	own.Trace = e.trace()
	return &own
}

// stream returns a reader that http.NewRequest does not know, so that the request has no GetBody.
func stream(content string) io.Reader { return io.MultiReader(strings.NewReader(content)) }

// sized makes a request with a body of known length and no GetBody.
func sized(t testing.TB, method string, body io.ReadCloser, length int64, header ...string) *http.Request {
	t.Helper()
	return sizedTo(t, method, serviceURL, body, length, header...)
}

func sizedTo(t testing.TB, method, url string, body io.ReadCloser, length int64, header ...string) *http.Request {
	t.Helper()
	req := newRequest(t, method, url, nil, header...)
	req.Body, req.ContentLength = body, length
	return req
}

func statusOf(err error) int {
	if status, ok := errors.AsType[*riphttp.StatusError](err); ok {
		return status.Code
	}
	return 0
}

func kilobytes(n int) string { return string(bytes.Repeat([]byte("0123456789abcdef"), n*64)) }
