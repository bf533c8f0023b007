package deadline

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// An answer is the ResponseWriter that a handler gets. It notices when the final header is about to be sent and adds to
// it what the time and [GiveUp] ask for. Everything else is up to the writer inside.
type answer struct {
	http.ResponseWriter
	*request
	until   time.Time // zero means no deadline
	begun   bool      // the final header was written, or the connection taken over
	pending bool      // it was begun in time and has a body that is not known to be whole
	length  int64     // of the body, negative if it was not said
}

// writer returns a as a writer with just the optional methods that the one inside has, so that a handler that looks for
// a method and finds it can count on it.
func (a *answer) writer() http.ResponseWriter {
	flushes, hijacks := offers[http.Flusher](a.ResponseWriter), offers[http.Hijacker](a.ResponseWriter)
	switch {
	case flushes && hijacks:
		return struct {
			*answer
			http.Flusher
			http.Hijacker
		}{a, flusher{a}, hijacker{a}}
	case flushes:
		return struct {
			*answer
			http.Flusher
		}{a, flusher{a}}
	case hijacks:
		return struct {
			*answer
			http.Hijacker
		}{a, hijacker{a}}
	}
	return a
}

// offers reports whether a writer, or one inside of it, is a T: an http.ResponseController would find it there too.
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

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) late() bool { return !a.until.IsZero() && !time.Now().Before(a.until) }

// begin is called before the first byte of an answer with this status is written.
func (a *answer) begin(code int) {
	if a.begun {
		return
	}
	a.begun = true
	late := a.late()
	h := a.Header()
	a.length = -1
	if n, ok := number(h.Get("Content-Length"), 18); ok {
		a.length = n
	}
	a.pending = !late && code >= 200 && code != http.StatusNoContent && code != http.StatusNotModified && a.length != 0
	if ids := h[CorrelationHeader]; len(ids) != 1 || ids[0] != a.correlation { // a proxy adds the one of the answer that it passes on
		h.Set(CorrelationHeader, a.correlation)
	}
	_, decided := h[shouldRetry]
	failed := code >= 500 || code == http.StatusTooManyRequests
	if failed && !decided && (a.gaveUp.Load() || late) {
		h.Set(shouldRetry, "false")
	}
}

func (a *answer) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols { // other 1xx come before the answer
		a.begin(code)
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	n, err := a.ResponseWriter.Write(p)
	a.wrote(int64(n))
	return n, err
}

func (a *answer) WriteString(s string) (int, error) {
	a.begin(http.StatusOK)
	n, err := io.WriteString(a.ResponseWriter, s)
	a.wrote(int64(n))
	return n, err
}

// wrote counts down to the end of a body whose length was said.
func (a *answer) wrote(n int64) {
	if a.length > 0 {
		if a.length -= n; a.length <= 0 {
			a.pending = false
		}
	}
}

// ReadFrom leaves the copying to the writer inside, which may let the kernel do it. As in net/http a source that fails
// or ends before its first byte begins no answer, so that a handler which copies from a service that is too slow has
// not said 200.
func (a *answer) ReadFrom(src io.Reader) (n int64, err error) {
	plain := struct{ io.Writer }{a}
	inside, ok := a.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(plain, src)
	}
	if !a.begun {
		const first = 512 // what net/http looks at to guess the type
		n, err = io.Copy(plain, io.LimitReader(src, first))
		if err != nil || n < first {
			return n, err
		}
	}
	rest, err := inside.ReadFrom(src)
	a.wrote(rest)
	return n + rest, err
}

// FlushError is what http.ResponseController looks for first.
func (a *answer) FlushError() error {
	begun := a.begun
	a.begin(http.StatusOK)
	err := http.NewResponseController(a.ResponseWriter).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		a.begun = begun
	}
	return err
}

type flusher struct{ *answer }

func (f flusher) Flush() { f.FlushError() }

type hijacker struct{ *answer }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err == nil {
		h.begun, h.pending = true, false // whoever has the connection now ends what is sent on it
	}
	return conn, buffered, err
}
