package riphttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

func TestFailureOfTheBodysReaderIsFinal(t *testing.T) {
	errDisk := errors.New("disk")
	for _, size := range []int64{1000, 100000} { // read first, and read while it is sent
		inBubble(t, fmt.Sprint(size), func(t *testing.T) {
			service := script(200)
			var log events
			budget := &riprap.Budget{}
			policy := traced(even(), &log)
			policy.Budget = budget
			left := budget.Left(time.Now())
			body := track("begin")
			body.err = errDisk
			req := sized(t, "PUT", body, size)
			if size > 65536 {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(iotest.ErrReader(errDisk)), nil }
			}
			_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: policy}, req)
			if !errors.Is(err, errDisk) {
				t.Errorf("err = %v, want it to wrap %v", err, errDisk)
			}
			if n := service.calls(); n > 1 {
				t.Errorf("%d attempts, want at most one", n)
			}
			if e := log.ended(t); !errors.Is(e.Err, errDisk) || e.Reason != nil {
				t.Errorf("Done: err %v, reason %v, want the reader's error alone", e.Err, e.Reason)
			}
			if got := budget.Left(time.Now()); got != left {
				t.Errorf("retries left: %d, want %d as before", got, left)
			}
			if n := body.closed.Load(); n != 1 {
				t.Errorf("body closed %d times, want once", n)
			}
		})
	}
}

// Base may close a body while it is read, as HTTP/2 does when the stream is reset: then it is the stream that failed.
func TestReadThatBaseEndedIsNoFaultOfTheReader(t *testing.T) {
	for _, writesItself := range []bool{false, true} {
		inBubble(t, fmt.Sprint("writes itself: ", writesItself), func(t *testing.T) {
			get := func() (io.ReadCloser, error) {
				body := track("begin")
				body.hang = true
				if writesItself {
					return struct {
						*trackedBody
						io.WriterTo
					}{body, writerTo(func(w io.Writer) (int64, error) { return io.Copy(w, io.MultiReader(body)) })}, nil
				}
				return body, nil
			}
			attempts := 0
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				attempts++
				read := make(chan error)
				go func() {
					_, err := io.Copy(io.Discard, r.Body)
					read <- err
				}()
				synctest.Wait()
				r.Body.Close()
				if err := <-read; err == nil {
					t.Error("the body came to an end")
				}
				return nil, errWire
			})
			req := sized(t, "PUT", nil, 100)
			req.Body, _ = get()
			req.GetBody = get
			_, err := roundTrip(t, &riphttp.Transport{Base: base, Policy: even()}, req)
			if attempts != 4 || !errors.Is(err, errWire) {
				t.Errorf("err = %v after %d attempts, want %v after four", err, attempts, errWire)
			}
		})
	}
}

// A transport may still read the body of an attempt that is over. What becomes of that is no matter any more.
func TestLateFailureOfAnEarlierAttemptsReaderDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := track("begin")
		first.err = errors.New("disk")
		attempts := 0
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			defer r.Body.Close()
			switch attempts++; attempts {
			case 1:
				return response(503, ""), nil
			case 2:
				return nil, errWire
			}
			return response(200, "ok"), nil
		})
		var body io.ReadCloser // as Base got it
		late := roundTripper(func(r *http.Request) (*http.Response, error) {
			if body == nil {
				body = r.Body
				r = r.WithContext(r.Context())
				r.Body = http.NoBody
			} else if body != http.NoBody {
				io.Copy(io.Discard, body)
				body.Close()
				body = http.NoBody
			}
			return base.RoundTrip(r)
		})
		req := sized(t, "PUT", first, 100)
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(kilobytes(1))), nil }
		wantAnswer(t, &riphttp.Transport{Base: late, Policy: even()}, req, 200, "ok")
	})
}

type writerTo func(io.Writer) (int64, error)

func (f writerTo) WriteTo(w io.Writer) (int64, error) { return f(w) }

// Some readers write themselves, and net/http lets them: their failures count like those of others.
func TestFailureOfAReaderThatWritesItselfIsFinal(t *testing.T) {
	errDisk := errors.New("disk")
	synctest.Test(t, func(t *testing.T) {
		writers := 0
		service := &writerToStub{}
		req := newRequest(t, "PUT", serviceURL, "")
		req.ContentLength = 100000
		get := func() (io.ReadCloser, error) { return &selfWriter{err: errDisk, used: &writers}, nil }
		req.Body, _ = get()
		req.GetBody = get
		_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: even()}, req)
		if !errors.Is(err, errDisk) || service.calls != 1 || writers != 1 {
			t.Errorf("err = %v after %d attempts, WriteTo was used %d times, want %v, one and one", err, service.calls, writers, errDisk)
		}

		// When the connection breaks instead, WriteTo fails too, but that is no fault of the reader.
		writers, service = 0, &writerToStub{broken: true}
		req.Body, _ = get()
		_, err = roundTrip(t, &riphttp.Transport{Base: service, Policy: even()}, req)
		if !errors.Is(err, riprap.ErrAttempts) || errors.Is(err, errDisk) || service.calls != 4 {
			t.Errorf("err = %v after %d attempts, want ErrAttempts after four", err, service.calls)
		}
	})
}

type selfWriter struct {
	err  error
	used *int
}

func (s *selfWriter) Read([]byte) (int, error) {
	return 0, errors.New("read a reader that writes itself")
}
func (s *selfWriter) Close() error { return nil }
func (s *selfWriter) WriteTo(w io.Writer) (int64, error) {
	*s.used++
	if n, err := io.WriteString(w, "begin"); err != nil {
		return int64(n), err
	}
	return 5, s.err
}

type writerToStub struct {
	broken bool
	calls  int
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errWire }

func (s *writerToStub) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	s.calls++
	var to io.Writer = io.Discard
	if s.broken {
		to = brokenWriter{}
	}
	if _, err := io.Copy(to, r.Body); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	return response(200, ""), nil
}

// Many a reader knows only at its end that all was wrong: of a checksum, of a cipher.
func TestReaderThatFailsAtItsEndFailsTheRequest(t *testing.T) {
	errSum := errors.New("checksum")
	for name, end := range map[string]io.Reader{
		"behind the last byte": io.MultiReader(strings.NewReader("content"), iotest.ErrReader(errSum)),
		"with the last byte":   iotest.DataErrReader(io.MultiReader(strings.NewReader("content"), iotest.ErrReader(errSum))),
	} {
		inBubble(t, name, func(t *testing.T) {
			service := script(200)
			req := sized(t, "PUT", io.NopCloser(end), int64(len("content")))
			_, err := roundTrip(t, &riphttp.Transport{Base: service}, req)
			if !errors.Is(err, errSum) {
				t.Errorf("err = %v, want %v", err, errSum)
			}
			wantCalls(t, service, 0)
		})
	}
}

// Net/http takes a length of zero beside a body for an unknown one.
func TestUploadOfUnknownLengthThatBreaksIsSentTwiceAtMost(t *testing.T) {
	for _, length := range []int64{0, -1} {
		inBubble(t, fmt.Sprint(length), func(t *testing.T) {
			service := script(errWire)
			req := newRequest(t, "PUT", serviceURL, stream("content"))
			req.ContentLength = length
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(stream("content")), nil }
			roundTrip(t, &riphttp.Transport{Base: service, Policy: even()}, req)
			wantCalls(t, service, 2)
		})
	}
}
