package riphttp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

// ErrRetried: the request was not sent again because it is made for one that is a retry itself. Whoever sent that one tries
// again; if each layer did, their attempts would multiply. It is a reason in the *riprap.Error or the Done event, and comes
// only in the handlers of a deadline.Middleware.
var ErrRetried = errors.New("not tried again for a request that is a retry itself")

// announce tells the receiver of an attempt that must end at until how much time it has, and what it takes part in.
func (c *call) announce(ctx context.Context, h http.Header, until time.Time) {
	left := time.Duration(math.MaxInt64)
	now := time.Now()
	if !until.IsZero() {
		left = until.Sub(now)
	}
	if c.correlation != "" {
		h.Set(deadline.CorrelationHeader, c.correlation)
	}
	c.handed = deadline.Announce(ctx, h, now, left, c.op.Attempts)
	c.correlation = h.Get(deadline.CorrelationHeader) // the same on every attempt
}

// tooLate reports whether what is left of the call after a wait from now on is too short for a useful attempt. Of an internal
// service's time something is kept back for the way.
func (c *call) tooLate(now time.Time, wait time.Duration) bool {
	if c.op.Deadline.IsZero() {
		return false
	}
	left := c.op.Deadline.Sub(now) - wait
	if c.internal {
		return left-deadline.Margin(left) < max(c.minAttempt(), time.Millisecond)
	}
	return left <= 0 || wait > 0 && left < c.minAttempt()
}

// minAttempt returns the least time in which an attempt can be useful.
func (c *call) minAttempt() time.Duration {
	if c.policy.MinAttempt == 0 && c.policy.Latency != nil {
		return max(c.policy.Latency.P50(), defaultMinAttempt)
	}
	return c.policy.MinAttempt
}

// overtime returns the failure that a response stands for. When the time that an internal service was given is over, its
// failure is a timeout of the attempt: that it asks not to be tried again is meant for a caller whose own time is over too.
func (c *call) overtime(failure error) error {
	if c.internal && (c.resp.Header.Get(deadline.ExceededHeader) == "true" || time.Since(c.begun) >= c.handed) {
		return fmt.Errorf("%w: %w", &StatusError{Code: c.resp.StatusCode}, context.DeadlineExceeded)
	}
	return failure
}

// count keeps the account of first attempts.
func (c *call) count(ctx context.Context, failure error) {
	if c.op.Attempts > 1 {
		return
	}
	if callers, ok := ctx.Deadline(); ok && !c.until.Before(callers) && errors.Is(failure, context.DeadlineExceeded) {
		return // that a caller had little time says nothing about the service, and must not decide for others
	}
	c.destination.firsts.add(failure == nil)
}

// giveUpAbove tells the layer above, through the deadline.Middleware that serves it, that to try again is useless: the service
// that failed says so, or it answers nearly nobody and there is no budget left for retries. A spent budget alone is no
// reason, for then most calls may still succeed.
func (c *call) giveUpAbove(ctx context.Context, now time.Time, failure error) {
	useless := c.policy.Budget.Left(now) == 0 && c.destination.firsts.rare()
	if c.internal && c.resp != nil && !errors.Is(failure, context.DeadlineExceeded) {
		retry, told := shouldRetry(c.resp.Header, "X-Should-Retry")
		useless = useless || told && !retry
	}
	if useless {
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
