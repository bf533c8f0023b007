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

// Where services of one's own are called, no bound is learned below this. Each service on the way keeps back a margin of
// five milliseconds at least and does not begin what has less than ten: a bound of three times a p99 of two milliseconds
// would be refused each time.
const leastLearned = 50 * time.Millisecond

// announce tells the receiver of the attempt at hand, whose context is ctx, how much time it has and what it takes part
// in. It reports false if there is no time to tell of: the request must not be sent then.
func (c *call) announce(ctx context.Context, h http.Header) bool {
	left := time.Duration(math.MaxInt64)
	now := time.Now() // a hook may have been slow
	if until, ok := ctx.Deadline(); ok {
		left = until.Sub(now)
	}
	if c.correlation != "" {
		h.Set(deadline.CorrelationHeader, c.correlation)
	}
	c.handed, c.spent = deadline.Announce(ctx, h, now, left, c.op.Attempts), time.Time{}
	if c.handed < math.MaxInt64 {
		c.spent = now.Add(c.handed)
	}
	c.correlation = h.Get(deadline.CorrelationHeader)
	return c.handed > 0
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
// was over, has failed like one that did not answer within the attempt's bound. So has one that fails in the last quarter of
// its time: where time runs out at the end of a chain, each service above fails a margin earlier than it would have to,
// and with failures like others the bound would never widen.
//
// X-Should-Retry: false is meant for a caller whose own time is over, as that of the service is, and does not count then.
func (c *call) overdue(failure error, now time.Time) error {
	if !c.internal {
		return failure
	}
	over := c.resp.Header.Get(deadline.ExceededHeader) == "true"
	nearly := false
	if !c.spent.IsZero() {
		over = over || !now.Before(c.spent)
		nearly = !now.Before(c.spent.Add(-c.handed / 4))
	}
	if !over && !nearly {
		return failure
	}
	if over && refusesRetry(c.resp.Header) {
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
