package riphttp

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func (t *Transport) maxReplay() int64 { return cmp.Or(t.MaxReplay, defaultMaxReplay) }

// A replay gives each attempt a reader of the request's body. Readers are never shared: the one of a failed attempt may
// still be read when the next attempt begins.
type replay struct {
	ready io.ReadCloser                 // for the coming attempt, until Base has it
	get   func() (io.ReadCloser, error) // for further ones, and for those that net/http makes by itself
	again bool                          // the body can be sent again
	large bool                          // sending it costs something
	size  int64                         // as the request has it, above zero if it is known
	begun bool
	made  bool     // the reader last handed out is not the one that came with the request
	watch *watched // the reader last handed out, if it can fail
}

// prepare looks at the body of a request and reads a small one that could not be sent again otherwise.
func (r *replay) prepare(ctx context.Context, deadline time.Time, req *http.Request, limit int64) error {
	r.get, r.size = req.GetBody, req.ContentLength
	unknown := req.ContentLength < 0 || req.ContentLength == 0 && req.Body != nil && req.Body != http.NoBody
	r.large = req.ContentLength > largeUpload || unknown
	switch {
	case req.Body == nil || req.Body == http.NoBody || req.GetBody != nil:
		r.again = true
	case req.ContentLength > 0 && req.ContentLength <= limit:
		content, err := readAll(ctx, deadline, req)
		r.ready = nil
		if err != nil {
			return fmt.Errorf("reading the request body: %w", err)
		}
		r.get = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
		r.ready, _ = r.get()
		r.again, r.made = true, true
	}
	return nil
}

// readAll reads and closes the body of a request, whose length is known. When time is over, it closes the body to end
// a pending Read, but waits for neither: not every Close ends a Read, and some wait for it. Base would not wait either.
func readAll(ctx context.Context, deadline time.Time, req *http.Request) ([]byte, error) {
	if !deadline.IsZero() {
		bound, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		ctx = bound
	}
	type outcome struct {
		content  []byte
		err      error
		panicked any
	}
	closeOnce := sync.OnceValue(req.Body.Close)
	over := make(chan outcome, 1)
	go func() {
		o := outcome{err: errAborted} // unless it is read to its end
		defer func() {
			o.panicked = recover()
			over <- o
		}()
		o.content, o.err = readLength(req.Body, req.ContentLength)
		o.err = cmp.Or(o.err, closeOnce())
	}()
	select {
	case o := <-over:
		if o.panicked != nil {
			panic(o.panicked)
		}
		return o.content, o.err
	case <-ctx.Done():
		go closeOnce()
		return nil, context.Cause(ctx)
	}
}

// readLength reads a body of known length. It takes memory as the content comes, and not all that the length promises.
func readLength(body io.Reader, length int64) ([]byte, error) {
	var content bytes.Buffer
	content.Grow(int(min(length, defaultMaxReplay)) + bytes.MinRead)
	// A byte more than there should be, so that what the reader tells at its end is heard: many a check comes last.
	n, err := content.ReadFrom(io.LimitReader(body, min(length, math.MaxInt64-1)+1))
	switch {
	case err != nil:
		return nil, err
	case n > length:
		return nil, tooLong(length)
	case n < length:
		return nil, tooShort(n, length)
	}
	return content.Bytes(), nil
}

func tooLong(size int64) error {
	return fmt.Errorf("it is longer than its ContentLength of %d", size)
}

func tooShort(n, size int64) error {
	return fmt.Errorf("it ends after %d bytes, its ContentLength is %d: %w", n, size, io.ErrUnexpectedEOF)
}

// next returns the body for another attempt, nil if the request has none.
func (r *replay) next() (io.ReadCloser, error) {
	if r.begun && r.get != nil {
		body, err := r.get()
		if err != nil {
			return nil, err
		}
		r.ready, r.made = body, true
	}
	r.begun, r.watch = true, nil
	if body := r.ready; r.again && body != nil && body != http.NoBody && !inMemory(body, r.size) {
		r.watch = &watched{ReadCloser: body, size: r.size}
		r.ready, r.made = r.watch, true
		if _, ok := body.(io.WriterTo); ok {
			r.ready = watchedWriterTo{r.watch}
		}
	}
	return r.ready, nil
}

// close closes a body that Base did not get.
func (r *replay) close() {
	if r.ready != nil {
		r.ready.Close()
		r.ready = nil
	}
}

// failed returns the error of the body's own reader, nil if it has none. Such a failure is the caller's and not the
// service's, and another attempt would meet it again.
func (r *replay) failed() error {
	if r.watch == nil {
		return nil
	}
	if err := r.watch.err.Load(); err != nil {
		return *err
	}
	return nil
}

// unread reports whether the body, of the given length, has surely not been sent to its end: its reader has not given
// all of it.
func (r *replay) unread(length int64) bool { return r.watch != nil && r.watch.given.Load() < length }

// A watched reader remembers how much it gave and how it failed. To give more or less than the request says is a failure
// too. What a Read returns that Base has ended with Close is none.
type watched struct {
	io.ReadCloser
	size   int64 // above zero if it is known
	given  atomic.Int64
	closed atomic.Bool
	err    atomic.Pointer[error]
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.given.Add(int64(n))
	if err == io.EOF {
		w.took(nil, true)
	} else {
		w.took(err, false)
	}
	return n, err
}

// took notes what is wrong after some of the body was taken, or all of it.
func (w *watched) took(err error, all bool) {
	switch given := w.given.Load(); {
	case err != nil:
	case w.size > 0 && given > w.size:
		err = tooLong(w.size)
	case all && given < w.size:
		err = tooShort(given, w.size)
	}
	w.note(err)
}

func (w *watched) Close() error {
	w.closed.Store(true)
	return w.ReadCloser.Close()
}

func (w *watched) note(err error) {
	if err != nil && !w.closed.Load() {
		w.err.CompareAndSwap(nil, &err)
	}
}

// A watchedWriterTo keeps the reader's own way of writing itself.
type watchedWriterTo struct{ *watched }

func (w watchedWriterTo) WriteTo(to io.Writer) (int64, error) {
	sink := &sink{Writer: to, given: &w.given}
	n, err := w.ReadCloser.(io.WriterTo).WriteTo(sink)
	if !sink.failed {
		w.took(err, true)
	}
	return n, err
}

// A sink tells failures to write from failures to read.
type sink struct {
	io.Writer
	given  *atomic.Int64
	failed bool
}

func (s *sink) Write(p []byte) (int, error) {
	s.given.Add(int64(len(p)))
	n, err := s.Writer.Write(p)
	s.failed = s.failed || err != nil
	return n, err
}

// inMemory reports whether a body is one of the readers that http.NewRequest knows and has the length that the request
// says, above zero if it is known. They cannot fail, and net/http sends them in one packet with the header as long as
// it sees what they are.
func inMemory(body io.ReadCloser, size int64) bool {
	v := reflect.ValueOf(body)
	if t := v.Type(); t != nopCloser && t != nopCloserWriterTo {
		return false
	}
	switch r := v.Field(0).Interface().(type) {
	case *bytes.Reader, *bytes.Buffer, *strings.Reader:
		return size <= 0 || int64(r.(interface{ Len() int }).Len()) == size
	}
	return false
}

var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(new(bytes.Reader)))
)
