package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

func TestAnAnswerOfUnknownLengthIsKeptUnlessItIsAStream(t *testing.T) {
	flush := func(w http.ResponseWriter, text string) {
		io.WriteString(w, text)
		http.NewResponseController(w).Flush()
	}
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		first  time.Duration // until the client has the first piece
		again  string        // what the second request gets
	}{
		{"of a known length", func(w http.ResponseWriter) { io.WriteString(w, "one piece") }, 0, "one piece"},
		{"in pieces", func(w http.ResponseWriter) { flush(w, "one "); flush(w, "piece") }, 0, "one piece"},
		{"in pieces that take a while", func(w http.ResponseWriter) {
			flush(w, "one ")
			time.Sleep(streamTime / 2)
			flush(w, "piece")
		}, streamTime / 2, "one piece"},
		{"in pieces that take too long", func(w http.ResponseWriter) {
			flush(w, "one ")
			time.Sleep(time.Minute / 3)
			flush(w, "piece")
		}, streamTime, "answer-not-kept"},
		{"of a known length that takes long", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "9")
			flush(w, "one ")
			time.Sleep(time.Minute / 3)
			flush(w, "piece")
		}, time.Minute / 3, "one piece"},
		{"events", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			flush(w, "one ")
			time.Sleep(time.Minute / 3)
			flush(w, "piece")
		}, 0, "answer-not-kept"},
		{"with trailers that nobody announced", func(w http.ResponseWriter) {
			flush(w, "one piece")
			w.Header().Set(http.TrailerPrefix+"X-Sum", "9")
		}, 0, "answer-not-kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sends atomic.Int64
				s := serving(t, manifest.Proxy{RequireKey: []string{"POST /"}}, func(w http.ResponseWriter, r *http.Request) {
					sends.Add(1)
					c.answer(w)
				})
				defer s.close()
				began := time.Now()
				resp, err := s.client.RoundTrip(s.request("POST", "/", nil, "X-Customer", "a", "Idempotency-Key", "k"))
				if err != nil {
					t.Fatal(err)
				}
				piece := make([]byte, 4)
				_, err = io.ReadFull(resp.Body, piece)
				if took := time.Since(began); string(piece) != "one " || err != nil || took != c.first {
					t.Errorf("the first piece is %q, %v, after %v; want it after %v", piece, err, took, c.first)
				}
				rest, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if string(rest) != "piece" || err != nil {
					t.Errorf("the rest is %q, %v; want it whole", rest, err)
				}
				if strings.Contains(c.name, "trailers") && resp.Trailer.Get("X-Sum") != "9" {
					t.Errorf("the trailers are %v, want them all", resp.Trailer)
				}
				synctest.Wait()
				r := s.send("POST", "/", nil, "X-Customer", "a", "Idempotency-Key", "k")
				if got := r.is(); got != c.again && r.body != c.again {
					t.Errorf("sent again it is %d %s %q, want %s", r.StatusCode, got, r.body, c.again)
				}
				if n := sends.Load(); n != 1 {
					t.Errorf("the service got it %d times, want once", n)
				}
			})
		})
	}
}
