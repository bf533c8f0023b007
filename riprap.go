// Package riprap decides when, how often, for how long and for which operations a failed call is tried again.
//
// A [Policy] is plain data, and its zero value is ready to use:
//
//	err := riprap.Do(ctx, nil, func(ctx context.Context) error {
//		return send(ctx, message)
//	})
//
// [Do] runs an operation under a Policy. [Operation] is the same decision without the running: it reads no clock,
// never sleeps and starts nothing, so that a queue consumer, a simulation or an HTTP transport can drive it. Package
// riphttp is such a driver.
//
// Three rules hold everywhere. Attempts are counted with the first try: three attempts are one call and two
// retries. What a service asks for is a minimum: random time is added to it and never taken away. And a retry that
// cannot pay off is not made: riprap does not sleep towards a deadline that the next attempt could not meet.
//
// Retries help one caller and hurt the service. Share one [Budget] among all calls to a service, so that retries
// fade to nearly nothing while it is down, however many callers there are. And an attempt without a bound waits for as
// long as the service hangs: set AttemptTimeout, and let a [Latency] follow what is usual.
package riprap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	defaultMaxAttempts = 4
	defaultMaxWait     = time.Minute
)

// A Policy says when, how often and for how long an operation is tried again. It is plain data: copy one and change
// a field. A Policy may be used by many goroutines at once as long as nobody changes it.
//
// The zero Policy and a nil *Policy are ready to use. For every limit zero means the runner's default, given beside
// each field for [Do] and for package riphttp, and a negative value means none.
type Policy struct {
	// MaxAttempts counts the first try too: one means never again. Zero means four, negative means no limit.
	MaxAttempts int

	// Timeout bounds the operation with its waits. Zero means none in Do and 30 seconds in riphttp, where it ends
	// when the response's header is there.
	Timeout time.Duration

	// AttemptTimeout bounds each attempt. Zero means none in Do and 10 seconds in riphttp, where it ends when the
	// response's header is there.
	AttemptTimeout time.Duration

	// MinAttempt is the least time in which an attempt can be useful. No retry is made if less would be left for it.
	// Zero means the median once Latency is armed. Before, and without a Latency, it means that any time is enough in Do,
	// and 10 milliseconds in riphttp.
	MinAttempt time.Duration

	// Latency, if set, lets the bound of each attempt follow what is usual; AttemptTimeout is its ceiling. Share one among
	// the calls that take about the same time, with one ceiling: an attempt that a shorter one cuts off counts as a timeout
	// for all.
	Latency *Latency

	// Backoff gives the waits between attempts. Its zero value is full jitter over a half second that doubles up to
	// ten seconds.
	Backoff Backoff

	// MaxWait is the longest wait that a service may ask for. When it asks for more, the operation ends at once with
	// ErrWait: trying earlier than asked would be wrong, and sleeping for an hour would surprise. Zero means a minute,
	// negative means no limit.
	MaxWait time.Duration

	// Budget limits the share of retries over all calls. Share one per service called. Nil grants every retry in Do;
	// riphttp keeps a budget for each destination.
	Budget *Budget

	// Retryable reports whether another attempt may cure an error. Nil means that all errors but those marked
	// Permanent and an inner loop's *Error may. Permanent errors end the operation whatever Retryable says. In riphttp
	// leave it nil, or let it know *riphttp.StatusError too: the Judge of the Transport decides about responses there,
	// and Transient would end a call at the first bad status.
	Retryable func(error) bool

	// Trace is told what happens. Nil tells nobody.
	Trace *Trace

	// Rand returns uniform random numbers in [0,1) for the jitter. Nil means math/rand/v2. It must be safe for
	// concurrent use if the Policy is.
	Rand func() float64
}

// zero stands in for a nil *Policy.
var zero Policy

// Do calls op until it succeeds, fails in a way that no retry can cure, or the Policy p ends it. A nil p is the zero
// Policy.
//
// The context given to op carries the attempt's deadline. It is cancelled when op returns, so op must not leave
// anything behind that needs it. While the caller's own deadline comes first, the context is the caller's: whose
// time ran out stays clear.
//
// An error that is not worth a retry comes back as it came. When riprap gave up, the result is an *[Error] with the
// last failure and the reason; errors.Is and errors.As find both. When ctx is done, op is not called any more, a wait
// ends at once, and the reason is the context's error and its cause.
func Do(ctx context.Context, p *Policy, op func(context.Context) error) error {
	if p == nil {
		p = &zero
	}
	// With nobody to tell, a first attempt that succeeds costs a call and its bound, and one look at the clock for a
	// budget, two for a latency.
	if p.Trace != nil || p.looksAtClock() || ctx.Err() != nil {
		return timed(ctx, p, op)
	}
	if err := op(ctx); err != nil {
		return run(ctx, Operation{Policy: p, Attempts: 1}, time.Time{}, op, err)
	}
	if p.Budget != nil {
		p.Budget.deposit(instantNow())
	}
	return nil
}

// timed is Do for a Policy with a bound or somebody to tell, and for a caller who has left. It stands apart so that Do
// without these needs no room for times.
func timed(ctx context.Context, p *Policy, op func(context.Context) error) error {
	var now time.Time
	if p.looksAtClock() {
		now = time.Now()
	}
	deadline := p.deadline(now)
	if p.Trace != nil || ctx.Err() != nil {
		return run(ctx, Operation{Policy: p, Deadline: deadline}, now, op, nil)
	}
	until := p.until(now, deadline)
	if err := bounded(ctx, until, op); err != nil {
		return run(ctx, Operation{Policy: p, Deadline: deadline, Attempts: 1, begun: now, until: until}, now, op, err)
	}
	if p.Budget == nil && p.Latency == nil {
		return nil
	}
	t := instantNow()
	if p.Latency != nil {
		p.Latency.record(time.Duration(t - instant(now)))
	}
	if p.Budget != nil {
		p.Budget.deposit(t)
	}
	return nil
}

