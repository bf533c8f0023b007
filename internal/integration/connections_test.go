package integration_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

func TestRequestIsRepeatedOnlyIfTheBrokenConnectionCannotHaveCarriedIt(t *testing.T) {
	faults := []struct {
		name     string
		script   []step
		scheme   string
		header   int  // bytes of header to send with the request
		arrives  bool // the server reads the whole request
		unproven bool // the client cannot know that it was not processed
	}{
		{name: "reset during the TLS handshake", script: []step{readSome(1), rst}, scheme: "https"},
		{name: "end of the connection during the TLS handshake", script: []step{readSome(1), eof}, scheme: "https"},
		{name: "reset while a header larger than all buffers is written", script: []step{readSome(10), rst}, header: 4 << 20},
		{name: "reset after half of the header was read", script: []step{readSome(10), rst}, unproven: true},
		{name: "reset after the request was read", script: []step{read, rst}, arrives: true, unproven: true},
		{name: "end of the connection after the request was read", script: []step{read, eof}, arrives: true, unproven: true},
		{name: "garbage instead of a status line", script: []step{read, write("nonsense\r\n\r\n"), eof}, arrives: true, unproven: true},
		{name: "reset within the header of the response", script: []step{read, write("HTTP/1.1 200 OK\r\nContent-"), rst}, arrives: true, unproven: true},
	}
	requests := []struct {
		name, method, key string
		repeatable        bool
	}{
		{"POST without a key", "POST", "", false},
		{"POST with a key", "POST", "k1", true},
		{"GET", "GET", "", true},
	}
	for _, fault := range faults {
		for _, r := range requests {
			t.Run(fault.name+" "+r.name, func(t *testing.T) {
				settles(t)
				server := raw(t, fault.script)
				c := call(t, smallBuffers())
				url := server.url
				if fault.scheme == "https" {
					url = "https://" + server.addr
				}
				req := request(t, r.method, url, r.key, strings.NewReader("order"))
				if r.method == "GET" {
					req = request(t, r.method, url, r.key, nil)
				}
				if fault.header > 0 {
					req.Header.Set("X-Large", strings.Repeat("x", fault.header))
				}
				want := 3
				if fault.unproven && !r.repeatable {
					want = 1
				}

				_, _, err := c.do(t, req)
				if gaveUp, ok := errors.AsType[*riprap.Error](err); !ok || gaveUp.Attempts != want {
					t.Errorf("%s: %v, want an *Error after %d attempts", r.name, err, want)
				}
				if unknown := errors.Is(err, riphttp.ErrOutcomeUnknown); unknown != (fault.unproven && r.method == "POST") {
					t.Errorf("%s: %v, is ErrOutcomeUnknown: %t", r.name, err, unknown)
				}
				if got := int(server.conns.Load()); got != want {
					t.Errorf("%s made %d connections, want %d", r.name, got, want)
				}
				arrived := 0
				if fault.arrives {
					arrived = want
				}
				if got := int(server.requests.Load()); got != arrived {
					t.Errorf("%s: the server read %d requests, want %d", r.name, got, arrived)
				}
			})
		}
	}
}

// smallBuffers returns a transport whose connections hold little that the server has not read.
func smallBuffers() *http.Transport {
	base := plain()
	base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			conn.(*net.TCPConn).SetWriteBuffer(64 << 10)
		}
		return conn, err
	}
	return base
}

func TestBrokenConnectionIsFollowedByAnAnswer(t *testing.T) {
	settles(t)
	server := raw(t, []step{read, rst}, []step{read, eof}, []step{read, write(ok), hang})
	c := call(t, plain())
	c.answer(t, request(t, "POST", server.url, "k1", strings.NewReader("order")), 200, "hello")
	if e := c.last(t); e.Attempts != 3 || e.Sends != 3 || e.Err != nil {
		t.Errorf("Done event = %+v, want 3 attempts, 3 sends and no error", e)
	}
}

