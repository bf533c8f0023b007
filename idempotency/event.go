package idempotency

// An Event is what became of a request with a key.
type Event struct {
	Kind      Kind
	ID        ID     // of the key; the zero one if it was refused before it had one
	Operation string // method and pattern
	Status    int    // of the answer; zero if there was none
	Err       error  // of the store, if it is about that
}

// A Kind is one of the things that become of a request.
type Kind int

const (
	Ran          Kind = iota + 1 // the handler ran, and its answer is kept
	Released                     // the handler ran without effect, and the key is free again
	Suspended                    // the handler ran, and what became of it is unknown: an operator has to resolve the key
	Replayed                     // an answer was replayed
	InFlight                     // an earlier request with the key is still running
	Held                         // the key is unknown
	Mismatched                   // the key came with another request
	Refused                      // key, scope or body were not as they must be
	Fenced                       // the run lost its key to another one, and its answer was thrown away
	Unavailable                  // the store failed before the handler ran; with FailOpen it ran without protection
	Unrecorded                   // the handler ran, and its answer could not be kept
	NotCommitted                 // the handler ran, and what it wrote was not committed
)
