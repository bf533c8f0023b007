package deadline

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Margin returns how much of the time left a caller keeps for the way there and back: 2 %, at least 5ms, at most 100ms.
// Of less than 5ms nothing remains.
func Margin(left time.Duration) time.Duration {
	return min(max(left/50, 5*time.Millisecond), 100*time.Millisecond)
}

// Announce writes into h, the header of a request about to be sent, what its receiver is told of the caller's time.
// Left is how long the caller waits for this attempt, and attempt counts the sends of the call from one. Ctx is that of
// the call: if it is the context of a handler behind a [Middleware], the attempt's number and the correlation id are
// handed on.
//
// The receiver is told the time left less its [Margin], rounded down to whole milliseconds, and Announce returns that.
// If less than a millisecond would remain it returns zero, and the request must not be sent: nobody would wait for the
// answer. If left is math.MaxInt64, the caller waits forever: it returns that and writes no time.
//
// A correlation id in h stays, and a new one is made where neither h nor ctx has one. Whatever else h said about these
// matters is replaced, so that a header may be used for one attempt after the other.
func Announce(ctx context.Context, h http.Header, now time.Time, left time.Duration, attempt int) (told time.Duration) {
	given := h[CorrelationHeader]
	for name := range h {
		if isOwn(name) {
			delete(h, name)
		}
	}
	if len(given) == 1 && plain(given[0]) {
		h[CorrelationHeader] = given
	} else {
		h.Set(CorrelationHeader, correlationID(append(slices.Clone(given), CorrelationID(ctx))...))
	}
	if attempt := max(attempt, Attempt(ctx)); attempt > 1 {
		h.Set(AttemptHeader, strconv.Itoa(attempt))
	}
	if left == endless {
		return endless
	}
	left = max(left, 0)
	told = max(left-Margin(left), 0).Truncate(time.Millisecond)
	if told == 0 {
		return 0
	}
	h.Set(TimeoutHeader, strconv.FormatInt(told.Milliseconds(), 10))
	if at := now.Add(told).UnixMilli(); at > 0 { // not by a clock that was never set
		h.Set(DeadlineHeader, strconv.FormatInt(at, 10))
	}
	return told
}

// isOwn reports whether Announce writes a field of this name. Net/http sends names as they are, x-request-attempt too.
func isOwn(name string) bool {
	for _, own := range [...]string{TimeoutHeader, DeadlineHeader, AttemptHeader, CorrelationHeader} {
		if len(name) == len(own) && strings.EqualFold(name, own) {
			return true
		}
	}
	return false
}
