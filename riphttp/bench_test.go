package riphttp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// memory answers every request at once, so that only the transport's own cost is left.
type memory struct{}

func (memory) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: 2,
		Body: io.NopCloser(strings.NewReader("ok")), Request: req,
	}, nil
}

var boundless = &riprap.Policy{Timeout: -1, AttemptTimeout: -1}

// transports are the candidates: the base alone, riprap with every bound off, as it comes, with a bound that it learns, and
// for a service that is told of its time.
func transports(base http.RoundTripper) []struct {
	name string
	http.RoundTripper
} {
	return []struct {
		name string
		http.RoundTripper
	}{
		{"impl=bare", base},
		{"impl=riprap-unbound", &riphttp.Transport{Base: base, Policy: boundless, ReadTimeout: -1}},
		{"impl=riprap", &riphttp.Transport{Base: base}},
		{"impl=riprap-adaptive", &riphttp.Transport{Base: base, Adaptive: true}},
		{"impl=riprap-internal", &riphttp.Transport{Base: base, Internal: func(*http.Request) bool { return true }}},
	}
}

func BenchmarkTransportMemory(b *testing.B) {
	for _, t := range transports(memory{}) {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			req, _ := http.NewRequest("GET", "http://service.test/", nil)
			for b.Loop() {
				exchange(b, t, req)
			}
		})
	}
}

// What a key costs: to learn whether a request that got no answer can have been processed, its sends are observed.
func BenchmarkTransportKeyed(b *testing.B) {
	for _, t := range transports(memory{}) {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			req, _ := http.NewRequest("POST", "http://service.test/", nil)
			req.Header.Set("Idempotency-Key", "k")
			for b.Loop() {
				exchange(b, t, req)
			}
		})
	}
}

func BenchmarkTransportLoopback(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	for _, t := range transports(base) {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			req, _ := http.NewRequest("GET", server.URL, nil)
			for b.Loop() {
				exchange(b, t, req)
			}
		})
	}
}

func BenchmarkTransportUpload(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	content := make([]byte, 1<<20)
	for _, t := range transports(base) {
		b.Run(t.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				req, _ := http.NewRequest("POST", server.URL, bytes.NewReader(content))
				exchange(b, t, req)
			}
		})
	}
}

func exchange(b *testing.B, t http.RoundTripper, req *http.Request) {
	resp, err := t.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
