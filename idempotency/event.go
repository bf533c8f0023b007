package idempotency

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
)

// An Event is what became of a request with a key.
type Event struct {
	Kind      Kind   // what became of it
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
	Unresolved                   // the key is unknown
	Mismatched                   // the key came with another request
	Refused                      // key, scope or body were not as they must be, or MayReplay said no
	Fenced                       // the run lost its key to another one, and its answer was thrown away
	Unavailable                  // the store failed before the handler ran; with FailOpen it ran without protection
	Unrecorded                   // the handler ran, and its answer could not be kept
	NotCommitted                 // the handler ran, and what it wrote was not committed
)

var kindNames = [...]string{
	Ran: "ran", Released: "released", Suspended: "suspended", Replayed: "replayed", InFlight: "in flight", Unresolved: "unresolved",
	Mismatched: "mismatched", Refused: "refused", Fenced: "fenced", Unavailable: "unavailable", Unrecorded: "unrecorded",
	NotCommitted: "not committed",
}

// String returns the name in lower case.
func (k Kind) String() string {
	if k < Ran || int(k) >= len(kindNames) {
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
	return kindNames[k]
}

// Log returns a function for Observe that warns of what needs somebody's attention: keys that are unknown, runs that lost
// theirs, a store that fails. It names keys by their ID only. Nil means slog.Default at the time of the event.
func Log(l *slog.Logger) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		switch e.Kind {
		case Suspended, Unresolved, Fenced, Unavailable, Unrecorded, NotCommitted:
		default:
			return
		}
		attrs := []slog.Attr{slog.String("kind", e.Kind.String()), slog.String("id", e.ID.String()), slog.String("operation", e.Operation)}
		if e.Status != 0 {
			attrs = append(attrs, slog.Int("status", e.Status))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("err", e.Err))
		}
		cmp.Or(l, slog.Default()).LogAttrs(ctx, slog.LevelWarn, "idempotency key needs attention", attrs...)
	}
}
