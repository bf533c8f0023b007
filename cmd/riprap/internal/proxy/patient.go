package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// streamTime is how long an answer to a request with a key may take from its header to its end to count as one piece. A longer one
// is streamed to the client, and cannot be kept.
const streamTime = time.Second

// A patient writer holds back the flushes of an answer whose length is not known: ReverseProxy flushes after each piece, and what
// was flushed cannot be kept for a replay. Most such answers are short, and chunked because their service is used to it. When
// streamTime is over, or if the answer says that it is a stream, flushes pass.
type patient struct {
	http.ResponseWriter
	visit *Visit

	mu    sync.Mutex // guards the writer too, since the timer flushes it
	began bool
	open  bool // flushes pass
	over  bool // the handler has returned
	timer *time.Timer
}

// patiently lets a handler answer through a patient writer.
func patiently(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &patient{ResponseWriter: w, visit: visitOf(r.Context())}
		defer p.end()
		next.ServeHTTP(p, r)
	})
}

func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) WriteHeader(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if code >= 200 && !p.began {
		p.began, p.open = true, isStream(p.Header())
		if p.Header()["Content-Length"] == nil { // else nobody flushes
			p.timer = time.AfterFunc(streamTime, p.late)
		}
	}
	p.ResponseWriter.WriteHeader(code)
}

func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ResponseWriter.Write(b)
}

// FlushError passes a flush on, if it is time. Trailers need one: without it their answer would get a length and no trailers.
func (p *patient) FlushError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open && !p.visit.trailed.Load() {
		return nil
	}
	return http.NewResponseController(p.ResponseWriter).Flush()
}

// Flush is for those who look for an http.Flusher.
func (p *patient) Flush() { p.FlushError() }

// late sends what there is.
func (p *patient) late() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = true
	if !p.over {
		http.NewResponseController(p.ResponseWriter).Flush()
	}
}

func (p *patient) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// isStream reports whether an answer says that it is one.
func isStream(h http.Header) bool {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "text/event-stream" || strings.HasPrefix(media, "application/grpc") || h["Trailer"] != nil
}

// A trailed body notes at its end whether trailers came.
type trailed struct {
	io.ReadCloser
	resp  *http.Response
	visit *Visit
}

func (t trailed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if err == io.EOF {
		t.visit.trailed.Store(len(t.resp.Trailer) > 0)
	}
	return n, err
}
