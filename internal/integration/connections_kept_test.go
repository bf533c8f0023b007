package integration_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/riprap-go/riprap"
)

func TestDiscardedResponsesLeaveTheirConnectionForTheNextAttempt(t *testing.T) {
	settles(t)
	content := noise(10 << 10)
	server := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		w.Write(content)
	})
	c := call(t, server.base())
	c.transport.Policy.MaxAttempts = 5
	for range 10 {
		c.answer(t, request(t, "GET", server.URL, "", nil), 503, string(content))
	}
	// A machine that is busy may not get a body read in the time that there is for it, now and then.
	if server.requests.Load() != 50 || server.conns.Load() > 10 {
		t.Errorf("%d requests over %d connections, want 50 over one", server.requests.Load(), server.conns.Load())
	}
}

func TestDiscardedResponseThatDoesNotEndIsDropped(t *testing.T) {
	for name, write := range map[string]func(http.ResponseWriter, *http.Request){
		"a body that comes byte by byte": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(64<<10))
			w.WriteHeader(503)
			w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-r.Context().Done() // the next byte is a long time coming
		},
		"an endless body": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			for block := bytes.Repeat([]byte("x"), 32<<10); r.Context().Err() == nil; {
				w.Write(block)
			}
		},
		"a body too large to read": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(1<<30))
			w.WriteHeader(503)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			settles(t)
			var left sync.WaitGroup
			server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					left.Add(1)
					defer left.Done()
					write(w, r)
					return
				}
				io.WriteString(w, "hello")
			})
			c := call(t, server.base())
			c.answer(t, request(t, "GET", server.URL, "", nil), 200, "hello")
			if got := server.conns.Load(); got != 2 {
				t.Errorf("GET took %d connections, want a second one", got)
			}
			left.Wait() // the server has noticed
		})
	}
}

func TestOneConnectionIsEnoughForManyCalls(t *testing.T) {
	settles(t)
	server := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n%3 != 0 {
			w.WriteHeader(503)
		}
		io.WriteString(w, "hello")
	})
	base := server.base()
	base.MaxConnsPerHost = 1
	c := call(t, base)
	c.transport.Policy.MaxAttempts = -1
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 5 {
				resp, _, err := c.do(t, request(t, "GET", server.URL, "", nil))
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("GET: %v, %v", resp, err)
				}
			}
		})
	}
	calls.Wait()
}

func TestCancelledCallsLeaveNothingBehind(t *testing.T) {
	settles(t)
	var waiting atomic.Int32
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		waiting.Add(1)
		<-r.Context().Done()
	})
	c := call(t, server.base())
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			_, _, err := c.do(t, request(t, "POST", server.URL, "k1", bytes.NewReader(noise(1000))).WithContext(ctx))
			if gaveUp, ok := errors.AsType[*riprap.Error](err); !ok || gaveUp.Attempts != 1 || !errors.Is(err, context.Canceled) {
				t.Errorf("POST: %v, want an *Error after one attempt with context.Canceled", err)
			}
		})
	}
	waitFor(t, "all requests to arrive", func() bool { return waiting.Load() == 20 })
	cancel()
	calls.Wait()
}

func TestCloseIdleConnectionsReachesTheBase(t *testing.T) {
	settles(t)
	server := serve(t, flaky(0, say("hello")))
	c := call(t, server.base())
	for want := range int32(3) {
		c.answer(t, request(t, "GET", server.URL, "", nil), 200, "hello")
		if got := server.conns.Load(); got != want+1 {
			t.Errorf("%d connections, want %d", got, want+1)
		}
		c.CloseIdleConnections() // of http.Client, which asks its Transport
	}
}
