package idempotency

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// describing are the response fields that are kept and replayed: they say what the body is, or where to look.
var describing = []string{
	"Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location", "Content-Type", "Etag", "Last-Modified", "Link", "Location",
	"X-Content-Type-Options",
}

// neverKept are those that belong to one answer, one connection or one caller.
var neverKept = []string{
	"Authentication-Info", "Authorization", "Connection", "Content-Length", "Date", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection", "Set-Cookie", "Set-Cookie2", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "Www-Authenticate", "Retry-After", "Request-Id", "X-Request-Id", "X-Correlation-Id", "Traceparent", "Tracestate",
	retentionField, replayedField,
}

// Replayable reports whether a response field, whatever the case of its name, may be kept with an answer and replayed. Those that belong to
// one connection, one moment or one caller may not: Set-Cookie, Date, Retry-After, request ids, what is left of a rate.
func Replayable(field string) bool {
	field = textproto.CanonicalMIMEHeaderKey(field)
	return !slices.Contains(neverKept, field) && !strings.HasPrefix(field, "Ratelimit") && !strings.HasPrefix(field, "X-Ratelimit-")
}

// A recorder is the ResponseWriter that a handler gets. It holds the answer back until the record of it is safe. An answer that
// cannot be kept, because it is flushed or too large, goes straight through instead, unless nothing may leave before the commit.
//
// There is no Unwrap: what is written past the recorder would not be in the record.
type recorder struct {
	w         http.ResponseWriter
	published string // the retention
	limit     int64  // of what is kept of a body
	whole     bool   // nothing leaves before the end
	head      bool   // the answer to a HEAD has a length and no body
	lost      *atomic.Bool

	outer     http.Header // what was set outside of us, for each answer anew
	header    http.Header // the handler's
	sent      http.Header // as it was when the status was written
	status    int         // zero: no answer was begun
	length    int64       // of the body as the handler said, negative if it did not
	body      []byte
	written   int64 // bytes of the body
	streaming bool  // the answer goes straight through
	hijacked  bool
}

// writer returns rec as a writer with just the optional methods that can be counted on.
func (rec *recorder) writer() http.ResponseWriter {
	if rec.whole {
		return rec
	}
	flushes, hijacks := offers[http.Flusher](rec.w), offers[http.Hijacker](rec.w)
	switch {
	case flushes && hijacks:
		return struct {
			*recorder
			flusher
			http.Hijacker
		}{rec, flusher{rec}, hijacker{rec}}
	case flushes:
		return struct {
			*recorder
			flusher
		}{rec, flusher{rec}}
	case hijacks:
		return struct {
			*recorder
			http.Hijacker
		}{rec, hijacker{rec}}
	}
	return rec
}

// offers reports whether a writer, or one inside of it, is a T.
func offers[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = outer.Unwrap()
	}
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func (rec *recorder) Header() http.Header { return rec.header }

// SetReadDeadline and SetWriteDeadline are for http.ResponseController.
func (rec *recorder) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetReadDeadline(t)
}

func (rec *recorder) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetWriteDeadline(t)
}

func (rec *recorder) WriteHeader(code int) {
	switch {
	case code < 100 || code > 999:
		panic(fmt.Sprintf("idempotency: invalid WriteHeader code %d", code)) // net/http would, but too late
	case rec.status != 0:
	case code >= 200 || code == http.StatusSwitchingProtocols:
		rec.begin(code)
	case !rec.whole:
		rec.inform(code)
	}
}

// inform sends a 1xx, which comes before the answer and is no part of it.
func (rec *recorder) inform(code int) {
	h := rec.w.Header()
	before := maps.Clone(h)
	clear(h)
	maps.Copy(h, rec.header)
	rec.w.WriteHeader(code)
	clear(h)
	maps.Copy(h, before)
}

// begin is called before the first byte of an answer with this status.
func (rec *recorder) begin(code int) {
	if rec.status != 0 {
		return
	}
	rec.status = code
	rec.sent = rec.header.Clone()
	rec.length = -1
	if said := rec.sent.Get("Content-Length"); said != "" {
		if n, err := strconv.ParseInt(said, 10, 64); err == nil && n >= 0 {
			rec.length = n
		}
	}
}

func (rec *recorder) Write(p []byte) (int, error) {
	if err := rec.admit(len(p)); err != nil {
		return 0, err
	}
	if rec.streaming {
		return rec.w.Write(p)
	}
	rec.body = append(rec.body, p...)
	return len(p), nil
}

func (rec *recorder) WriteString(s string) (int, error) {
	if err := rec.admit(len(s)); err != nil {
		return 0, err
	}
	if rec.streaming {
		return io.WriteString(rec.w, s)
	}
	rec.body = append(rec.body, s...)
	return len(s), nil
}