func TestRequestIsRepeatedWhenTheServerCannotBeReached(t *testing.T) {
	settles(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	for name, dialer := range map[string]*net.Dialer{
		"connection refused": {},
		"dial timeout":       {Timeout: 1},
	} {
		for _, method := range []string{"GET", "POST"} {
			var dials atomic.Int32
			base := plain()
			base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return dialer.DialContext(ctx, network, addr)
			}
			c := call(t, base)
			_, _, err := c.do(t, request(t, method, "http://"+ln.Addr().String(), "", nil))
			if !errors.Is(err, riprap.ErrAttempts) || dials.Load() != 3 {
				t.Errorf("%s: %s after %d dials: %v, want ErrAttempts after 3", name, method, dials.Load(), err)
			}
			if e := c.last(t); e.Sends != 0 || e.Attempts != 3 {
				t.Errorf("%s: %s: Done event = %+v, want 3 attempts and no sends", name, method, e)
			}
		}
	}
}

func TestConnectionClosedUnderTheNextRequest(t *testing.T) {
	for _, test := range []struct {
		name, method, key string
		sends             int // of the second request
		unknown           bool
	}{
		{"a GET is repeated by net/http, which shows in Sends", "GET", "", 2, false},
		{"a POST with a key is repeated by net/http too", "POST", "k1", 2, false},
		{"a POST without a key is sent once", "POST", "", 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			settles(t)
			server := raw(t, []step{read, write(ok), read, eof}, []step{read, write(ok), hang})
			c := call(t, plain())
			c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")

			_, _, err := c.do(t, request(t, test.method, server.url, test.key, strings.NewReader("order")))
			if got := errors.Is(err, riphttp.ErrOutcomeUnknown); got != test.unknown || (err != nil) != test.unknown {
				t.Errorf("%s: %v, want ErrOutcomeUnknown: %t", test.method, err, test.unknown)
			}
			e := c.last(t)
			if e.Attempts != 1 || e.Sends != test.sends {
				t.Errorf("Done event = %+v, want one attempt and %d sends", e, test.sends)
			}
			if got := int(server.requests.Load()); got != 1+e.Sends {
				t.Errorf("the server read %d requests, want 1 and the %d that Sends tells of", got, e.Sends)
			}
		})
	}
}

func TestPostOnAConnectionThatTheServerLeavesIsNeverProcessedTwice(t *testing.T) {
	settles(t)
	// The server leaves after each response, without saying so. Sometimes the client notices in time.
	server := raw(t, []step{read, write(ok), rst})
	c := call(t, plain())
	for range 50 {
		before := server.requests.Load()
		_, _, err := c.do(t, request(t, "POST", server.url, "", strings.NewReader("order")))
		read := server.requests.Load() - before
		if read > 1 || err == nil && read != 1 {
			t.Errorf("POST: %v, and the server read %d requests", err, read)
		}
	}
}