// looksAtClock reports whether it matters when an attempt begins.
func (p *Policy) looksAtClock() bool {
	return p.Timeout > 0 || p.AttemptTimeout > 0 || p.Latency != nil
}

// deadline returns when an operation that begins at the time now must be over, the zero Time for never.
func (p *Policy) deadline(now time.Time) (deadline time.Time) {
	if p.Timeout > 0 {
		deadline = now.Add(p.Timeout)
	}
	return deadline
}

// until returns when an attempt that begins at the time now must end, the zero Time for never.
func (p *Policy) until(now, deadline time.Time) time.Time {
	bound := p.AttemptTimeout
	if p.Latency != nil {
		bound = p.Latency.bound(now, bound)
	}
	if bound > 0 {
		return earlier(deadline, now.Add(bound))
	}
	return deadline
}

// DoValue is [Do] for an operation that returns a value. With an error comes the value of the last attempt.
func DoValue[T any](ctx context.Context, p *Policy, op func(context.Context) (T, error)) (T, error) {
	var value T
	err := Do(ctx, p, func(ctx context.Context) (err error) {
		value, err = op(ctx)
		return err
	})
	return value, err
}

// errAborted is the reason in the Done event of an operation that did not return.
var errAborted = errors.New("the operation panicked or ended its goroutine")

// run drives an Operation in real time from now on. If it has begun, its first attempt is over and ended with err.
func run(ctx context.Context, o Operation, now time.Time, op func(context.Context) error, err error) (stop error) {
	d := driver{Operation: o, now: now, err: err}
	returned := false
	defer func() { // runs also when op or a hook panics or calls runtime.Goexit
		d.giveBack()
		if d.timer != nil {
			d.timer.Stop()
		}
		if !returned {
			stop = d.giveUp(errAborted, d.err)
		}
		d.Policy.Trace.done(ctx, d.event(stop))
	}()
	stop = d.loop(ctx, op)
	returned = true
	return stop
}

// A driver carries an Operation through its attempts.
type driver struct {
	Operation
	now   time.Time   // as far as anybody asks
	err   error       // how the last attempt ended
	timer *time.Timer // one for all waits, from the first
}

func (d *driver) loop(ctx context.Context, op func(context.Context) error) error {
	callers, _ := ctx.Deadline()
	d.Deadline = earlier(d.Deadline, callers)
	for begun := d.Attempts > 0; ; begun = false {
		if !begun {
			if ctx.Err() != nil {
				return d.Cancel(cause(ctx), d.err)
			}
			until := d.Begin(d.now)
			d.err = bounded(d.Policy.Trace.attempt(ctx, Event{Attempts: d.Attempts}), until, op)
		}
		if d.err != nil && ctx.Err() != nil {
			return d.Cancel(cause(ctx), d.err)
		}
		if d.err != nil || d.Policy.Budget != nil || d.Policy.Latency != nil {
			d.now = time.Now()
		}
		wait, stop := d.Next(d.now, d.err)
		if wait == 0 {
			return stop
		}
		d.Policy.Trace.retry(ctx, d.event(d.err))
		if d.timer == nil {
			d.timer = time.NewTimer(wait)
		} else {
			d.timer.Reset(wait)
		}
		select {
		case <-d.timer.C:
		case <-ctx.Done():
		}
		if d.Policy.AttemptTimeout > 0 || d.Policy.Latency != nil || !d.Deadline.IsZero() {
			d.now = time.Now()
		}
		if d.late(ctx) {
			return d.Cancel(ErrDeadline, d.err)
		}
	}
}

// late reports whether the wait took until the deadline: a hook was slow, or the machine slept. The caller's own
// deadline is for the caller's context to tell.
func (d *driver) late(ctx context.Context) bool {
	return !d.Deadline.IsZero() && !d.now.Before(d.Deadline) && ctx.Err() == nil
}

// bounded runs op in a context that ends at until, the zero Time for never. Only a bound that is strictly earlier than
// the context's own is armed: when the caller's deadline passes, the caller's context says so.
func bounded(ctx context.Context, until time.Time, op func(context.Context) error) error {
	if until.IsZero() {
		return op(ctx)
	}
	if callers, ok := ctx.Deadline(); ok && !until.Before(callers) {
		return op(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return op(ctx)
}

// cause returns why ctx is done: its cause, joined to its error unless the cause says as much itself.
func cause(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// earlier returns the earlier of two times, of which the zero Time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (p *Policy) random() float64 {
	if p.Rand != nil {
		return p.Rand()
	}
	return rand.Float64()
}

func (p *Policy) retryable(err error) bool {
	if p.Retryable != nil {
		return p.Retryable(err)
	}
	// An inner loop has already made its attempts. To repeat them here would multiply the calls.
	_, inner := errors.AsType[*Error](err)
	return !inner
}

func (p *Policy) minAttempt() time.Duration {
	if p.MinAttempt == 0 && p.Latency != nil {
		return p.Latency.P50()
	}
	return p.MinAttempt
}

func (p *Policy) maxAttempts() int       { return cmp.Or(p.MaxAttempts, defaultMaxAttempts) }
func (p *Policy) maxWait() time.Duration { return cmp.Or(p.MaxWait, defaultMaxWait) }
