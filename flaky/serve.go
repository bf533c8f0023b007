package flaky

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An outcome is how serving a request came to its end, and what is left to do.
type outcome int

const (
	answered outcome = iota // as the script has it
	left                    // the client is gone
	toAbort                 // the connection is still to be closed
	toReset                 // or reset
)

// serve reads a request and answers it with a step, or with 404 if that is nil.
func serve(w http.ResponseWriter, r *http.Request, rec *record, st *step) outcome {
	n, hash, err := drain(r.Body)
	rec.read(n, hash, err == nil)
	if err != nil {
		return left // or what it sent is no request
	}
	if st == nil {
		http.Error(w, "flaky: the script has no part for this path", http.StatusNotFound)
		return answered
	}
	ctx := r.Context()
	if !wait(ctx, st.delay) {
		return left
	}
	over := st.answer(w, r)
	if over == answered && ctx.Err() != nil {
		return left
	}
	return over
}

// buffers are what bodies are read with.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// drain reads a body to its end and returns its length and its SHA-256, also of what came before an error.
func drain(body io.Reader) (n int64, hash string, err error) {
	if body == nil || body == http.NoBody {
		return 0, emptyHash, nil
	}
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	sum := sha256.New()
	n, err = io.CopyBuffer(sum, struct{ io.Reader }{body}, buf[:])
	return n, hex.EncodeToString(sum.Sum(nil)), err
}

// wait waits for d. It reports false if the client left.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (st *step) answer(w http.ResponseWriter, r *http.Request) outcome {
	switch st.kind {
	case hang:
		if !wait(r.Context(), st.d) {
			return left
		}
		return toAbort
	case reset:
		return toReset
	case closed:
		return toAbort
	}
	st.head(w)
	if r.Method == http.MethodHead {
		return answered
	}
	switch st.kind {
	case cut:
		return st.cut(w)
	case slow:
		return st.drip(r.Context(), w)
	case endless:
		return flood(r.Context(), w)
	}
	if st.body != "" {
		io.WriteString(w, st.body)
	}
	return answered
}

// head writes the answer's header.
func (st *step) head(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	for _, f := range st.header {
		if f.dated {
			// Both dates are of the same instant, whatever second the server's own would have come from.
			now := time.Now().UTC().Truncate(time.Second)
			header.Set("Date", now.Format(http.TimeFormat))
			f.value = now.Add(f.ahead).Format(http.TimeFormat)
		}
		if f.first {
			header.Set(f.name, f.value)
		} else {
			header.Add(f.name, f.value)
		}
	}
	code := http.StatusOK
	switch st.kind {
	case status:
		if code = st.code; code != http.StatusNoContent && code != http.StatusNotModified {
			header.Set("Content-Length", strconv.Itoa(len(st.body)))
		}
	case slow:
		header.Set("Content-Length", strconv.Itoa(len(st.body)))
	case cut:
		header.Set("Content-Length", strconv.FormatInt(st.length, 10))
	}
	w.WriteHeader(code)
}

// filler is what a body without a text of its own is made of, over and over.
var filler = strings.Repeat("riprap flaky fills this body line by line, 64 bytes for each.  \n", 64)

// cut writes the first bytes of a body that was announced as longer.
func (st *step) cut(w http.ResponseWriter) outcome {
	if st.hasBody {
		io.WriteString(w, st.body[:st.n])
	} else {
		for rest := st.n; rest > 0; rest -= int64(len(filler)) {
			if _, err := io.WriteString(w, filler[:min(rest, int64(len(filler)))]); err != nil {
				return left
			}
		}
	}
	if !flush(w) {
		return left
	}
	return toAbort
}

// drip writes a body byte by byte. The last one is sent by the server, when the request is over.
func (st *step) drip(ctx context.Context, w http.ResponseWriter) outcome {
	for i := range len(st.body) {
		if !flush(w) || !wait(ctx, st.d) {
			return left
		}
		if _, err := io.WriteString(w, st.body[i:i+1]); err != nil {
			return left
		}
	}
	return answered
}

// flood writes a body until the client leaves.
func flood(ctx context.Context, w http.ResponseWriter) outcome {
	for {
		if _, err := io.WriteString(w, filler[:1<<10]); err != nil || !flush(w) || !wait(ctx, 20*time.Millisecond) {
			return left
		}
	}
}

// flush sends what was written. It reports false if the client left.
func flush(w http.ResponseWriter) bool {
	err := http.NewResponseController(w).Flush()
	return err == nil || errors.Is(err, errors.ErrUnsupported)
}

// resetConnection ends the request's connection with a TCP RST, or as near to it as possible.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: a stream is reset, its connection stays
	}
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS would say goodbye first
		conn = t.NetConn()
	}
	if t, ok := conn.(interface{ SetLinger(int) error }); ok {
		t.SetLinger(0)
	}
	conn.Close()
}
