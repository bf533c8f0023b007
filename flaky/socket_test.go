package flaky

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// dial sends a request on a connection of its own, on which nothing is ever repeated.
func dial(t *testing.T, url, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n"))
	return conn
}

const (
	get  = "GET /x HTTP/1.1\nHost: flaky.test\n\n"
	post = "POST /x HTTP/1.1\nHost: flaky.test\nContent-Length: 5\n\nhello"
)

func TestAResetIsSeenAsOneAndACloseAsTheEnd(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		t.Skip("a reset has another number here")
	}
	tests := []struct {
		script, request string
		want            error
	}{
		{"reset", get, syscall.ECONNRESET},
		{"reset", post, syscall.ECONNRESET},
		{"reset delay=1ms", get, syscall.ECONNRESET},
		{"close", get, io.EOF},
		{"close", post, io.EOF},
		{"hang=1ms", post, io.EOF},
	}
	for _, tt := range tests {
		h := newHandler(t, tt.script)
		conn := dial(t, listen(t, h), tt.request)
		n, err := conn.Read(make([]byte, 1))
		if n != 0 || !errors.Is(err, tt.want) {
			t.Errorf("%s: the client read %d bytes, %v, want 0, %v", tt.script, n, err, tt.want)
		}
		a := one(t, h, "")
		if a.Ended.IsZero() || a.Left || !a.Whole {
			t.Errorf("%s: the log has ended %v, left %v, whole %v, want it ended by the server, read whole", tt.script, a.Ended, a.Left, a.Whole)
		}
	}
}

func TestACutBodyIsShorterThanAnnounced(t *testing.T) {
	tests := []struct {
		script       string
		bytes, total int64
	}{
		{"cut=100", 100, 1100},
		{"cut=0", 0, 1000},
		{"cut=100000", 100000, 101000},
		{`cut=3 body="hello"`, 3, 5},
	}
	for _, tt := range tests {
		h := newHandler(t, tt.script)
		resp, err := http.Get(listen(t, h))
		if err != nil {
			t.Errorf("%s: GET: %v", tt.script, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if int64(len(body)) != tt.bytes || resp.ContentLength != tt.total || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: got %d of %d bytes, %v, want %d of %d, %v", tt.script, len(body), resp.ContentLength, err,
				tt.bytes, tt.total, io.ErrUnexpectedEOF)
		}
		if a := one(t, h, ""); a.Ended.IsZero() || a.Left {
			t.Errorf("%s: the log has ended %v, left %v, want it ended by the server", tt.script, a.Ended, a.Left)
		}
	}
}

func TestAnAnswerToHeadHasNoBodyAndIsWhole(t *testing.T) {
	for _, script := range []string{"200 body=ok", "cut=100", "slow=1h/byte", "endless"} {
		h := newHandler(t, script)
		resp, err := http.Head(listen(t, h))
		if err != nil {
			t.Errorf("HEAD, %s: %v", script, err)
			continue
		}
		if body, err := io.ReadAll(resp.Body); len(body) > 0 || err != nil || resp.StatusCode != 200 {
			t.Errorf("HEAD, %s = %d %q, %v, want 200 and nothing", script, resp.StatusCode, body, err)
		}
		if a := one(t, h, ""); a.Left || a.Ended.IsZero() {
			t.Errorf("HEAD, %s: the log has ended %v, left %v, want it answered", script, a.Ended, a.Left)
		}
	}
}

func TestAConnectionIsKeptAfterAnAnswer(t *testing.T) {
	h := newHandler(t, "503, slow=1ns/byte, 404 body=x, 200")
	url := listen(t, h)
	for range 4 {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	list := h.Arrivals("")
	for _, a := range list {
		if a.Conn != list[0].Conn {
			t.Errorf("%s came from %s, the first from %s, want one connection", a.Step, a.Conn, list[0].Conn)
		}
	}
}

func TestOverHTTP2FaultsAbortTheStreamAndLeaveTheConnection(t *testing.T) {
	h := newHandler(t, "reset, close, cut=10, hang=1ms, 200")
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for range 4 {
		resp, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("x"))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "stream error") {
			t.Errorf("POST: got %v, want a stream error", err)
		}
	}
	resp, err := s.Client().Get(s.URL)
	if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != 200 {
		t.Fatalf("GET = %v, %v, want 200 over HTTP/2", resp, err)
	}
	resp.Body.Close()
	list := h.Arrivals("")
	if len(list) != 5 || list[0].Conn != list[4].Conn {
		t.Errorf("the log has %d arrivals, want 5 on one connection: %+v", len(list), list)
	}
}

func TestAResetOverTLSIsOneToo(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		t.Skip("a reset has another number here")
	}
	s := httptest.NewTLSServer(newHandler(t, "reset"))
	defer s.Close()
	_, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("x"))
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("POST over TLS: got %v, want %v", err, syscall.ECONNRESET)
	}
}

// Without Hijack, as under some middleware, a reset is at least an end.
func TestAResetWithoutAConnectionAborts(t *testing.T) {
	h := newHandler(t, "reset")
	_, err := http.Get(listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})))
	if !errors.Is(err, io.EOF) {
		t.Errorf("GET: got %v, want %v", err, io.EOF)
	}
}

func TestWhoeverHangsGoesWhenTheServerIsClosed(t *testing.T) {
	for _, script := range []string{"hang", "200 delay=1h", "slow=1h/byte", "endless", "reset delay=1h"} {
		h := newHandler(t, script)
		var serving sync.WaitGroup
		arrived := make(chan bool)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			serving.Add(1)
			defer serving.Done()
			close(arrived)
			h.ServeHTTP(w, r)
		}))
		dial(t, s.URL, get)
		<-arrived
		s.Config.Close()
		serving.Wait()
		if a := one(t, h, ""); !a.Left || a.Ended.IsZero() {
			t.Errorf("%s: the log has ended %v, left %v, want it left", script, a.Ended, a.Left)
		}
	}
}

func TestAnEndlessBodyIsNoLoadWhileNobodyReadsIt(t *testing.T) {
	h := newHandler(t, "endless")
	conn := dial(t, listen(t, h), get)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.CopyN(io.Discard, resp.Body, 4<<10); err != nil || resp.ContentLength != -1 {
		t.Errorf("read %d bytes of %d, %v, want 4096 of a body without a length", n, resp.ContentLength, err)
	}
	conn.Close()
	for one(t, h, "").Ended.IsZero() {
		time.Sleep(time.Millisecond)
	}
	if a := one(t, h, ""); !a.Left {
		t.Errorf("after the client closed: left %v, want true", a.Left)
	}
}
