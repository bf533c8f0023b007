package idempotency_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

// free is a Store that costs nothing: every key is free.
type free struct{}

func (free) Claim(context.Context, idempotency.Claim) (idempotency.Claimed, error) {
	return idempotency.Claimed{Verdict: idempotency.ClaimWon, Generation: 1}, nil
}
func (free) Renew(context.Context, idempotency.Ticket, time.Duration) error { return nil }
func (free) Complete(context.Context, idempotency.Ticket, idempotency.Answer, time.Duration) error {
	return nil
}
func (free) Release(context.Context, idempotency.Ticket) error { return nil }
func (free) Suspend(context.Context, idempotency.Ticket) error { return nil }

// BenchmarkMiddleware runs requests with a body through a Middleware whose store costs nothing, and for comparison hashes
// the same body once. The row of the empty body is the fixed part of a request: keys, contexts, recorder, heartbeat. What a
// larger body costs beyond it is at most four times the hash: it is read into memory and hashed.
func BenchmarkMiddleware(b *testing.B) {
	answer := []byte(`{"id":"ch_1","amount":100}`)
	handler := idempotency.Middleware{Store: free{}, Scope: idempotency.SingleTenant, Observe: func(context.Context, idempotency.Event) {}}.Handler(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			w.Write(answer)
		}))
	for _, size := range []int{0, 1 << 10, 64 << 10, 1 << 20} {
		body := bytes.Repeat([]byte{'x'}, size)
		b.Run(fmt.Sprintf("impl=sha256/body=%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				sha256.Sum256(body)
			}
		})
		b.Run(fmt.Sprintf("impl=riprap/body=%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			r := httptest.NewRequest("POST", "/charges", nil)
			r.Header.Set("Idempotency-Key", "0b9ee1b6-5a0e-4a3c-9a57-3c9b1f6f1c55")
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = int64(size)
			src := bytes.NewReader(body)
			r.Body = io.NopCloser(src)
			w := &sink{header: make(http.Header)}
			for b.Loop() {
				src.Reset(body)
				clear(w.header)
				handler.ServeHTTP(w, r)
				if w.status != http.StatusCreated {
					b.Fatalf("status %d, want 201", w.status)
				}
			}
		})
	}
}

// sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	status int
}

func (w *sink) Header() http.Header         { return w.header }
func (w *sink) Write(p []byte) (int, error) { return len(p), nil }
func (w *sink) WriteHeader(code int)        { w.status = code }
