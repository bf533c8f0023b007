package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var (
	errIntake = errors.New("the request body failed")
	errSlow   = fmt.Errorf("%w: it came too slowly", errIntake)
	errLarge  = fmt.Errorf("%w: it is larger than allowed", errIntake)

	errStalled = fmt.Errorf("the service takes nothing of the request body: %w", context.DeadlineExceeded)
)

const (
	// A body has to come at this rate, measured while somebody waits for it and after a grace. Who sends a byte now and then
	// holds a place that others need.
	slowestBody = 240 // bytes per second
	grace       = 5 * time.Second
)

// An intake is the body of a client's request. It ends a client that is too slow or sends too much, and a service that does not
// take what came. Once the answer has begun, both sides may pause as they like: that is how streams in both directions are.
type intake struct {
	body    io.ReadCloser
	control *http.ResponseController
	silence time.Duration // zero means that each pause is allowed
	giveUp  func()        // when the service takes nothing for the silence; nil means that it may
	free    atomic.Bool   // the answer has begun
	ended   atomic.Bool   // there is no more to read
	failed  atomic.Pointer[error]

	// A timer and not the deadline of the connection: when that passes, net/http ends the request's context before anybody
	// has heard why.
	late    *time.Timer // strikes when the client was too slow
	stalled *time.Timer // strikes when the service was

	mu    sync.Mutex // held by a Read
	left  int64      // bytes that may come; negative means no limit
	read  int64
	spent time.Duration // waiting for the client
}

// newIntake makes the intake of a body of at most limit bytes; zero and less mean no limit.
func newIntake(body io.ReadCloser, control *http.ResponseController, silence time.Duration, limit int64) *intake {
	i := &intake{body: body, control: control, silence: silence, left: -1}
	if limit > 0 {
		i.left = limit
	}
	return i
}

// watch calls giveUp when the service has taken nothing for the silence, from now on.
func (i *intake) watch(giveUp func()) {
	i.giveUp = giveUp
	i.arm(&i.stalled, i.silence, giveUp)
}

func (i *intake) Read(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left == 0 {
		return i.more()
	}
	if i.left > 0 && int64(len(p)) > i.left {
		p = p[:i.left]
	}
	began := time.Now()
	i.arm(&i.late, i.patience(), i.tooSlow)
	n, err := i.body.Read(p)
	stop(i.late)
	i.spent += time.Since(began)
	i.read += int64(n)
	if i.left > 0 {
		i.left -= int64(n)
	}
	i.ended.Store(err != nil)
	switch slow := i.err(); {
	case slow != nil:
		return n, slow
	case err == io.EOF:
		return n, err
	case err != nil:
		return n, i.fail(fmt.Errorf("%w: %w", errIntake, err))
	}
	if i.giveUp != nil {
		i.arm(&i.stalled, i.silence, i.giveUp)
	}
	return n, nil
}

// arm starts a timer, and stops the other one.
func (i *intake) arm(timer **time.Timer, after time.Duration, strike func()) {
	if timer == &i.late {
		stop(i.stalled)
	}
	switch {
	case i.silence <= 0 || i.free.Load():
	case *timer == nil:
		*timer = time.AfterFunc(after, func() {
			if !i.free.Load() {
				strike()
			}
		})
	default:
		(*timer).Reset(after)
	}
}

func stop(timer *time.Timer) {
	if timer != nil {
		timer.Stop()
	}
}

// tooSlow ends the Read that is pending.
func (i *intake) tooSlow() {
	i.fail(errSlow)
	i.control.SetReadDeadline(longAgo)
}

var longAgo = time.Unix(1, 0)

// more looks whether there is a byte too many.
func (i *intake) more() (int, error) {
	n, err := i.body.Read(make([]byte, 1))
	i.ended.Store(err != nil)
	if n == 0 {
		return 0, err
	}
	return 0, i.fail(errLarge)
}

// fail notes how the body failed. The first failure counts.
func (i *intake) fail(err error) error {
	i.failed.CompareAndSwap(nil, &err)
	return i.err()
}

// patience is how long the next bytes may take.
func (i *intake) patience() time.Duration {
	return min(i.silence, max(grace+time.Duration(i.read)*time.Second/slowestBody-i.spent, time.Millisecond))
}

// release lets the client pause from now on, and the service too.
func (i *intake) release() {
	if i != nil {
		i.free.Store(true)
	}
}

// finish ends what still reads: nobody may when the handler has returned. What the client has not sent by then, net/http takes
// in, up to a limit, to keep the connection; who is slow at that loses it.
func (i *intake) finish() {
	if !i.mu.TryLock() {
		i.control.SetReadDeadline(longAgo)
		i.mu.Lock()
	}
	defer i.mu.Unlock()
	stop(i.late)
	stop(i.stalled)
	if i.unread() {
		i.control.SetReadDeadline(time.Now().Add(grace))
	}
}

// unread reports whether there may be more to read.
func (i *intake) unread() bool { return !i.ended.Load() && i.err() == nil }

func (i *intake) Close() error { return i.body.Close() }

// err is how the client's body failed, nil if it did not.
func (i *intake) err() error {
	if i == nil {
		return nil
	}
	if err := i.failed.Load(); err != nil {
		return *err
	}
	return nil
}
