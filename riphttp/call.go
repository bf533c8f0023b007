package riphttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
)

const (
	// A discarded body is read to its end if that costs little: then the connection can be used again.
	drainBytes = 256 << 10
	drainTime  = 50 * time.Millisecond

	// An upload above this size that the connection does not survive is sent once more and no oftener: the server may
	// have refused it with a 413 that the reset overtook.
	largeUpload = 1 << 20
)

var (
	errAborted    = errors.New("the round trip panicked or ended its goroutine")
	errNoResponse = errors.New("the base transport returned neither a response nor an error")
)

// A call is one request on its way through its attempts.
type call struct {
	t           *Transport
	policy      *riprap.Policy
	op          riprap.Operation
	destination *destination
	req         *http.Request // the caller's, or a copy with a key
	body        replay
	repeatable  bool // what method and key allow; the body has its own say
	outcome     outcome
	timer       *time.Timer    // one for all waits, from the first
	sends       int            // requests written in past attempts, as far as somebody counts
	broken      int            // large uploads that the connection did not survive
	current     *exchange      // the attempt at hand
	began       time.Time      // when it did
	until       time.Time      // when it must be over; zero means whenever
	resp        *http.Response // of the attempt at hand, as long as it is ours to close
	told        bool           // that the call is over, or its answer's body will tell
	internal    bool           // the service is told what package deadline tells
	given       time.Time      // when it is to be done with the attempt at hand; zero means whenever
	spent       time.Time      // the same, less what is kept back for the way
	excused     bool           // its X-Should-Retry: false does not count, since that time was over
	correlation string         // the id that it was told, the same on every attempt
}

func (c *call) run(ctx context.Context, req *http.Request) (*http.Response, error) {
	var now time.Time
	if c.policy.Timeout > 0 || c.policy.AttemptTimeout > 0 || c.policy.Latency != nil || c.internal {
		now = time.Now()
	}
	c.op.Deadline, _ = ctx.Deadline()
	if c.policy.Timeout > 0 {
		c.op.Deadline = earlier(c.op.Deadline, now.Add(c.policy.Timeout))
	}
	c.req = c.t.keyed(req)
	c.repeatable = c.t.repeatable(c.req)
	if !isIdempotent(c.req.Method) {
		c.outcome = outcome{matters: true, keyed: hasKey(c.req)}
		if c.outcome.keyed && now.IsZero() {
			now = time.Now()
		}
	}
	if err := c.body.prepare(ctx, c.op.Deadline, c.req, c.t.maxReplay()); err != nil {
		c.tell(ctx, err, nil, 0)
		return nil, err
	}

	var failure error // of the attempt before
	for {
		if cause := gone(ctx, req); cause != nil {
			c.body.close()
			return nil, c.giveUp(ctx, cause, failure)
		}
		body, err := c.body.next()
		if err != nil {
			return nil, c.giveUp(ctx, fmt.Errorf("the request body cannot be read again: %w", err), failure)
		}
		if c.op.Attempts > 0 || c.body.made { // to wait and to get the body takes time, more so if the machine slept
			now = time.Now()
		}
		if (c.op.Attempts > 0 || c.body.made || c.internal) && c.tooLate(now, 0) && gone(ctx, req) == nil {
			c.body.close()
			return nil, c.giveUp(ctx, riprap.ErrDeadline, failure)
		}
		if c.forgotten(now) { // the machine slept
			c.body.close()
			return nil, c.giveUp(ctx, ErrOutcomeUnknown, failure)
		}
		sent := c.begin(ctx, now, body)
		if sent == nil { // a hook took the time, or the bound of an attempt leaves none
			c.body.close()
			c.current.end()
			return nil, c.giveUp(ctx, cmp.Or(gone(ctx, req), riprap.ErrDeadline), failure)
		}
		failure = c.attempt(sent, now)
		if failure == nil {
			c.learn(ctx, time.Time{}, nil)
			return c.answer(ctx), nil
		}
		now = time.Now()
		wait, stop := c.next(ctx, now, failure)
		if wait == 0 {
			stop = c.unknown(stop, failure)
			c.giveUpAbove(ctx, now)
		}
		switch {
		case wait > 0:
			c.pause(ctx, wait, failure)
		case c.resp != nil:
			c.report(ctx, stop, failure)
			c.current.carry(c.resp)
			return c.resp, nil
		default:
			c.report(ctx, stop, failure)
			c.current.end()
			return nil, stop
		}
	}
}

