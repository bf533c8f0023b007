package deadline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

const (
	defaultLimit = 30 * time.Second
	defaultLeast = 10 * time.Millisecond
)

// A Middleware bounds how long requests are worked on, by what the caller still waits and by a limit of the server. The
// zero Middleware is ready to use.
//
// The handler's context ends when the time is over, which counts from the moment the Middleware is called. A request
// that has too little left is answered 504 (Gateway Timeout) and the handler is not called. The same answer is given for
// a handler that returns after the deadline and has written nothing, where net/http would send an empty 200. That answer
// carries [ExceededHeader], X-Should-Retry: false, and a body of application/problem+json (RFC 9457). A handler
// that writes a 5xx or a 429 of its own after the deadline gets X-Should-Retry: false added, unless it set that field.
// What else a handler answers after the deadline is sent as it is, and a panic passes through. An answer that was begun before it
// and not ended is flushed and broken off by a panic with [http.ErrAbortHandler], unless it has the Content-Length that it was
// said to have: the handler most likely stopped halfway, and the client must not take a part for the whole.
//
// A Read of the request's body does not end with the context: the ReadTimeout of an http.Server is for that.
//
// The request has a correlation id, in the handler's request, its context and the answer's header: the one that came in,
// or a new one where there was none or it is not a plain token of at most 128 characters.
//
// The time is that of the whole answer. A route that streams for longer than Limit needs a Middleware of its own, and callers
// who tell it as much.
type Middleware struct {
	// Limit is the longest that a request is worked on, whatever its caller says. Zero means 30 seconds, negative
	// means no limit.
	Limit time.Duration

	// Least is the least useful time: with less than this the handler is not called. Zero means ten milliseconds,
	// negative that any time above zero will do. A Least above Limit counts as Limit.
	Least time.Duration

	// Trusted says whose header fields are believed: those about time, the attempt's number and the correlation id. Who
	// is not trusted cannot shorten a deadline, switch the retries of others off or name a request, and the handler
	// does not see these fields, so that a proxy does not pass them on. Those of a trusted caller stay as they came, until
	// [Announce] replaces them in what is sent on. Nil trusts everybody.
	Trusted func(*http.Request) bool
}

// Handler returns a handler that serves requests by next, within their deadlines.
func (m Middleware) Handler(next http.Handler) http.Handler {
	limit := cmp.Or(m.Limit, defaultLimit)
	if limit < 0 {
		limit = endless
	}
	least := min(max(cmp.Or(m.Least, defaultLeast), 1), limit)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived := time.Now()
		header := maps.Clone(r.Header) // the request that we were given is not ours to change
		if m.Trusted != nil && !m.Trusted(r) {
			for _, name := range believed {
				header.Del(name)
			}
		}
		served := &request{attempt: attemptNumber(header), correlation: correlationID(header[CorrelationHeader]...)}
		header.Set(CorrelationHeader, served.correlation)
		w.Header().Set(CorrelationHeader, served.correlation)

		ctx := context.WithValue(r.Context(), requestKey{}, served)
		left := allowed(header, arrived, limit)
		if outer, ok := ctx.Deadline(); ok {
			left = min(left, outer.Sub(arrived))
		}
		if left < least {
			refuse(w, fmt.Sprintf("The request has %v left. With less than %v it is not begun.", brief(max(left, 0)), least))
			return
		}
		a := &answer{ResponseWriter: w, request: served}
		if left < endless {
			a.until = arrived.Add(left)
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, a.until)
			defer cancel()
		}
		r = r.WithContext(ctx)
		r.Header = header
		defer served.over.Store(true) // after a panic too
		next.ServeHTTP(a.writer(), r)
		switch {
		case !a.late():
		case !a.begun:
			refuse(a, fmt.Sprintf("The request was not answered within the %v that it had.", brief(left)))
		case a.pending && r.Method != http.MethodHead:
			// Most likely the handler stopped halfway because its context ended. To return would be to say that this is
			// all, and the client would take a part for the whole. A client that has seen nothing of the answer must see
			// its header: on a kept connection net/http takes silence for one that was closed before the request, and
			// sends that again, at once and on each connection that it has.
			a.FlushError()
			panic(http.ErrAbortHandler)
		}
	})
}

// exceeded is the type of the problem: what it means and what to do.
const exceeded = "https://github.com/riprap-go/riprap/blob/main/docs/deadlines.md#deadline-exceeded"

// refuse writes the answer to a request whose time is over.
func refuse(w http.ResponseWriter, detail string) {
	h := w.Header()
	for _, name := range []string{ // what the handler wanted to say of an answer that did not come
		"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
		"Content-Range", "Etag", "Expires", "Last-Modified", "Trailer",
	} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set(ExceededHeader, "true")
	h.Set(shouldRetry, "false")
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{exceeded, "Deadline exceeded", http.StatusGatewayTimeout, detail})
	if err != nil {
		panic(err) // strings and a number
	}
	w.WriteHeader(http.StatusGatewayTimeout)
	w.Write(append(body, '\n')) // a shell is grateful
}

// brief cuts a duration to its first three digits. It is never rounded up: what is too little must not look like enough.
func brief(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Truncate(unit)
}
