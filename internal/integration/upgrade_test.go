package integration_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/riprap-go/riprap/riphttp"
)

// shout switches to a protocol of which each line comes back in capitals, and the word bye when the client is done.
func shout(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "shout" {
		http.Error(w, "no upgrade asked for", 400)
		return
	}
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n")
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			io.WriteString(conn, "bye\n")
			return
		}
		io.WriteString(conn, strings.ToUpper(line))
	}
}

// converse speaks shout and ends with the client's half of the connection.
func converse(t *testing.T, conn io.ReadWriter, in *bufio.Reader, closeWrite func() error) {
	t.Helper()
	for _, word := range []string{"one", "two", "three"} {
		if _, err := io.WriteString(conn, word+"\n"); err != nil {
			t.Fatalf("writing %s: %v", word, err)
		}
		if line, err := in.ReadString('\n'); err != nil || line != strings.ToUpper(word)+"\n" {
			t.Fatalf("read %q, %v, want %s in capitals", line, err, word)
		}
	}
	if err := closeWrite(); err != nil {
		t.Fatalf("CloseWrite: %v", err)
	}
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "bye\n" {
		t.Errorf("after CloseWrite read %q, %v, want bye", rest, err)
	}
}

func TestUpgradedConnectionIsReadAndWritten(t *testing.T) {
	settles(t)
	server := serve(t, flaky(1, shout))
	c := call(t, server.base())
	req := request(t, "GET", server.URL, "", nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "shout")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("GET = %d, want 101", resp.StatusCode)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatalf("body is a %T, want an io.ReadWriteCloser", resp.Body)
	}
	half, ok := resp.Body.(interface{ CloseWrite() error })
	if !ok {
		t.Fatalf("body is a %T, want one with CloseWrite", resp.Body)
	}
	converse(t, conn, bufio.NewReader(conn), half.CloseWrite)
	resp.Body.Close()
	if e := c.last(t); e.Attempts != 2 || e.Err != nil {
		t.Errorf("Done event = %+v, want two attempts and no error", e)
	}
}

// inFront returns a reverse proxy that sends by riprap.
func inFront(t *testing.T, of *server) *server {
	t.Helper()
	target, err := url.Parse(of.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := of.base()
	t.Cleanup(base.CloseIdleConnections)
	return serve(t, nil, func(s *httptest.Server) {
		s.Config.Handler = &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: &riphttp.Transport{Base: base, Policy: quick()},
		}
	})
}

func TestReverseProxyPassesAnUpgrade(t *testing.T) {
	settles(t)
	server := serve(t, flaky(1, shout))
	proxy := inFront(t, server)
	conn, err := net.Dial("tcp", proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: proxy.test\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade through the proxy: %v, %v, want 101", resp, err)
	}
	converse(t, conn, in, conn.(*net.TCPConn).CloseWrite)
}

func TestReverseProxyPassesRequestsAndAnswers(t *testing.T) {
	settles(t)
	content := string(noise(1 << 20))
	server := serve(t, flaky(1, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // to its end: a server of net/http does not read on once it has begun to answer
		w.Write(body)
	}))
	proxy := inFront(t, server)
	client := proxy.base()
	t.Cleanup(client.CloseIdleConnections)
	for _, test := range []struct {
		method, body string
		status       int
	}{
		{"PUT", "order", 200},  // small enough to be kept
		{"POST", "order", 200}, // the server fails no more
		{"PUT", content, 200},
	} {
		resp, err := client.RoundTrip(request(t, test.method, proxy.URL, "", strings.NewReader(test.body)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != test.status || string(got) != test.body {
			t.Errorf("%s of %d bytes through the proxy = %d with %d bytes, %v", test.method, len(test.body), resp.StatusCode, len(got), err)
		}
	}
}
