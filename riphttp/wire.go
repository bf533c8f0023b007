package riphttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// A wire is what httptrace tells of an attempt.
type wire struct {
	asked  atomic.Bool  // for a connection, so that Base is one that tells
	reused atomic.Bool  // the connection
	due    atomic.Int32 // headers written once the one on the connection at hand is; zero while there is none
	sends  atomic.Int32 // headers written
}

// watch returns a context whose attempt tells w what goes over the wire.
func (w *wire) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.asked.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			w.reused.Store(info.Reused)
			w.due.Store(w.sends.Load() + 1)
		},
		WroteHeaders: func() { w.sends.Add(1) },
	})
}

// sends returns how often the request was written. Over HTTP/2 a response can be there before the wire tells that the
// header which it answers was written.
func (x *exchange) sends(answered bool) int {
	if x == nil || x.wire == nil {
		return 0
	}
	n := x.wire.sends.Load()
	if answered {
		n = max(n, x.wire.due.Load())
	}
	return int(n)
}

// provesUnsent reports whether the failure proves that the service has not processed the request.
func (x *exchange) provesUnsent(resp *http.Response, failure error) bool {
	if errors.Is(failure, ErrNotProcessed) {
		return true
	}
	if resp != nil {
		return false
	}
	if refusedStream(failure) {
		return true
	}
	if x != nil && x.wire != nil && x.wire.asked.Load() {
		if x.Err() != nil || errors.Is(failure, context.DeadlineExceeded) || errors.Is(failure, context.Canceled) {
			// Over HTTP/2 Base does not wait for a header that is being written, when the time that we gave it is over
			// or one that somebody between us has set.
			return x.wire.due.Load() == 0
		}
		// Header blocks are complete or not there. One that is not complete starts nothing.
		return x.wire.sends.Load() == 0
	}
	op, ok := errors.AsType[*net.OpError](failure)
	return ok && op.Op == "dial"
}

// sawStaleTimeout reports whether a response is the 408 that a server writes into an idle connection while the
// request is on its way, and the server surely has not had all of the request: its header is not complete, or its
// body's reader has not given everything yet. That nobody has told of the whole request being written proves nothing,
// since a quick server's response may overtake that news. Of a header HTTP/1, the one with connections to close, tells
// while its end is still in a buffer.
func (x *exchange) sawStaleTimeout(resp *http.Response, unread bool) bool {
	return resp.StatusCode == http.StatusRequestTimeout && resp.Close &&
		x != nil && x.wire != nil && x.wire.reused.Load() && (unread || x.wire.sends.Load() < x.wire.due.Load())
}

// refusedStream reports whether err is an HTTP/2 stream reset with REFUSED_STREAM, which guarantees that the request was
// not processed (RFC 9113 §8.7).
func refusedStream(err error) bool {
	const refused = 0x7
	stream, ok := errors.AsType[streamError](err)
	return ok && stream.Code == refused
}

// A streamError takes what net/http's own type for such a reset tells: that one is not exported, but its As method fills
// every struct of the same shape.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return fmt.Sprintf("HTTP/2 stream reset with code %d", e.Code) }
