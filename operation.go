package riprap

import (
	"context"
	"errors"
	"math"
	"time"
)

// An Operation is one logical call on its way through its attempts. It reads no clock, never sleeps and starts
// nothing: [Do], riphttp.Transport, a queue consumer and a simulation all drive it, each in its own time.
//
//	for o := (riprap.Operation{Policy: p}); ; {
//		until := o.Begin(now)    // make the attempt, bounded by until
//		wait, stop := o.Next(now, err)
//		if wait == 0 {
//			return stop          // over
//		}
//		...                      // wait, or hand the message back to its queue until then
//	}
//
// A consumer that re-schedules a message stores Attempts, Wait and Deadline with it and fills them in again when the
// message returns. Timeout and Trace of the Policy are the driver's to heed: an Operation looks only at Deadline and
// calls no hook. An Operation is used by one goroutine at a time.
type Operation struct {
	Policy   *Policy       // nil means the zero Policy
	Deadline time.Time     // when the whole operation must be over; zero means never
	Attempts int           // attempts begun so far
	Wait     time.Duration // the wait before the coming attempt
	Asked    time.Duration // what the service asked for with the last failure; Next sets it

	begun, until time.Time // of the attempt at hand, for the policy's Latency; begun is zero once it was told

	reason error // why riprap gave up, nil if it did not
	held   hold  // the retry that Next granted and Begin has not spent
}

// Begin starts an attempt at the time now. It counts the attempt and spends the retry that [Operation.Next] was
// granted. It returns when the attempt must end: AttemptTimeout from now, or what Latency allows, or Deadline, whichever
// comes first, and the zero Time if there is none. Without AttemptTimeout and Latency now is not looked at.
func (o *Operation) Begin(now time.Time) (until time.Time) {
	o.held = hold{}
	o.Attempts++
	o.begun, o.until = now, o.policy().until(now, o.Deadline)
	return o.until
}

// Observe tells the policy's Latency how the attempt at hand ended, which was over at the time now. A success is a sample,
// and so is a timeout, whether of the attempt's bound or, as context.DeadlineExceeded in err, of one within. Other errors
// are not. [Operation.Next] does so itself. A driver calls Observe if it knows the end of an attempt before it asks for the
// verdict, or ends with Cancel although the caller is still there. A second call for the same attempt does nothing.
func (o *Operation) Observe(now time.Time, err error) {
	latency, begun := o.policy().Latency, o.begun
	o.begun = time.Time{}
	switch {
	case latency == nil || begun.IsZero():
	case err == nil:
		latency.record(now.Sub(begun))
	case !o.until.IsZero() && !now.Before(o.until), errors.Is(err, context.DeadlineExceeded):
		latency.recordTimeout(now.Sub(begun))
	}
}

// Next judges how an attempt ended that was over at the time now. A wait above zero means: try again after it. It is
// never zero otherwise, so it is the verdict: with a wait of zero the operation is over, and stop is nil after a
// success, the error itself if no retry can cure it, and else an *[Error] that says why riprap gave up. Marks of
// [Permanent] and [After] are consumed: stop does not show them to an outer loop.
//
// Whether the caller is still there is for the driver to ask, before Next, of the caller's context: the error of an
// attempt does not tell. If the caller is gone, call [Operation.Cancel] instead.
func (o *Operation) Next(now time.Time, err error) (wait time.Duration, stop error) {
	o.giveBack() // granted before, and not begun
	o.Observe(now, err)
	p := o.policy()
	if err == nil {
		if o.Attempts == 1 && p.Budget != nil {
			p.Budget.deposit(instant(now))
		}
		return 0, nil
	}
	m, err := unmark(err)
	o.Asked = m.wait
	if m.permanent || !p.retryable(err) {
		return 0, err
	}
	if limit := p.maxAttempts(); limit > 0 && o.Attempts >= limit {
		return 0, o.giveUp(ErrAttempts, err)
	}
	if limit := p.maxWait(); limit > 0 && o.Asked > limit {
		return 0, o.giveUp(ErrWait, err)
	}
	wait = p.Backoff.Delay(o.Attempts, o.Wait, p.random())
	if o.Asked > 0 {
		wait = max(wait, stretch(o.Asked, p.random()))
	}
	if !o.Deadline.IsZero() {
		left := o.Deadline.Sub(now)
		if left <= wait || left-wait < p.minAttempt() {
			return 0, o.giveUp(ErrDeadline, err)
		}
	}
	// The budget comes last: a retry that will not happen costs nothing.
	if !p.Budget.withdraw(now, &o.held) {
		return 0, o.giveUp(ErrBudget, err)
	}
	o.Wait = wait
	return wait, nil
}

// Cancel ends the operation because its caller is gone, instead of Begin or Next. A retry that was granted and not
// yet begun goes back to the budget. Cause says why the caller left (as context.Cause does); last is how the last
// attempt ended, nil if there was none. The result is an *[Error] with both.
func (o *Operation) Cancel(cause, last error) error {
	o.giveBack()
	m, last := unmark(last)
	o.Asked = m.wait
	return o.giveUp(cause, last)
}

// giveUp returns the error for an operation that ended without success for a reason.
func (o *Operation) giveUp(reason, err error) *Error {
	o.reason = reason
	return &Error{Attempts: o.Attempts, Wait: o.Asked, Reason: reason, Err: err}
}

// giveBack returns a retry that was granted and not begun.
func (o *Operation) giveBack() {
	if o.held.levels > 0 {
		o.policy().Budget.giveBack(&o.held)
	}
}

func (o *Operation) policy() *Policy {
	if o.Policy == nil {
		return &zero
	}
	return o.Policy
}

// event describes the operation as it stands, after a failure or at its end.
func (o *Operation) event(err error) Event {
	if gaveUp, ok := err.(*Error); ok && o.reason != nil {
		err = gaveUp.Err
	}
	_, err = unmark(err)
	return Event{Attempts: o.Attempts, Err: err, Reason: o.reason, Wait: o.Wait, Asked: o.Asked}
}

// stretch adds up to a fifth to what a service asked for. Without it, all clients that were told "5" return together.
func stretch(asked time.Duration, u float64) time.Duration {
	if !(u >= 0 && u <= 1) { // also NaN
		u = 0.5
	}
	extra := time.Duration(float64(asked) / 5 * u)
	if asked > math.MaxInt64-extra {
		return math.MaxInt64
	}
	return asked + extra
}
