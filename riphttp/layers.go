package riphttp

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

// ErrRetried: the request was not sent again because it is made for one that is a retry itself. Whoever sent that one tries
// again; if each layer did, their attempts would multiply. It is a reason in the *riprap.Error or the Done event, and comes
// only in the handlers of a deadline.Middleware.
var ErrRetried = errors.New("not tried again for a request that is a retry itself")

// learn takes the end of the attempt at hand for what it says of the service. A failure was met at the time now.
func (c *call) learn(ctx context.Context, now time.Time, failure error) {
	switch {
	case failure == nil && c.policy.Latency != nil:
		c.op.Observe(time.Now(), nil)
	case failure == nil:
	case c.hurried(ctx, now, failure):
		c.op.Observe(time.Time{}, errAborted) // no sample, nor is what Next is told of this attempt
		return
	case c.timedOut(failure) && !c.until.IsZero():
		c.op.Observe(c.until, failure) // however early the service saw that its time would not do
	default:
		c.op.Observe(now, failure)
	}
	if c.op.Attempts == 1 && (failure == nil || c.resp != nil || c.curable(failure)) { // else it is about the request
		c.destination.firsts.add(failure == nil)
	}
}

// hurried reports whether the attempt at hand failed for want of time that only this caller was short of. That says nothing
// about the service, and must not decide for others.
func (c *call) hurried(ctx context.Context, now time.Time, failure error) bool {
	told := c.timedOut(failure)
	if c.until.IsZero() || now.Before(c.until) && !told {
		return false
	}
	// A service goes by the time that it was given, which may be more than what was learned.
	return c.alone(ctx, c.until) || told && c.alone(ctx, c.given)
}

// alone reports whether only this request has an attempt end then: by its context, or by a Timeout or an AttemptTimeout of
// its own policy, shorter than that of the Transport.
func (c *call) alone(ctx context.Context, end time.Time) bool {
	if callers, ok := ctx.Deadline(); ok && !end.Before(callers) {
		return true
	}
	own, usual := c.policy, &c.destination.policy
	return shorter(own.Timeout, usual.Timeout) && end.Equal(c.op.Deadline) ||
		shorter(own.AttemptTimeout, usual.AttemptTimeout) && end.Equal(c.began.Add(own.AttemptTimeout))
}

// shorter compares two bounds, of which zero and less are none.
func shorter(a, b time.Duration) bool { return a > 0 && (b <= 0 || a < b) }

// timedOut reports whether the failure is a response that overdue takes for a timeout.
func (c *call) timedOut(failure error) bool {
	return c.internal && c.resp != nil && errors.Is(failure, context.DeadlineExceeded)
}

// giveUpAbove tells the layer above, through the deadline.Middleware that serves it, that to try again is useless: the service
// that failed says so, or it answers nearly nobody and there is no budget left for retries. A spent budget alone is no
// reason, for then most calls may still succeed.
func (c *call) giveUpAbove(ctx context.Context, now time.Time) {
	says := c.internal && c.resp != nil && !c.excused && refusesRetry(c.resp.Header)
	if says || c.policy.Budget.Left(now) == 0 && c.destination.firsts.rare() {
		deadline.GiveUp(ctx)
	}
}

// firsts is the share of first attempts that succeed, over about the last 32. The zero value has seen none.
type firsts struct {
	state atomic.Uint64 // the share as a float32 above, below it how many there were, at most memory
}

const (
	memory = 32
	few    = 0.1
	// More than this share is not kept apart, so that nobody writes while all is well.
	enough = 0.5
)

func (f *firsts) add(ok bool) {
	for {
		old := f.state.Load()
		share, n := math.Float32frombits(uint32(old>>32)), uint32(old)
		if ok && n == memory && share == enough {
			return
		}
		n = min(n+1, memory)
		if ok {
			share = min(share+(1-share)/float32(n), enough)
		} else {
			share -= share / float32(n)
		}
		if f.state.CompareAndSwap(old, uint64(math.Float32bits(share))<<32|uint64(n)) {
			return
		}
	}
}

// rare reports whether fewer than a tenth succeed.
func (f *firsts) rare() bool {
	state := f.state.Load()
	return uint32(state) > 0 && math.Float32frombits(uint32(state>>32)) < few
}
