package idempotency

import "context"

// An Outcome is what a handler says of its answer. Without a word the status decides: 401, 403, 408, 409, 425 and 429 mean NoEffect,
// a 5xx means what the Middleware says of errors, and all others are Final.
type Outcome int

const (
	Final    Outcome = iota + 1 // an answer like any other, a 5xx too: it is kept and replayed
	NoEffect                    // nothing happened: the answer is not kept, the key is free; a transaction is rolled back
	Unknown                     // something may have happened: the key is held until it is resolved; a transaction is rolled back
	NoStore                     // final, but for the first caller only: that there was an answer is kept, the answer is not
)

type runKey struct{}

// Declare says what the answer of the run means that ctx belongs to. The last call before the handler returns counts; the
// zero Outcome takes back what was said. Outside of a run it does nothing. It may be called by any goroutine.
//
// A handler that panics has declared nothing.
func Declare(ctx context.Context, o Outcome) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		r.declared.Store(int64(o))
	}
}

// FromContext returns the ID of the key that a handler's run is for, and whether there is one. There is one too where the
// handler runs without protection because of FailOpen.
func FromContext(ctx context.Context) (ID, bool) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.id, true
	}
	return ID{}, false
}

// ChildKey returns a key for a call that a handler makes further down, such as "charge": the same in every run of its own
// key, so that the service there does it once. Each call that a run makes needs a name of its own. Outside of a run it is "".
// See [ID.ChildKey].
func ChildKey(ctx context.Context, name string) string {
	id, ok := FromContext(ctx)
	if !ok {
		return ""
	}
	return id.ChildKey(name)
}
