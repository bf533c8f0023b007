package riphttp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
)

// granted returns when the receiver of an attempt that begins at the time now, in the context ctx, is to be done, zero for
// never. The bound that a Latency learned is left aside: it is what is usual until the header of an answer is there, and the
// receiver takes what it is told for the time of all its work, the body too. When that bound strikes, the receiver sees
// that its caller has left.
func (c *call) granted(ctx context.Context, now time.Time) time.Time {
	until := c.op.Deadline
	if bound := c.policy.AttemptTimeout; bound > 0 {
		until = earlier(until, now.Add(bound))
	}
	callers, _ := ctx.Deadline() // a hook's too
	return earlier(until, callers)
}

// earlier returns the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// announce tells the receiver of the attempt at hand when it is to be done and what it takes part in. It reports false if
// there is no time to tell of: the request must not be sent then.
func (c *call) announce(ctx context.Context, h http.Header) bool {
	now := time.Now() // a hook may have been slow
	left := time.Duration(math.MaxInt64)
	if !c.given.IsZero() {
		left = c.given.Sub(now)
	}
	if c.correlation != "" {
		h.Set(deadline.CorrelationHeader, c.correlation)
	}
	handed := deadline.Announce(ctx, h, now, left, c.op.Attempts)
	c.spent = time.Time{}
	if handed < math.MaxInt64 {
		c.spent = now.Add(handed)
	}
	c.correlation = h.Get(deadline.CorrelationHeader)
	return handed > 0
}

// tooLate reports whether what is left of the call after a wait from now on is too short for a useful attempt. Of an
// internal service's time something is kept back for the way.
func (c *call) tooLate(now time.Time, wait time.Duration) bool {
	if c.op.Deadline.IsZero() {
		return false
	}
	left := c.op.Deadline.Sub(now) - wait
	if c.internal {
		left -= deadline.Margin(left)
		return left < time.Millisecond || c.useless(left, now)
	}
	return left <= 0 || wait > 0 && c.useless(left, now)
}

// useless reports whether an attempt with so much time left is not worth making.
func (c *call) useless(left time.Duration, now time.Time) bool {
	p := c.policy
	if p.MinAttempt != 0 || p.Latency == nil {
		return left < p.MinAttempt
	}
	if left < p.Latency.P50() {
		// The median is that of the last attempt. Begin lets it forget what is old, or else a service of which none
		// was sent because it was slow once would never be called again.
		o := riprap.Operation{Policy: p}
		o.Begin(now)
	}
	return left < cmp.Or(p.Latency.P50(), defaultMinAttempt)
}

// overdue returns the failure that a response at the time now stands for. An internal service that says so, or whose time
// was over, has failed like one that did not answer within the attempt's bound. X-Should-Retry: false is meant for a caller
// whose own time is over, as that of the service is, and does not count then.
func (c *call) overdue(failure error, now time.Time) error {
	if !c.internal {
		return failure
	}
	if c.resp.Header.Get(deadline.ExceededHeader) != "true" && (c.spent.IsZero() || now.Before(c.spent)) {
		return failure
	}
	if refusesRetry(c.resp.Header) {
		c.excused = true
		failure = hinted(c.resp.Header, now, &StatusError{Code: c.resp.StatusCode})
	}
	return fmt.Errorf("%w: %w", failure, context.DeadlineExceeded)
}

// refusesRetry reports whether a service says that its failure is not to be tried again.
func refusesRetry(h http.Header) bool {
	retry, told := shouldRetry(h, "X-Should-Retry")
	return told && !retry
}