func TestTimeoutThatTheServerWritesWhileARequestIsOnItsWay(t *testing.T) {
	const timeout = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

	t.Run("on a connection used before, a POST without a key is sent again", func(t *testing.T) {
		settles(t)
		told := make(chan struct{})
		server := raw(t, []step{read, write(ok), readSome(1), write(timeout), eof}, []step{read, write(ok), hang})
		c := call(t, plain())
		c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")

		req := request(t, "POST", server.url, "", nil)
		bodies := 0
		req.GetBody = func() (io.ReadCloser, error) {
			if bodies++; bodies == 1 {
				return io.NopCloser(io.MultiReader(strings.NewReader("or"), waitingReader(told), strings.NewReader("der"))), nil
			}
			return io.NopCloser(strings.NewReader("order")), nil
		}
		req.Body, _ = req.GetBody()
		req.ContentLength = 5
		go func() {
			defer close(told)
			waitFor(t, "the second attempt", func() bool { return server.conns.Load() == 2 })
		}()
		c.answer(t, req, 200, "hello")
		if e := c.last(t); e.Attempts != 2 {
			t.Errorf("Done event = %+v, want two attempts", e)
		}
		<-told
	})
	t.Run("on a new connection, a POST without a key is not", func(t *testing.T) {
		settles(t)
		server := raw(t, []step{read, write(timeout), eof})
		c := call(t, plain())
		c.answer(t, request(t, "POST", server.url, "", strings.NewReader("order")), 408, "")
		if got := server.conns.Load(); got != 1 {
			t.Errorf("POST made %d connections, want 1", got)
		}
	})
	t.Run("a GET is sent again in any case", func(t *testing.T) {
		settles(t)
		server := raw(t, []step{read, write(timeout), eof}, []step{read, write(ok), hang})
		c := call(t, plain())
		c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")
	})
	t.Run("on an idle connection nobody notices", func(t *testing.T) {
		settles(t)
		server := raw(t, []step{read, write(ok), write(timeout), eof}, []step{read, write(ok), hang})
		c := call(t, plain())
		c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")
		c.answer(t, request(t, "GET", server.url, "", nil), 200, "hello")
	})
}

// A waitingReader ends when its channel is closed.
type waitingReader <-chan struct{}

func (r waitingReader) Read([]byte) (int, error) {
	<-r
	return 0, io.EOF
}

func TestMisdirectedRequestIsFinalAndTooEarlyIsNot(t *testing.T) {
	for _, test := range []struct {
		status, attempts int
		method           string
	}{
		{http.StatusMisdirectedRequest, 1, "GET"},
		{http.StatusTooEarly, 3, "GET"},
		{http.StatusTooEarly, 1, "POST"},
	} {
		settles(t)
		server := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.status) })
		c := call(t, server.base())
		c.answer(t, request(t, test.method, server.URL, "", nil), test.status, "")
		if got := int(server.requests.Load()); got != test.attempts {
			t.Errorf("%s answered with %d: sent %d times, want %d", test.method, test.status, got, test.attempts)
		}
	}
}

func TestEarlyResponseDoesNotMixTheBodiesOfTwoAttempts(t *testing.T) {
	settles(t)
	content := noise(8 << 20)
	got := make([]byte, len(content))
	early := "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	receive := func(_ *rawServer, c *rawConn) error {
		req, err := http.ReadRequest(c.in)
		if err != nil {
			return err
		}
		_, err = io.ReadFull(req.Body, got)
		return err
	}
	for name, open := range map[string]func() io.ReadCloser{
		"a bytes.Reader": func() io.ReadCloser { return io.NopCloser(bytes.NewReader(content)) },
		"any reader":     func() io.ReadCloser { return io.NopCloser(struct{ io.Reader }{bytes.NewReader(content)}) },
	} {
		for range 3 {
			clear(got)
			server := raw(t, []step{readHeader, write(early)}, []step{receive, write(ok), hang})
			c := call(t, plain())
			req := request(t, "PUT", server.url, "", nil)
			req.Body, req.ContentLength = open(), int64(len(content))
			req.GetBody = func() (io.ReadCloser, error) { return open(), nil }
			c.answer(t, req, 200, "hello")
			if !bytes.Equal(got, content) {
				t.Fatalf("%s: the second attempt carried bytes that are not those of the body", name)
			}
		}
	}
}

func TestHandshakeTimeoutIsRepeatedForAnyMethod(t *testing.T) {
	settles(t)
	server := raw(t, []step{hang})
	base := plain()
	base.TLSHandshakeTimeout = time.Millisecond
	c := call(t, base)
	_, _, err := c.do(t, request(t, "POST", "https://"+server.addr, "", strings.NewReader("order")))
	if !errors.Is(err, riprap.ErrAttempts) {
		t.Errorf("POST: %v, want ErrAttempts", err)
	}
	waitFor(t, "three connections to be accepted", func() bool { return server.conns.Load() == 3 })
}
