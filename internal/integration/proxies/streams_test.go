package proxies

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve starts a service of net/http that speaks one protocol. The address is for the proxy.
func serve(t testing.TB, p protocol, h http.HandlerFunc) (to string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(p == http1)
	s.Config.Protocols.SetUnencryptedHTTP2(p == h2c)
	s.Start()
	t.Cleanup(s.Close)
	if p == h2c {
		return "h2c://" + s.Listener.Addr().String()
	}
	return s.URL
}

// pairs calls a test for each protocol of a client together with each of a service.
func pairs(t *testing.T, test func(t *testing.T, client, service protocol)) {
	for _, client := range []protocol{http1, h2c} {
		for _, service := range []protocol{http1, h2c} {
			t.Run(string(client)+" to "+string(service), func(t *testing.T) { test(t, client, service) })
		}
	}
}

func TestLargeBodiesPassWhole(t *testing.T) {
	const size = 32 // MiB
	whole := newSum()
	for range size {
		whole.Write(block)
	}
	pairs(t, func(t *testing.T, client, service protocol) {
		p := stand(t, serve(t, service, serveGo))
		tr := newTransport(t, client, "")
		down, err := goExchange(tr, p.url, exchange{Method: "GET", Target: fmt.Sprintf("/down/%d", size)})
		if err != nil || down.Hash != whole.String() {
			t.Errorf("a body of %d MiB from the service: got %d bytes, error %v, want all", size, down.Length, err)
		}
		up, err := goExchange(tr, p.url, exchange{Method: "POST", Target: "/up", Blocks: size})
		if want := fmt.Sprintf("%d %s\n", whole.n, whole); err != nil || up.Body != want {
			t.Errorf("a body of %d MiB to the service: it got %q, error %v, want %q", size, up.Body, err, want)
		}
	})
}

func TestTheFirstBytesOfABodyDoNotWaitForTheLast(t *testing.T) {
	pairs(t, func(t *testing.T, client, service protocol) {
		first, last := make(chan struct{}), make(chan struct{})
		p := stand(t, serve(t, service, func(w http.ResponseWriter, r *http.Request) {
			one := make([]byte, 1)
			if _, err := io.ReadFull(r.Body, one); err != nil {
				t.Errorf("the service reads the first byte: %v", err)
			}
			close(first)
			if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != "rest" {
				t.Errorf("the service reads the rest: %q, %v", rest, err)
			}
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: 1\n\n")
			http.NewResponseController(w).Flush()
			<-last
			io.WriteString(w, "data: 2\n\n")
		}))
		body, say := io.Pipe()
		go func() {
			io.WriteString(say, "a")
			<-first // or the test hangs
			io.WriteString(say, "rest")
			say.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", p.url+"/stream", body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := newTransport(t, client, "").RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		event := make([]byte, len("data: 1\n\n"))
		if _, err := io.ReadFull(resp.Body, event); err != nil || string(event) != "data: 1\n\n" {
			t.Errorf("the client reads the first event: %q, %v", event, err)
		}
		close(last)
		if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "data: 2\n\n" {
			t.Errorf("the client reads the rest: %q, %v", rest, err)
		}
	})
}

func TestATunnelPassesBytesInBothDirections(t *testing.T) {
	t.Parallel() // it waits more than it works
	ended := make(chan struct{})
	p := stand(t, serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", r.Header.Get("Sec-WebSocket-Key"))
		rw.Flush()
		io.Copy(conn, rw)
		close(ended)
	}), "--silence", "1s", "--attempts", "1", "--attempt-timeout", "1s", "--timeout", "2s")
	conn, in := dial(t, p.addr)
	fmt.Fprintf(conn, "GET /socket HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhl\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 || resp.Header.Get("Upgrade") != "websocket" || resp.Header.Get("Sec-WebSocket-Accept") != "dGhl" {
		t.Fatalf("the upgrade: got %+v, %v, want it to be made", resp, err)
	}
	<-time.After(3 * time.Second) // longer than all that bounds a request
	frames := bytes.Repeat([]byte{0x82, 0x7e, 0, 0xff, '\r', '\n'}, 1<<15)
	go conn.Write(frames)
	echoed := make([]byte, len(frames))
	if _, err := io.ReadFull(in, echoed); err != nil || !bytes.Equal(echoed, frames) {
		t.Errorf("what came back through the tunnel: %v, want what was sent", err)
	}
	conn.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Errorf("the service's end of the tunnel is still open %v after the client has closed its own", patience)
	}
}

func TestAClientThatAsksFirstIsAnsweredByTheService(t *testing.T) {
	to := serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Take") == "" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		serveGo(w, r)
	})
	p := stand(t, to)
	const size = 100 << 10 // more than the proxy reads by itself
	for _, c := range []struct{ field, want string }{
		{"", "HTTP/1.1 417"},
		{"X-Take: yes\r\n", "HTTP/1.1 100"},
	} {
		conn, in := dial(t, p.addr)
		fmt.Fprintf(conn, "POST /up HTTP/1.1\r\nHost: shop.test\r\nExpect: 100-continue\r\n%sContent-Length: %d\r\n\r\n", c.field, size)
		status, err := in.ReadString('\n')
		if err != nil || !strings.HasPrefix(status, c.want) {
			t.Errorf("POST with Expect and %q, before its body: got %q, %v, want %s", c.field, status, err, c.want)
		}
		if c.field == "" {
			continue
		}
		io.WriteString(conn, strings.Repeat("x", size))
		in.ReadString('\n')
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("the answer after the body: got %+v, %v, want 200", resp, err)
		}
	}
}

// dial opens a connection, which ends with the test. Nothing on it may take longer than a test's patience.
func dial(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn, bufio.NewReader(conn)
}
