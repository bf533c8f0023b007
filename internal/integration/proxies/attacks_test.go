package proxies

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A record is a service that notes the requests which it gets.
type record struct {
	to string

	mu       sync.Mutex
	requests []string // method and target
	bodies   []string
	hosts    []string
	headers  []http.Header
}

func newRecord(t testing.TB) *record {
	t.Helper()
	s := new(record)
	s.to = "http://" + listen(t, func(conn *net.TCPConn) {
		in := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.requests = append(s.requests, r.Method+" "+r.RequestURI)
			s.bodies = append(s.bodies, string(body))
			s.hosts = append(s.hosts, r.Host)
			s.headers = append(s.headers, r.Header)
			s.mu.Unlock()
			if to := r.Header.Get("Upgrade"); to != "" {
				fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", to)
				continue
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	return s
}

// take returns the requests since the last time.
func (s *record) take() (requests []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests, s.requests = s.requests, nil
	return requests
}

// last is what came with the latest request.
func (s *record) last() (host, body string, header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hosts) == 0 {
		return "", "", nil
	}
	n := len(s.hosts) - 1
	return s.hosts[n], s.bodies[n], s.headers[n]
}

// converse sends bytes as they stand and returns the status codes of the answers, and whether the proxy then closed the connection.
func converse(t testing.TB, addr, bytes string) (codes []string, closed bool) {
	t.Helper()
	conn, in := dial(t, addr)
	defer conn.Close()
	if _, err := io.WriteString(conn, bytes); err != nil {
		return nil, true
	}
	for {
		// An answer comes as soon as there is one; if the proxy waits for more bytes, none does.
		conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			e, waits := err.(net.Error)
			return codes, !(waits && e.Timeout())
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		codes = append(codes, resp.Status[:3])
	}
}

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: shop.test\r\n\r\n"

func TestNoRequestIsSmuggledInAnother(t *testing.T) {
	s := newRecord(t)
	p := stand(t, s.to)
	const host = "Host: shop.test\r\n"
	post := func(fields, body string) string { return "POST /a HTTP/1.1\r\n" + host + fields + "\r\n" + body }
	for _, c := range []struct{ name, bytes string }{
		{"a length and a transfer coding", post("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"+smuggled)},
		{"a transfer coding and a length", post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled))},
		{"two transfer codings", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"+smuggled)},
		{"a list of transfer codings", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"+smuggled)},
		{"chunked twice", post("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"+smuggled)},
		{"identity with a length", post("Transfer-Encoding: identity\r\nContent-Length: 0\r\n", smuggled)},
		{"an unknown transfer coding", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"+smuggled)},
		{"a transfer coding with a control character", post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"+smuggled)},
		{"a transfer coding in quotes", post("Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n"+smuggled)},
		{"a space before the colon", post("Transfer-Encoding : chunked\r\nContent-Length: 0\r\n", smuggled)},
		{"two lengths", post("Content-Length: 0\r\nContent-Length: 44\r\n", smuggled)},
		{"a list of lengths", post("Content-Length: 0, 44\r\n", smuggled)},
		{"a length with a plus", post("Content-Length: +0\r\n", smuggled)},
		{"a length below zero", post("Content-Length: -1\r\n", smuggled)},
		{"a length in hexadecimal", post("Content-Length: 0x0\r\n", smuggled)},
		{"a length with a space in it", post("Content-Length: 0 44\r\n", smuggled)},
		{"an empty length", post("Content-Length: \r\n", smuggled)},
		{"a length that is beyond all numbers", post("Content-Length: 99999999999999999999\r\n", smuggled)},
		{"a chunk size with a plus", post("Transfer-Encoding: chunked\r\n", "+0\r\n\r\n"+smuggled)},
		{"a chunk size in hexadecimal of a language", post("Transfer-Encoding: chunked\r\n", "0x0\r\n\r\n"+smuggled)},
		{"a chunk size that is beyond all numbers", post("Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\n"+smuggled)},
		{"a chunk that is longer than it says", post("Transfer-Encoding: chunked\r\n", "1\r\nabc\r\n0\r\n\r\n"+smuggled)},
		{"a chunk extension with a line feed", post("Transfer-Encoding: chunked\r\n", "1;a\nb\r\nx\r\n0\r\n\r\n"+smuggled)},
		{"a chunk extension with a carriage return", post("Transfer-Encoding: chunked\r\n", "1;a\rb\r\nx\r\n0\r\n\r\n"+smuggled)},
		{"a chunk that ends with a line feed", post("Transfer-Encoding: chunked\r\n", "1\nx\n0\n\n"+smuggled)},
		{"a trailer with a length", post("Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", "0\r\nContent-Length: 44\r\n\r\n"+smuggled)},
		{"a carriage return in a field", post("X-A: b\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", smuggled)},
		{"a carriage return before a field", post("\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n", smuggled)},
		{"a NUL in a field", post("X-A: b\x00c\r\nContent-Length: 0\r\n", smuggled)},
		{"a NUL in the name of a field", post("X-\x00A: b\r\nContent-Length: 0\r\n", smuggled)},
		{"a field without a colon", post("X-A\r\nContent-Length: 0\r\n", smuggled)},
		{"a field without a name", post(": b\r\nContent-Length: 0\r\n", smuggled)},
		{"a space in the name of a field", post("X A: b\r\nContent-Length: 0\r\n", smuggled)},
		{"a transfer coding in HTTP/1.0", "POST /a HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n" + smuggled},
		{"two hosts", "GET /a HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n" + smuggled},
		{"no host", "GET /a HTTP/1.1\r\n\r\n" + smuggled},
		{"a host with a path", "GET /a HTTP/1.1\r\nHost: a.test/b\r\n\r\n" + smuggled},
		{"a host with a space", "GET /a HTTP/1.1\r\nHost: a.test b.test\r\n\r\n" + smuggled},
		{"junk before the request", "junk\r\n" + smuggled},
		{"a space before the first field", "GET /a HTTP/1.1\r\n Host: shop.test\r\n\r\n" + smuggled},
		{"two spaces in the request line", "GET  /a HTTP/1.1\r\n" + host + "\r\n" + smuggled},
		{"a space in the target", "GET /a HTTP/1.1 HTTP/1.1\r\n" + host + "\r\n" + smuggled},
		{"a NUL in the target", "GET /a\x00b HTTP/1.1\r\n" + host + "\r\n" + smuggled},
		{"a tab in the request line", "GET\t/a\tHTTP/1.1\r\n" + host + "\r\n" + smuggled},
		{"a method that is none", "G(T /a HTTP/1.1\r\n" + host + "\r\n" + smuggled},
		{"HTTP/0.9", "GET /a\r\n" + host + "\r\n" + smuggled},
		{"a version that is none", "GET /a HTTP/1.1x\r\n" + host + "\r\n" + smuggled},
		{"HTTP/2 as text", "GET /a HTTP/2.0\r\n" + host + "\r\n" + smuggled},
		{"a target with a fragment and a scheme that is none", "GET smug://x/y HTTP/1.1x\r\n" + host + "\r\n" + smuggled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // where the proxy waits for more, that takes its time
			codes, closed := converse(t, p.addr, c.bytes)
			if !closed || len(codes) > 1 {
				t.Errorf("%q: answered with %v, and the connection is closed: %v; want one answer at most and the end of the connection", c.bytes, codes, closed)
			}
		})
	}
	t.Cleanup(func() { // after all of them
		for _, r := range s.take() {
			if r != "POST /a" && r != "GET /a" {
				t.Errorf("the service got %q, want no such request", r)
			}
		}
	})
}

func TestABodyStaysABodyWhateverIsInIt(t *testing.T) {
	s := newRecord(t)
	p := stand(t, s.to)
	const host = "Host: shop.test\r\n"
	for _, c := range []struct{ name, bytes string }{
		{"a GET with a body", "GET /a HTTP/1.1\r\n" + host + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(smuggled)) + smuggled},
		{"the length named as a field of the connection", "POST /a HTTP/1.1\r\n" + host + fmt.Sprintf("Content-Length: %d\r\nConnection: Content-Length\r\n\r\n", len(smuggled)) + smuggled},
		{"the coding named as a field of the connection", "POST /a HTTP/1.1\r\n" + host + fmt.Sprintf("Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)},
		{"equal lengths", "POST /a HTTP/1.1\r\n" + host + strings.Repeat(fmt.Sprintf("Content-Length: %d\r\n", len(smuggled)), 2) + "\r\n" + smuggled},
		{"lines that end with a line feed", "POST /a HTTP/1.1\nHost: shop.test\n" + fmt.Sprintf("Content-Length: %d\n\n", len(smuggled)) + smuggled},
		{"a folded field", "POST /a HTTP/1.1\r\n" + host + fmt.Sprintf("X-A: b\r\n c\r\nContent-Length: %d\r\n\r\n", len(smuggled)) + smuggled},
	} {
		codes, _ := converse(t, p.addr, c.bytes)
		got := s.take()
		if len(got) > 1 || len(got) == 1 && !strings.HasSuffix(got[0], " /a") {
			t.Errorf("%s: the service got %v, want one request at most", c.name, got)
		}
		if _, body, _ := s.last(); len(got) == 1 && (body != smuggled || !slices.Equal(codes, []string{"200"})) {
			t.Errorf("%s: answered with %v, and the service got the body %q, want 200 and %q", c.name, codes, body, smuggled)
		}
	}
	converse(t, p.addr, "GET http://a.test/x HTTP/1.1\r\nHost: b.test\r\n\r\n")
	if host, _, _ := s.last(); host != "a.test" {
		t.Errorf("a target with a host, and another Host: the service got Host %q, want that of the target", host)
	}
	converse(t, p.addr, "POST /a HTTP/1.1\r\nHost: shop.test\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n")
	if _, _, header := s.last(); header.Get("X-A") != "b c" && header.Get("X-A") != "" {
		t.Errorf("a folded field: the service got %q, want it on one line, or refused", header["X-A"])
	}
}

func TestHTTPIsNoTunnelThroughTheProxy(t *testing.T) {
	s := newRecord(t)
	p := stand(t, s.to, guards...)
	for _, upgrade := range []string{"h2c", "H2C", "websocket, h2c", "HTTP/2.0", "TLS/1.2"} {
		conn, in := dial(t, p.addr)
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: %s\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", upgrade)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode == http.StatusSwitchingProtocols {
			t.Errorf("Upgrade: %s: got %+v, %v, want an answer that is no upgrade", upgrade, resp, err)
		}
		if _, _, header := s.last(); header["Upgrade"] != nil || header["Http2-Settings"] != nil {
			t.Errorf("Upgrade: %s: the service got %v, want none of it", upgrade, header)
		}
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	s := newRecord(t)
	p := stand(t, s.to, "--max-body", "2KiB", "--max-header", "16KiB")
	const line = "POST /a HTTP/1.1\r\nHost: shop.test\r\n"
	for _, c := range []struct {
		name, bytes string
		codes       []string
	}{
		{"a field of a MiB", line + "X-A: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", []string{"431"}},
		{"ten thousand fields", line + strings.Repeat("X-A: b\r\n", 10000) + "\r\n", []string{"431"}},
		{"a target of a MiB", "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: shop.test\r\n\r\n", []string{"431", "414"}},
		{"a header without an end", line + strings.Repeat("X-A: b\r\n", 100000), []string{"431"}},
		{"a body that says it is too long", line + "Content-Length: 4096\r\n\r\n" + strings.Repeat("x", 4096), []string{"413"}},
		{"a body that turns out to be too long", line + "Transfer-Encoding: chunked\r\n\r\n1000\r\n" + strings.Repeat("x", 4096) + "\r\n0\r\n\r\n", []string{"413"}},
	} {
		codes, closed := converse(t, p.addr, c.bytes)
		if len(codes) > 1 || len(codes) == 1 && !slices.Contains(c.codes, codes[0]) || !closed {
			t.Errorf("%s: answered with %v, closed %v, want %v and the end of the connection", c.name, codes, closed, c.codes)
		}
		if got := s.take(); len(got) > 0 {
			t.Errorf("%s: the service got %v, want nothing", c.name, got)
		}
	}
	if codes, _ := converse(t, p.addr, line+"Content-Length: 2048\r\n\r\n"+strings.Repeat("x", 2048)); !slices.Equal(codes, []string{"200"}) {
		t.Errorf("a body that is just small enough: answered with %v, want 200", codes)
	}
}

func TestABodyThatDripsIsEnded(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newRecord(t)
	p := stand(t, s.to, "--silence", "1s")
	conn, in := dial(t, p.addr)
	io.WriteString(conn, "POST /a HTTP/1.1\r\nHost: shop.test\r\nContent-Length: 100000\r\n\r\n")
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(300 * time.Millisecond):
				io.WriteString(conn, "x") // never silent, and for hours if it is let
			}
		}
	}()
	resp, err := http.ReadResponse(in, nil)
	close(ended)
	if err != nil || resp.StatusCode != http.StatusRequestTimeout || !resp.Close {
		t.Errorf("a body that comes byte by byte: got %+v, %v, want a 408 and the end of the connection", resp, err)
	}
	if got := s.take(); len(got) > 0 {
		t.Errorf("the service got %v, want nothing", got)
	}
}

func TestSoakAHeaderThatDripsIsEnded(t *testing.T) {
	soaks(t)
	p := stand(t, newRecord(t).to)
	conn, in := dial(t, p.addr)
	io.WriteString(conn, "GET /a HTTP/1.1\r\nHost: shop.test\r\n")
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Millisecond):
				io.WriteString(conn, "X: y\r\n")
			}
		}
	}()
	_, err := io.Copy(io.Discard, in)
	close(ended)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Errorf("a header that comes line by line: the connection is still open after %v", patience)
	}
}
