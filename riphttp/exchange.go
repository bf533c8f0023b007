package riphttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/riprap-go/riprap"
)

// An exchange is one attempt: the context that bounds it, and later the body of its response. All methods work on a
// nil exchange, that of an attempt that nothing bounds and nobody observes.
type exchange struct {
	bound
	body body
	wire *wire
}

// A bound is the context of an attempt. It ends when the caller's context does, when a timer strikes, and when the
// attempt is over.
//
// A context of package context will not do. The attempt's deadline must not end the body, which a WithDeadline does;
// and where the deadline strikes, children must report DeadlineExceeded, which those of a WithCancel do not.
type bound struct {
	caller context.Context // with the values
	inner  context.Context // what really ends
	cancel context.CancelCauseFunc
	until  time.Time // when the header must be there; zero means whenever
	req    *http.Request
	alarm  alarm // for the header, then for each Read of the body
}

// errStruck is the cause of a bound's end by its timer. Of several ends only the first counts: an error of a context
// never changes.
var errStruck = errors.New("the attempt's timer struck")

type nestedKey struct{}

func newExchange(ctx context.Context, until time.Time, silence time.Duration, req *http.Request) *exchange {
	x := &exchange{bound: bound{caller: ctx, until: until, req: req}, body: body{silence: silence}}
	x.inner, x.cancel = context.WithCancelCause(ctx)
	x.body.x = x
	x.alarm.cancel = x.cancel
	if !until.IsZero() {
		now := time.Now() // which is not when the attempt began, if a hook was slow
		x.alarm.set(now, until.Sub(now))
	}
	return x
}

func (b *bound) Deadline() (time.Time, bool) {
	if b.until.IsZero() {
		return b.caller.Deadline()
	}
	return b.until, true
}

func (b *bound) Done() <-chan struct{} { return b.inner.Done() }

func (b *bound) Err() error {
	err := b.inner.Err()
	if err != nil && b.struck() {
		return context.DeadlineExceeded
	}
	return err
}

func (b *bound) Value(key any) any {
	if key == (nestedKey{}) {
		return b.req
	}
	return b.caller.Value(key)
}

// AfterFunc is found by package context, which otherwise starts a goroutine for each child.
func (b *bound) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(b.inner, f) }

// struck reports whether the timer ended the context.
func (b *bound) struck() bool { return context.Cause(b.inner) == errStruck }

// stopped calls the timer off and reports whether it has struck.
func (x *exchange) stopped() bool {
	return x != nil && x.alarm.off()
}

// end frees what the exchange holds.
func (x *exchange) end() {
	if x != nil {
		x.alarm.end()
		x.cancel(nil)
	}
}

// drain reads a response that nobody will see to its end, within bounds. Close and end are still due.
func (x *exchange) drain(resp *http.Response) {
	if resp.ContentLength > drainBytes {
		return
	}
	defer time.AfterFunc(drainTime, func() {
		x.end()
		resp.Body.Close() // not every Base listens to the context while a body is read
	}).Stop()
	io.CopyN(io.Discard, resp.Body, drainBytes+1)
}

// carry makes the exchange the body of the response that the caller gets.
func (x *exchange) carry(resp *http.Response) {
	if x == nil {
		return
	}
	x.body.ReadCloser = resp.Body
	if resp.StatusCode == http.StatusSwitchingProtocols { // both sides may be silent for as long as they like
		x.body.silence = 0
	}
	switch stream, writable := resp.Body.(io.Writer); {
	case resp.Body == http.NoBody:
		x.body.finish(nil)
	case !writable:
		resp.Body = &x.body
	default:
		if half, ok := resp.Body.(interface{ CloseWrite() error }); ok {
			resp.Body = halfCloser{upgraded{&x.body, stream}, half.CloseWrite}
		} else {
			resp.Body = upgraded{&x.body, stream}
		}
	}
}

// A body is the body of a response in the caller's hands.
type body struct {
	io.ReadCloser
	x        *exchange
	silence  time.Duration
	ending   ending
	finished atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	timed := b.silence > 0 && !b.finished.Load()
	if timed {
		b.x.alarm.set(time.Now(), b.silence)
	}
	n, err := b.ReadCloser.Read(p)
	if timed {
		b.x.alarm.off()
	}
	switch {
	case err == io.EOF:
		b.finish(nil)
	case err != nil:
		if b.x.struck() && b.x.caller.Err() == nil {
			err = fmt.Errorf("response body: no data for %v: %w", b.silence, context.DeadlineExceeded)
		}
		b.finish(err)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.finish(nil)
	return err
}

func (b *body) finish(err error) {
	if b.finished.Swap(true) {
		return
	}
	b.x.end()
	b.ending.over(err)
}

type upgraded struct {
	*body
	io.Writer
}

type halfCloser struct {
	upgraded
	closeWrite func() error
}

func (h halfCloser) CloseWrite() error { return h.closeWrite() }

// An ending is what is due when the body of an answer has been read or closed.
type ending struct {
	ctx    context.Context
	budget *riprap.Budget // gets a deposit, unless nil
	trace  *riprap.Trace
	event  riprap.Event
}

func (e *ending) over(err error) {
	if err == nil {
		succeeded(e.budget)
	}
	if e.trace != nil && e.trace.Done != nil {
		e.event.Err = err
		e.trace.Done(e.ctx, e.event)
	}
}

// succeeded deposits into the budget of a call whose first attempt succeeded.
func succeeded(b *riprap.Budget) {
	if b != nil {
		o := riprap.Operation{Policy: &riprap.Policy{Budget: b}, Attempts: 1}
		o.Next(time.Now(), nil)
	}
}
