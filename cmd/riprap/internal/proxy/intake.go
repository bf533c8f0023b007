package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
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
	left    int64         // bytes that may come; negative means no limit
	read    int64
	spent   time.Duration // waiting for the client
	stalled *time.Timer   // strikes when the service has taken nothing for the silence; nil means never
	free    atomic.Bool   // the answer has begun
	failed  atomic.Pointer[error]
}

// newIntake makes the intake of a body of at most limit bytes; zero and less mean no limit.
func newIntake(body io.ReadCloser, control *http.ResponseController, silence time.Duration, limit int64) *intake {
	i := &intake{body: body, control: control, silence: silence, left: -1}
	if limit > 0 {
		i.left = limit
	}
	return i
}

// watch calls give up when the service does not take what came.
func (i *intake) watch(giveUp func()) {
	if i.silence > 0 {
		i.stalled = time.AfterFunc(i.silence, giveUp)
	}
}

// turn says whose turn it is: the service's, to take what came, or not.
func (i *intake) turn(services bool) {
	switch {
	case i.stalled == nil:
	case services && !i.free.Load():
		i.stalled.Reset(i.silence)
	default:
		i.stalled.Stop()
	}
}

func (i *intake) Read(p []byte) (int, error) {
	if i.left == 0 {
		return i.more()
	}
	if i.left > 0 && int64(len(p)) > i.left {
		p = p[:i.left]
	}
	i.turn(false)
	began := time.Now()
	if i.silence > 0 && !i.free.Load() {
		i.control.SetReadDeadline(began.Add(i.patience()))
		if i.free.Load() { // the answer has begun meanwhile
			i.control.SetReadDeadline(time.Time{})
		}
	}
	n, err := i.body.Read(p)
	i.spent += time.Since(began)
	i.read += int64(n)
	if i.left > 0 {
		i.left -= int64(n)
	}
	switch {
	case err == io.EOF:
		i.control.SetReadDeadline(time.Time{}) // the server goes on reading, for the next request
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlow
		i.fail(err)
	case err != nil:
		err = fmt.Errorf("%w: %w", errIntake, err)
		i.fail(err)
	default:
		if i.turn(true); i.free.Load() {
			i.turn(false)
		}
	}
	return n, err
}

// more looks whether there is a byte too many.
func (i *intake) more() (int, error) {
	if n, err := i.body.Read(make([]byte, 1)); n == 0 {
		return 0, err
	}
	i.fail(errLarge)
	return 0, errLarge
}

func (i *intake) fail(err error) { i.failed.CompareAndSwap(nil, &err) }

// patience is how long the next bytes may take.
func (i *intake) patience() time.Duration {
	return min(i.silence, max(grace+time.Duration(i.read)*time.Second/slowestBody-i.spent, time.Millisecond))
}

// release lets the client pause from now on, and the service too.
func (i *intake) release() {
	if i == nil || i.free.Swap(true) {
		return
	}
	i.control.SetReadDeadline(time.Time{})
	i.turn(false)
}

func (i *intake) Close() error {
	i.turn(false)
	return i.body.Close()
}

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