// admit is called before n bytes are written. It says what net/http would say.
func (rec *recorder) admit(n int) error {
	rec.begin(http.StatusOK)
	rec.written += int64(n)
	switch {
	case rec.hijacked:
		return http.ErrHijacked
	case rec.streaming && rec.lost.Load():
		return ErrFenced
	case n == 0:
	case !bodyAllowed(rec.status):
		rec.written -= int64(n)
		return http.ErrBodyNotAllowed
	case rec.length >= 0 && rec.written > rec.length && !rec.head:
		rec.written -= int64(n)
		return http.ErrContentLength
	case rec.written > rec.limit && !rec.whole:
		rec.stream()
	}
	return nil
}

// ReadFrom leaves the copying to the writer inside once the answer goes straight through. As in net/http a source that fails
// before its first byte begins no answer.
func (rec *recorder) ReadFrom(src io.Reader) (n int64, err error) {
	plain := struct{ io.Writer }{rec}
	if rec.whole {
		return io.Copy(plain, src)
	}
	if !rec.streaming {
		room := rec.limit - rec.written + 1 // with the one byte that is too much it is streaming
		n, err = io.Copy(plain, io.LimitReader(src, room))
		if err != nil || n < room {
			return n, err
		}
	}
	if rec.lost.Load() {
		return n, ErrFenced
	}
	rest, err := io.Copy(rec.w, src)
	rec.written += rest
	return n + rest, err
}

// stream sends what is there of the answer, and from now on all that is written.
func (rec *recorder) stream() {
	if rec.streaming {
		return
	}
	rec.streaming = true
	h := rec.w.Header()
	clear(h)
	maps.Copy(h, rec.sent)
	h.Set(retentionField, rec.published)
	rec.w.WriteHeader(rec.status)
	if len(rec.body) > 0 {
		rec.w.Write(rec.body)
	}
}

// send ends the answer for the client.
func (rec *recorder) send() {
	if rec.hijacked {
		return
	}
	if !rec.streaming {
		for name := range rec.trailers() {
			if strings.HasPrefix(name, http.TrailerPrefix) {
				rec.sent[name] = rec.header[name] // known before the body, none gets lost
			}
		}
	}
	rec.stream()
	h := rec.w.Header()
	for name := range rec.trailers() {
		h[name] = rec.header[name]
	}
}

// sendWhole ends the answer for the client although the handler goes on, and reports whether it could.
func (rec *recorder) sendWhole(proto int) bool {
	switch {
	case rec.hijacked:
		return true
	case rec.streaming || rec.hasTrailers():
		return false
	case bodyAllowed(rec.status) && !rec.head && rec.outer["Content-Encoding"] == nil: // else what goes out has another length
		rec.sent.Set("Content-Length", strconv.Itoa(len(rec.body)))
	}
	if proto == 1 {
		rec.sent.Set("Connection", "close") // the next request on it would wait for us
	}
	rec.stream()
	return http.NewResponseController(rec.w).Flush() == nil
}

// trailers yields the names of the fields that come after the body.
func (rec *recorder) trailers() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, list := range rec.sent["Trailer"] {
			for name := range strings.SplitSeq(list, ",") {
				name = http.CanonicalHeaderKey(strings.TrimSpace(name))
				if _, ok := rec.header[name]; ok && !yield(name) {
					return
				}
			}
		}
		for name := range rec.header {
			if strings.HasPrefix(name, http.TrailerPrefix) && !yield(name) {
				return
			}
		}
	}
}

func (rec *recorder) hasTrailers() bool {
	for range rec.trailers() {
		return true
	}
	return len(rec.sent["Trailer"]) > 0
}

// answer returns what is to be kept. An answer of which a part is missing is not kept: the rest would be taken for the whole.
func (rec *recorder) answer(kept []string) Answer {
	short := rec.length > rec.written && bodyAllowed(rec.status) && !rec.head
	if rec.streaming || rec.hijacked || short || rec.written > rec.limit || rec.hasTrailers() {
		return Answer{Status: rec.status, Tombstone: true}
	}
	// What net/http is going to guess, is guessed once.
	if _, typed := rec.sent["Content-Type"]; !typed && len(rec.body) > 0 && rec.sent.Get("Content-Encoding") == "" {
		rec.sent.Set("Content-Type", http.DetectContentType(rec.body))
	}
	a := Answer{Status: rec.status, Header: make(http.Header), Body: rec.body}
	for _, name := range kept {
		if values := rec.sent[name]; len(values) > 0 && !slices.Equal(values, rec.outer[name]) {
			a.Header[name] = slices.Clone(values)
		}
	}
	return a
}

type flusher struct{ rec *recorder }

func (f flusher) Flush() { f.FlushError() }

// FlushError is what http.ResponseController looks for first.
func (f flusher) FlushError() error {
	f.rec.begin(http.StatusOK)
	f.rec.stream()
	return http.NewResponseController(f.rec.w).Flush()
}

type hijacker struct{ rec *recorder }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if h.rec.status != 0 {
		h.rec.stream()
	}
	conn, buffered, err := http.NewResponseController(h.rec.w).Hijack()
	if err == nil {
		h.rec.begin(http.StatusSwitchingProtocols)
		h.rec.hijacked = true
	}
	return conn, buffered, err
}
