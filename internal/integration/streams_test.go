package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// growing calls f with a bound that is short, then with longer ones until f says that the machine was fast enough.
func growing(t *testing.T, f func(bound time.Duration) (enough bool)) {
	t.Helper()
	for bound := 50 * time.Millisecond; !f(bound); bound *= 2 {
		if bound > patience {
			t.Fatalf("%v are not enough", bound)
		}
	}
}

// falterAfter answers with a text, and then neither goes on nor ends.
func falterAfter(text string) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func TestStreamOutlivesTheTimeouts(t *testing.T) {
	settles(t)
	events := make(chan string)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-events:
				fmt.Fprintf(w, "data: %s\n\n", event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	c := call(t, server.base())
	growing(t, func(bound time.Duration) bool {
		c.transport = &riphttp.Transport{Base: c.transport.Base, Policy: quick()}
		c.transport.Policy.Timeout, c.transport.Policy.AttemptTimeout = bound, bound
		c.Transport = c.transport
		start := time.Now()
		resp, err := c.Get(server.URL)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		in := bufio.NewReader(resp.Body)
		for n := range 3 {
			waitFor(t, "the timeouts to pass", func() bool { return time.Since(start) > time.Duration(n+1)*bound+bound/2 })
			select {
			case events <- fmt.Sprint(n):
			case <-time.After(patience):
				t.Fatalf("after %v of a timeout of %v the server has lost its client", time.Since(start), bound)
			}
			line, err := in.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", n); err != nil || line != want {
				t.Errorf("after %v of a timeout of %v: %q, %v, want %q", time.Since(start), bound, line, err, want)
				return true
			}
			in.ReadString('\n')
		}
		return true
	})
}

func TestSilentStreamEndsWithATimeout(t *testing.T) {
	settles(t)
	for name, change := range map[string]func(*httptest.Server){"HTTP/1.1": func(*httptest.Server) {}, "HTTP/2": overHTTP2} {
		server := serve(t, falterAfter("hello"), change)
		c := call(t, server.base())
		growing(t, func(bound time.Duration) bool {
			c.transport = &riphttp.Transport{Base: c.transport.Base, Policy: c.transport.Policy, ReadTimeout: bound}
			c.Transport = c.transport
			_, content, err := c.do(t, request(t, "GET", server.URL, "", nil))
			if content != "hello" {
				return false
			}
			if !errors.Is(err, context.DeadlineExceeded) || !isTimeout(err) {
				t.Errorf("%s: Read of a silent body: %v, want a timeout", name, err)
			}
			if e := c.last(t); e.Err == nil {
				t.Errorf("%s: Done event = %+v, want an error", name, e)
			}
			return true
		})
	}
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

func TestAttemptThatHangsIsFollowedByAnother(t *testing.T) {
	settles(t)
	server := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-r.Context().Done()
			return
		}
		io.WriteString(w, "hello")
	})
	c := call(t, server.base())
	c.transport.Policy.MaxAttempts = -1
	c.transport.Policy.AttemptTimeout = 200 * time.Millisecond
	c.answer(t, request(t, "GET", server.URL, "", nil), 200, "hello")
	if e := c.last(t); e.Attempts < 2 {
		t.Errorf("Done event = %+v, want a second attempt", e)
	}
}

func TestTimeoutOfTheClientBoundsAllAttempts(t *testing.T) {
	settles(t)
	server := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := call(t, server.base())
	c.Timeout = 50 * time.Millisecond
	_, _, err := c.do(t, request(t, "GET", server.URL, "", nil))
	if !isTimeout(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("GET: %v, want a timeout that is context.DeadlineExceeded", err)
	}
	if e := c.last(t); e.Attempts != 1 || !errors.Is(e.Reason, context.DeadlineExceeded) {
		t.Errorf("Done event = %+v, want one attempt, ended by the client's timeout", e)
	}
}

func TestTimeoutOfTheClientBoundsTheBody(t *testing.T) {
	settles(t)
	server := serve(t, falterAfter("hello"))
	c := call(t, server.base())
	growing(t, func(bound time.Duration) bool {
		c.Timeout = bound
		_, content, err := c.do(t, request(t, "GET", server.URL, "", nil))
		if content != "hello" {
			return false
		}
		if !isTimeout(err) {
			t.Errorf("Read after the client's timeout: %v, want a timeout", err)
		}
		return true
	})
}

func TestCancelEndsAReadOfTheBody(t *testing.T) {
	settles(t)
	server := serve(t, falterAfter("hello"))
	c := call(t, server.base())
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := c.Do(request(t, "GET", server.URL, "", nil).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("Read after the cancel: %v, want context.Canceled", err)
	}
}

func TestCancelEndsAWait(t *testing.T) {
	settles(t)
	server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(503)
	})
	c := call(t, server.base())
	c.transport.Policy.Timeout, c.transport.Policy.MaxWait = -1, -1
	ctx, cancel := context.WithCancel(t.Context())
	c.transport.Policy.Trace.Retry = func(context.Context, riprap.Event) { cancel() }
	_, _, err := c.do(t, request(t, "GET", server.URL, "", nil).WithContext(ctx))
	if status, ok := errors.AsType[*riphttp.StatusError](err); !ok || status.Code != 503 || !errors.Is(err, context.Canceled) {
		t.Errorf("GET cancelled while it waits: %v, want context.Canceled and the 503", err)
	}
	if got := server.requests.Load(); got != 1 {
		t.Errorf("GET was sent %d times, want once", got)
	}
}
