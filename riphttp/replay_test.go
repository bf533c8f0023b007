package riphttp_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/internal/memhttp"
	"github.com/riprap-go/riprap/riphttp"
)

func TestMaxReplayBoundsWhatIsReadFirst(t *testing.T) {
	for _, test := range []struct {
		name   string
		limit  int64
		size   int
		length int64
		sent   int
	}{
		{"exactly the default", 0, 65536, 65536, 2},
		{"one more", 0, 65537, 65537, 1},
		{"more", 0, 90000, 90000, 1},
		{"exactly the limit", 100, 100, 100, 2},
		{"one above the limit", 100, 101, 101, 1},
		{"off", -1, 1, 1, 1},
		{"unknown length", 0, 10, -1, 1},
		{"unknown length, said as zero", 0, 10, 0, 1},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			content := strings.Repeat("x", test.size)
			service := script(503, 200)
			var log events
			client := &riphttp.Transport{Base: service, Policy: traced(even(), &log), MaxReplay: test.limit}
			body := track(content)
			code, _, err := result(t, client, sized(t, "POST", body, test.length, "Idempotency-Key", "k"))
			want, reason := 200, error(nil)
			if test.sent == 1 {
				want, reason = 503, riphttp.ErrUnsafe
			}
			if code != want || err != nil {
				t.Errorf("got %d, %v, want %d", code, err, want)
			}
			wantCalls(t, service, test.sent)
			for i, got := range service.sent {
				if got.body != content {
					t.Errorf("attempt %d: %d bytes, want %d", i+1, len(got.body), len(content))
				}
			}
			if e := log.ended(t); e.Reason != reason {
				t.Errorf("Done: reason %v, want %v", e.Reason, reason)
			}
			if n := body.closed.Load(); n != 1 {
				t.Errorf("the caller's body was closed %d times, want once", n)
			}
		})
	}
}

// A body that is sent once must not wait in memory: its first byte reaches the service before the last was made.
func TestBodyThatIsSentOnceIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		first := make(chan struct{})
		service := &stub{play: func(int, *http.Request) (*http.Response, error) { return response(200, ""), nil }}
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			var b [1]byte
			io.ReadFull(req.Body, b[:])
			close(first)
			return service.RoundTrip(req)
		})
		go func() {
			w.Write([]byte("a"))
			<-first
			w.Write([]byte("b"))
			w.Close()
		}()
		wantAnswer(t, &riphttp.Transport{Base: base}, sized(t, "PUT", r, 1<<20), 200, "")
		if got := service.sent[0].body; got != "b" {
			t.Errorf("after its first byte the body was %q, want b", got)
		}
	})
}

func TestBodyOfAnotherLengthThanSaidIsRefusedBeforeItIsSent(t *testing.T) {
	for _, test := range []struct {
		content string
		want    error
	}{{"short", io.ErrUnexpectedEOF}, {"longer than it should be", nil}, {"", io.ErrUnexpectedEOF}} {
		inBubble(t, test.content, func(t *testing.T) {
			service := script(200)
			var log events
			body := track(test.content)
			_, err := roundTrip(t, &riphttp.Transport{Base: service, Policy: traced(even(), &log)}, sized(t, "PUT", body, 10))
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), "10") {
				t.Errorf("err = %v, want one that names the length of 10", err)
			}
			wantCalls(t, service, 0)
			if e := log.ended(t); e.Err == nil || e.Attempts != 0 {
				t.Errorf("Done: %d attempts, err %v, want none and the error", e.Attempts, e.Err)
			}
			if n := body.closed.Load(); n != 1 {
				t.Errorf("body closed %d times, want once", n)
			}
		})
	}
}

// With GetBody nothing is read in advance: what the request says of its body is found wrong while it is sent.
func TestBodyOfAnotherLengthThanSaidIsSentOnce(t *testing.T) {
	for _, content := range []string{"short", "longer than it should be"} {
		for name, open := range map[string]func() (io.ReadCloser, error){
			"in memory": func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
			"read":      func() (io.ReadCloser, error) { return track(content), nil },
		} {
			inBubble(t, content+" "+name, func(t *testing.T) {
				server := memhttp.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					<-r.Context().Done() // an answer could come before the client has found its body too long
				}))
				var log events
				client := &riphttp.Transport{Base: server.Transport(), Policy: traced(even(), &log)}
				body, _ := open()
				req := sizedTo(t, "PUT", memhttp.URL, body, 10)
				req.GetBody = open
				if _, err := roundTrip(t, client, req); err == nil || !strings.Contains(err.Error(), "10") {
					t.Errorf("err = %v, want one that names the length of 10", err)
				}
				if e := log.ended(t); e.Attempts != 1 || e.Reason != nil {
					t.Errorf("Done: %d attempts, reason %v, want one and none", e.Attempts, e.Reason)
				}
				client.CloseIdleConnections()
				server.Stop()
			})
		}
	}
}

