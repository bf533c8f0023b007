package riphttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/riprap-go/riprap"
)

// Header fields of a service that honors keys. Stripe has the first one too.
const (
	replayedHeader  = "Idempotent-Replayed"
	retentionHeader = "Idempotency-Retention"
)

const (
	// defaultRetention is what services promise that publish nothing of it, or else nearly all of them.
	defaultRetention = 24 * time.Hour

	// A published retention beyond this was computed in a wrong unit and is not believed.
	longestRetention = 10 * 365 * 24 * time.Hour
)

// An outcome is what is known of the effect of a request that must not have it twice, while there is no answer.
type outcome struct {
	matters bool      // the method is not idempotent
	keyed   bool      // the service may know the request by its key
	lost    bool      // an attempt may have been processed and got no response
	open    bool      // the same, or it got a response that says nothing about it
	since   time.Time // when the first such attempt began
}

// attempted takes in how an attempt ended that failed and that began at a time.
func (o *outcome) attempted(began time.Time, resp *http.Response, unsent bool) {
	if !o.matters || unsent || resp != nil && refused(resp.StatusCode) {
		return
	}
	if !o.open {
		o.open, o.since = true, began
	}
	o.lost = o.lost || resp == nil
}

// refused reports whether a failure says that the request was turned away: by a limit, or for its size. A 408 does not, since
// some services send it when their handler takes too long, nor does the 409 of a request that is still running.
func refused(code int) bool {
	return 400 <= code && code < 500 && code != http.StatusRequestTimeout && code != http.StatusConflict
}

// untold reports whether the attempt at hand failed in a way that stands for a request that was not sent, and Base tells
// nothing of what it sent.
func (c *call) untold(failure error) bool {
	told := c.current != nil && c.current.wire != nil && c.current.wire.asked.Load()
	return c.resp == nil && !told && final(c.req, failure)
}

// forgotten reports whether the service may have forgotten the key at a time: then it would take the request for a new one.
func (c *call) forgotten(at time.Time) bool {
	if !c.outcome.keyed || !c.outcome.open {
		return false
	}
	kept := c.retention()
	// The clock that measures spans stands still while the machine sleeps, that of the service does not.
	passed := max(at.Sub(c.outcome.since), at.Round(0).Sub(c.outcome.since.Round(0)))
	return kept >= 0 && passed >= kept
}

// retention returns how long the service keeps a key, less than zero for as long as anybody asks.
func (c *call) retention() time.Duration {
	return cmp.Or(c.t.KeyRetention, time.Duration(c.destination.retention.Load()), defaultRetention)
}

// published takes in how long the service keeps keys, if the response to a request with one says so.
func (c *call) published(h http.Header) {
	if !c.outcome.keyed || len(h[retentionHeader]) == 0 {
		return
	}
	kept, ok := seconds(trim(h.Get(retentionHeader)))
	if !ok || kept > longestRetention {
		return
	}
	if d := &c.destination.retention; d.Load() != int64(kept) {
		d.Store(int64(kept))
	}
}

// unknown adds to the end of a call that its outcome is unknown, if it is. A response that the caller gets speaks for itself, but
// not for an attempt before it that got none.
func (c *call) unknown(stop, failure error) error {
	if o := &c.outcome; !o.lost && (!o.open || c.resp != nil) || errors.Is(stop, ErrOutcomeUnknown) {
		return stop
	}
	gaveUp, ok := stop.(*riprap.Error)
	switch {
	case ok && !errors.Is(failure, stop):
		gaveUp.Reason = fmt.Errorf("%w: %w", gaveUp.Reason, ErrOutcomeUnknown)
		return gaveUp
	case c.resp != nil: // a failure that stays is the service's word on the request
		return stop
	default:
		return c.op.Cancel(ErrOutcomeUnknown, stop)
	}
}

// replayed reports whether a response is the kept answer to an earlier send of the request: any further one gets it too.
func replayed(h http.Header) bool { return h.Get(replayedHeader) == "true" }
