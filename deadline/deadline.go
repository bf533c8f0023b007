// Package deadline carries the time that a request has left from service to service, so that none works on an answer
// that its caller no longer waits for.
//
// The server's half is [Middleware]. It reads how long the caller waits, ends the request's context then, and refuses
// what comes too late:
//
//	http.ListenAndServe(addr, deadline.Middleware{Limit: 5 * time.Second}.Handler(mux))
//
// A handler passes that context on to whatever it calls, and asks [Left] before it begins something that takes long.
// The client's half is [Announce], which writes what the next service is told. It is for the authors of transports:
// riphttp.Transport does it for the services that its Internal names.
//
// # What is on the wire
//
// [TimeoutHeader] says how many milliseconds are left, and it is the truth, because it means the same on every clock.
// [DeadlineHeader] says when they are over; clocks differ, so it only takes away, and no more than the time that a
// request may have spent on its way. What gRPC (grpc-timeout) and Envoy (x-envoy-expected-rq-timeout-ms) tell is read
// too, and the smallest of all counts. A value that cannot be read counts as absent: it never means "no time" and
// never "endless".
//
// # Retries that multiply
//
// Three attempts on each of three edges are 27 calls at the last service. Two things stop that. On the way down a
// request that is a retry, or serves one, says so in [AttemptHeader]; the handler's context knows it ([Retried]), and
// who calls in that context does not try again. On the way up a service for which trying again is useless ([GiveUp],
// or a deadline that has passed) says X-Should-Retry: false beside its failure.
//
// All functions may be called by many goroutines at once.
package deadline

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// The header fields by which services tell each other of a request's time, its number and its name.
const (
	TimeoutHeader     = "X-Request-Timeout-Ms" // milliseconds left, a whole number above zero
	DeadlineHeader    = "X-Request-Deadline"   // when they are over, in Unix milliseconds
	CorrelationHeader = "X-Correlation-Id"     // the same on all requests that serve one
	AttemptHeader     = "X-Request-Attempt"    // 2 for the first retry; absent on a first attempt
	ExceededHeader    = "X-Deadline-Exceeded"  // "true" on the 504 of a Middleware
)

// shouldRetry is the field by which a server says what its failure means for a retry.
const shouldRetry = "X-Should-Retry"

// endless is the time left where nothing bounds it.
const endless time.Duration = math.MaxInt64

// A request is what a Middleware knows of the one being served.
type request struct {
	attempt     int
	correlation string
	gaveUp      atomic.Bool
	over        atomic.Bool // the handler has returned, so that whoever waited for it tries again no more
}

type requestKey struct{}

// serving returns the request that ctx belongs to, an empty one outside a Middleware.
func serving(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return new(request)
}

// Left returns the time until ctx's deadline, and math.MaxInt64 if it has none. Once the deadline has passed, or ctx
// was canceled, it is zero or less. A handler that had to wait for its turn asks again before it begins.
func Left(ctx context.Context) time.Duration {
	left := endless
	if until, ok := ctx.Deadline(); ok {
		left = time.Until(until)
	}
	if ctx.Err() != nil {
		return min(left, 0)
	}
	return left
}

// Retried reports whether the request being served is itself a retry, or serves one. Calls made for it are not to be
// tried again: whoever made the retry does that. It is false outside a [Middleware], and for work that goes on after the
// handler has returned, which nobody above tries again.
func Retried(ctx context.Context) bool { return Attempt(ctx) > 1 }

// Attempt returns the number that the request being served came with, which [Announce] hands on. It is zero if there
// was none, outside a [Middleware], and after the handler has returned.
func Attempt(ctx context.Context) int {
	r := serving(ctx)
	if r.over.Load() {
		return 0
	}
	return r.attempt
}

// GiveUp says that trying the request being served again is useless, because what it needs is down for more than a
// moment. If the answer is a 5xx or a 429 and has not been begun, the [Middleware] adds X-Should-Retry: false.
// Whatever the handler itself puts into that field stands. Outside a Middleware, and after the handler has returned,
// GiveUp does nothing.
func GiveUp(ctx context.Context) { serving(ctx).gaveUp.Store(true) }

// CorrelationID returns the name under which the request being served, and all that is called for it, can be found in
// logs. It is empty outside a [Middleware].
func CorrelationID(ctx context.Context) string { return serving(ctx).correlation }
