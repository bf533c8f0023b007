package keys

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/riprap-go/riprap/idempotency"
)

// shown is how many digits of an ID a table shows. Whoever names a key by fewer than all of its digits is told if that names
// two of them.
const shown = 12

// resolvable reports whether Resolve would end a key.
func resolvable(r *idempotency.Record) bool {
	return r.State == idempotency.StateUnknown || r.State == idempotency.StateInProgress && r.Lease <= 0
}

// stuck reports whether somebody has to resolve a key. One that runs again when its request comes again needs nobody.
func stuck(r *idempotency.Record) bool {
	return r.State == idempotency.StateUnknown || resolvable(r) && !r.Reexecute
}

// state is that of a key in two words.
func state(r *idempotency.Record) string {
	switch {
	case r.State == idempotency.StateUnknown:
		return "unknown"
	case stuck(r):
		return "lease over"
	case resolvable(r):
		return "runs again"
	case r.State == idempotency.StateInProgress:
		return "in progress"
	case r.Answer != nil:
		return fmt.Sprintf("completed %d", r.Answer.Status)
	default:
		return "completed"
	}
}

// meaning is what becomes of a request with the key.
func meaning(r *idempotency.Record) string {
	switch {
	case r.State == idempotency.StateCompleted && r.Retention <= 0:
		return "forgotten: the next request with the key runs"
	case r.State == idempotency.StateCompleted && r.Answer != nil && r.Answer.Tombstone:
		return "it was run; requests with the key are told so, since the answer was not kept"
	case r.State == idempotency.StateCompleted:
		return "it was run; requests with the key get the answer"
	case r.State == idempotency.StateUnknown:
		return "it was run, and nobody knows how far it came; to be resolved"
	case stuck(r):
		return "its run was lost, and nobody knows how far it came; to be resolved"
	case resolvable(r):
		return "its run was lost; the next request with the key runs"
	default:
		return "a run holds it"
	}
}

// left is what is left of a time.
func left(d time.Duration) string {
	if d <= 0 {
		return "over"
	}
	return span(d)
}

// kept is how long a key is kept, nothing for one that stays until it is resolved.
func kept(r *idempotency.Record) string {
	if stuck(r) {
		return ""
	}
	return left(r.Retention)
}

// span is a duration in its largest unit, of which there are at least two.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(0, d/time.Second))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
}

// age is how long ago a run began, by our clock, which may differ from that of the store.
func age(r *idempotency.Record) time.Duration { return max(0, time.Since(r.Begun)) }

// printable leaves out what would do something to a terminal: operations may come from anywhere.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if !unicode.IsGraphic(c) {
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// counted is a number with its word.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}