func TestBodyThatHangsIsGivenUpWithTheCall(t *testing.T) {
	errLeft := errors.New("the user left")
	for _, test := range []struct {
		name  string
		bound func(context.Context) (context.Context, func())
		took  time.Duration
		want  error
	}{
		{"timeout of the policy", func(ctx context.Context) (context.Context, func()) { return ctx, func() {} }, 30 * time.Second, context.DeadlineExceeded},
		{"deadline of the caller", func(ctx context.Context) (context.Context, func()) {
			return context.WithTimeout(ctx, 2*time.Second)
		}, 2 * time.Second, context.DeadlineExceeded},
		{"cause of the caller", func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(errLeft) })
			return ctx, func() {}
		}, time.Second, errLeft},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			start := time.Now()
			service := script(200)
			body := track("begin")
			body.hang = true
			req := sized(t, "PUT", body, 100)
			ctx, cancel := test.bound(req.Context())
			defer cancel()
			_, err := roundTrip(t, &riphttp.Transport{Base: service}, req.WithContext(ctx))
			if !errors.Is(err, test.want) {
				t.Errorf("err = %v, want %v", err, test.want)
			}
			if took := time.Since(start); took != test.took {
				t.Errorf("it took %v, want %v", took, test.took)
			}
			wantCalls(t, service, 0)
			synctest.Wait()
			if n := body.closed.Load(); n != 1 {
				t.Errorf("body closed %d times, want once", n)
			}
		})
	}
}

// Not every Close ends a Read: that of io.NopCloser does nothing, that of a server's request waits for the Read.
func TestBodyWhoseCloseDoesNotEndAReadIsGivenUpWithTheCall(t *testing.T) {
	for name, end := range map[string]func(read *sync.Mutex) error{
		"does nothing":       func(*sync.Mutex) error { return nil },
		"waits for the Read": func(read *sync.Mutex) error { read.Lock(); defer read.Unlock(); return nil },
	} {
		inBubble(t, name, func(t *testing.T) {
			var read sync.Mutex
			late := make(chan struct{})
			body := struct {
				io.Reader
				io.Closer
			}{
				readerFunc(func([]byte) (int, error) { read.Lock(); defer read.Unlock(); <-late; return 0, io.EOF }),
				closerFunc(func() error { return end(&read) }),
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start, service := time.Now(), script(200)
			_, err := roundTrip(t, &riphttp.Transport{Base: service}, sized(t, "PUT", body, 100).WithContext(ctx))
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
				t.Errorf("err = %v after %v, want DeadlineExceeded after a second", err, took)
			}
			wantCalls(t, service, 0)
			close(late)
		})
	}
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

func TestPanicOfABodyThatIsReadFirstReachesTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := track("")
		body.Reader = readerFunc(func([]byte) (int, error) { panic("bad") })
		defer func() {
			if got, n := recover(), body.closed.Load(); got != "bad" || n != 1 {
				t.Errorf("recovered %v, the body was closed %d times, want the panic and once", got, n)
			}
		}()
		(&riphttp.Transport{Base: script(200)}).RoundTrip(sized(t, "PUT", body, 100))
	})
}

// A length is a promise: a stranger's, where requests are passed on.
func TestBodyThatIsReadFirstTakesMemoryAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(200)
		client := &riphttp.Transport{Base: service, Policy: even(), MaxReplay: math.MaxInt64}
		_, err := roundTrip(t, client, sized(t, "PUT", track("short"), math.MaxInt64))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("err = %v, want ErrUnexpectedEOF", err)
		}
		content := kilobytes(1 << 10)
		wantAnswer(t, client, sized(t, "PUT", track(content), int64(len(content))), 200, "OK")
		if service.sent[0].body != content {
			t.Error("the body did not arrive whole")
		}
	})
}
