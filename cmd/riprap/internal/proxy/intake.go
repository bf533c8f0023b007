package proxy

import (
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
)

const (
	// A body has to come at this rate, measured while somebody waits for it and after a grace. Who sends a byte now and then
	// holds a place that others need.
	slowestBody = 240 // bytes per second
	grace       = 5 * time.Second
)

// An intake is the body of a client's request. It ends a client that is too slow, and one that sends too much. Once the answer
// has begun, both sides may pause as they like: that is how streams in both directions are.
type intake struct {
	body    io.ReadCloser
	control *http.ResponseController
	silence time.Duration // above zero
	left    int64         // bytes that may come; negative means no limit
	read    int64
	spent   time.Duration // waiting for the client
	free    atomic.Bool   // the answer has begun
	failed  atomic.Pointer[error]
}

func (i *intake) Read(p []byte) (int, error) {
	if i.left == 0 {
		return i.more()
	}
	if i.left > 0 && int64(len(p)) > i.left {
		p = p[:i.left]
	}
	free := i.free.Load()
	began := time.Now()
	if !free {
		i.control.SetReadDeadline(began.Add(i.patience()))
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

// release lets the client pause from now on.
func (i *intake) release() {
	if i != nil && !i.free.Swap(true) {
		i.control.SetReadDeadline(time.Time{})
	}
}

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