// attempt sends the request once and judges the response. A nil failure is an answer.
func (c *call) attempt(req *http.Request, now time.Time) error {
	err := c.send(req)
	c.sends += c.current.sends(err == nil)
	var failure error
	if err == nil {
		failure = c.t.verdict(c.resp)
		if c.resp.Body == nil { // Judge took it away
			c.resp.Body = http.NoBody
		}
		if failure != nil {
			failure = c.overdue(failure, time.Now())
		}
		if failure != nil && c.current.sawStaleTimeout(c.resp, c.body.unread(c.req.ContentLength)) {
			failure = fmt.Errorf("%w: %w", ErrNotProcessed, failure)
		}
	}
	if c.current.stopped() {
		// The bound has struck: before the header came, or while Judge read in the body.
		c.closeResponse()
		return fmt.Errorf("no response within %v: %w", c.current.until.Sub(now), context.DeadlineExceeded)
	}
	if err == nil {
		return failure
	}
	if failed := c.body.failed(); failed != nil {
		return riprap.Permanent(fmt.Errorf("reading the request body: %w", failed))
	}
	if final(c.req, err) {
		return riprap.Permanent(err)
	}
	return err
}

// send gives the request to Base, and makes good what a careless Base forgets. Without an error c.resp is the response.
func (c *call) send(req *http.Request) error {
	c.body.ready = nil // from here on Base closes it
	resp, err := c.t.sender().RoundTrip(req)
	if err != nil {
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return err
	}
	if resp == nil {
		return riprap.Permanent(errNoResponse)
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	resp.Request = c.req
	c.resp = resp
	c.published(resp.Header)
	return nil
}

func (c *call) closeResponse() {
	if c.resp != nil {
		c.resp.Body.Close()
		c.resp = nil
	}
}

// begin starts an attempt and returns the request to send, nil if there is no time left to tell its receiver of.
func (c *call) begin(ctx context.Context, now time.Time, body io.ReadCloser) *http.Request {
	first := c.op.Attempts == 0
	until := c.op.Begin(now)
	c.began, c.until, c.excused = now, until, false
	trace := c.policy.Trace
	if trace != nil && trace.Attempt != nil {
		e := riprap.Event{Name: c.destination.name, Attempts: c.op.Attempts, Sends: c.sends}
		if traced := trace.Attempt(ctx, e); traced != nil {
			ctx = traced
		}
	}
	if c.internal {
		c.given = c.granted(ctx, now)
	}
	if callers, ok := ctx.Deadline(); ok && !until.Before(callers) {
		until = time.Time{} // when the caller's deadline passes, the caller's context says so
	}
	silence := c.t.readTimeout()
	observed := trace != nil || !c.repeatable || c.outcome.matters || c.body.large // where it counts what went out
	c.current = nil
	if until.IsZero() && silence == 0 && !observed {
		if first && !c.body.made && !c.internal {
			return c.req
		}
	} else {
		var w *wire
		if observed {
			w = new(wire)
			ctx = w.watch(ctx)
		}
		c.current = newExchange(ctx, until, silence, c.req)
		c.current.wire = w
		ctx = &c.current.bound
	}
	req := c.req.WithContext(ctx)
	req.Body, req.GetBody = body, c.body.get
	if !c.repeatable {
		// On HTTP/2 a GetBody makes net/http repeat any request, also after a reset that proves nothing. Whether it may
		// is the caller's to say, who may have set one.
		req.GetBody = c.req.GetBody
	}
	if !first || c.internal {
		req.Header = c.req.Header.Clone() // whatever Base did to the headers of the attempt before
	}
	if c.internal && !c.announce(ctx, req.Header) {
		return nil
	}
	return req
}

// next decides what follows a failure: a wait above zero and another attempt, or the end.
func (c *call) next(ctx context.Context, now time.Time, failure error) (time.Duration, error) {
	unsent := c.current.provesUnsent(c.resp, failure)
	if c.resp == nil && !unsent && c.body.large && !errors.Is(failure, context.DeadlineExceeded) {
		c.broken++
	}
	c.outcome.attempted(c.began, c.resp, unsent || c.untold(failure))
	unsafe := c.unsafe(unsent)
	if cause := gone(ctx, c.req); cause != nil {
		if unsafe == ErrOutcomeUnknown {
			cause = fmt.Errorf("%w: %w", cause, unsafe)
		}
		return 0, c.op.Cancel(cause, failure)
	}
	c.learn(ctx, now, failure)
	if unsafe == nil && deadline.Retried(ctx) {
		unsafe = ErrRetried
	}
	if unsafe != nil && c.curable(failure) {
		return 0, c.op.Cancel(unsafe, failure)
	}
	wait, stop := c.op.Next(now, failure)
	switch {
	case wait > 0 && c.tooLate(now, wait):
		return 0, c.op.Cancel(riprap.ErrDeadline, failure)
	case wait > 0 && c.forgotten(now.Add(wait)):
		return 0, c.op.Cancel(ErrOutcomeUnknown, failure)
	}
	return wait, stop
}

// unsafe returns why the request must not be sent again, nil if it may.
func (c *call) unsafe(unsent bool) error {
	switch {
	case c.broken > 1:
		return riprap.ErrAttempts
	case (c.repeatable || unsent) && c.body.again:
		return nil
	case c.resp == nil && !unsent:
		return ErrOutcomeUnknown
	default:
		return ErrUnsafe
	}
}

// curable reports whether another attempt could cure the failure, were it safe.
func (c *call) curable(failure error) bool {
	o := riprap.Operation{Policy: &riprap.Policy{Retryable: c.policy.Retryable, MaxAttempts: -1, MaxWait: -1}}
	wait, _ := o.Next(time.Time{}, failure)
	return wait > 0
}

// pause discards a failed response and waits.
func (c *call) pause(ctx context.Context, wait time.Duration, failure error) {
	if t := c.policy.Trace; t != nil && t.Retry != nil {
		t.Retry(ctx, c.event(failure, nil, wait))
	}
	if c.timer == nil {
		c.timer = time.NewTimer(wait)
	} else {
		c.timer.Reset(wait)
	}
	if c.resp != nil {
		c.current.drain(c.resp)
		c.closeResponse()
	}
	c.current.end()
	select {
	case <-c.timer.C:
	case <-ctx.Done():
	case <-c.req.Cancel: //lint:ignore SA1019 http.Client still uses it
	}
}

// answer hands a response over that is an answer. The call is over when its body is.
func (c *call) answer(ctx context.Context) *http.Response {
	var budget *riprap.Budget
	if c.op.Attempts == 1 {
		budget = c.policy.Budget
	}
	if c.current == nil {
		succeeded(budget)
		return c.resp
	}
	c.told = true
	c.current.body.ending = ending{ctx: ctx, budget: budget, trace: c.policy.Trace, event: c.event(nil, nil, c.op.Wait)}
	c.current.carry(c.resp)
	return c.resp
}

// giveUp ends the call for a reason of the transport's.
func (c *call) giveUp(ctx context.Context, reason, failure error) error {
	err := c.unknown(c.op.Cancel(reason, failure), failure)
	c.report(ctx, err, failure)
	return err
}

// report sends the Done event of a call that failed.
func (c *call) report(ctx context.Context, stop, failure error) {
	if gaveUp, ok := stop.(*riprap.Error); ok && !errors.Is(failure, stop) {
		c.tell(ctx, gaveUp.Err, gaveUp.Reason, c.op.Wait)
		return
	}
	c.tell(ctx, stop, nil, c.op.Wait)
}

func (c *call) tell(ctx context.Context, err, reason error, wait time.Duration) {
	if t := c.policy.Trace; t != nil && t.Done != nil && !c.told {
		c.told = true
		t.Done(ctx, c.event(err, reason, wait))
	}
}

func (c *call) event(err, reason error, wait time.Duration) riprap.Event {
	return riprap.Event{
		Name: c.destination.name, Attempts: c.op.Attempts, Sends: c.sends,
		Err: err, Reason: reason, Wait: wait, Asked: c.op.Asked,
	}
}

// abort cleans up after a panic or runtime.Goexit, be it in Base or in a function of the caller's.
func (c *call) abort(ctx context.Context) {
	c.body.close()
	c.closeResponse()
	c.current.end()
	if c.destination != nil {
		c.giveUp(ctx, errAborted, nil)
	}
}

// gone returns why the caller left, nil while it has not.
func gone(ctx context.Context, req *http.Request) error {
	if err := ctx.Err(); err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, err) {
			return cause
		}
		return fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	select {
	case <-req.Cancel: //lint:ignore SA1019 http.Client uses it, when its Timeout has passed
		if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
			return context.DeadlineExceeded
		}
		return context.Canceled
	default:
		return nil
	}
}
