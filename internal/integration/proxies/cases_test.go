package proxies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// scripted starts a service of raw bytes: the n-th request of all, from 1, is answered with what it returns, after which the
// connection ends.
func scripted(t testing.TB, answer func(n int) string) (to string, requests *atomic.Int32) {
	t.Helper()
	requests = new(atomic.Int32)
	addr := listen(t, func(conn *net.TCPConn) {
		if _, err := readRequest(conn); err == nil {
			io.WriteString(conn, answer(int(requests.Add(1))))
		}
	})
	return "http://" + addr, requests
}

func TestAFailedPostIsNotSentAgainAndItsErrorArrivesAsItIs(t *testing.T) {
	const failure = "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/x-odd\r\nX-Fault: a, b\r\nContent-Length: 7\r\n\r\nbroken\n"
	for _, c := range []struct {
		name, answer string
		status       int
		kind         string
	}{
		{"it hangs", "", http.StatusGatewayTimeout, "outcome-unknown"},
		{"it closes", "close", http.StatusBadGateway, "outcome-unknown"},
		{"it answers 500", failure, http.StatusInternalServerError, ""},
		{"it answers 503", strings.Replace(failure, "500", "503", 1), http.StatusServiceUnavailable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var requests atomic.Int32
			to := "http://" + listen(t, func(conn *net.TCPConn) {
				if _, err := readRequest(conn); err != nil {
					return
				}
				requests.Add(1)
				if c.answer == "" {
					io.Copy(io.Discard, conn)
				} else if c.answer != "close" {
					io.WriteString(conn, c.answer)
				}
			})
			p := stand(t, to, "--attempt-timeout", "300ms", "--timeout", "5s")
			a, err := goExchange(newTransport(t, http1, ""), p.url, exchange{Method: "POST", Target: "/", Body: "x"})
			if err != nil || a.Status != c.status || kindOf(a.Body) != c.kind || requests.Load() != 1 {
				t.Errorf("POST: got %d %q, %v, after %d requests, want %d, problem %q, one request", a.Status, a.Body, err, requests.Load(), c.status, c.kind)
			}
			if c.kind == "" {
				if got := listed(a.Fields); a.Body != "broken\n" || !strings.Contains(got, "x-fault: a, b\n") || !strings.Contains(got, "content-type: text/x-odd\n") {
					t.Errorf("POST: got %s%q, want the service's answer", got, a.Body)
				}
			}
		})
	}
}

func TestAPostThatWasNotSentMaySafelyBeSentAgain(t *testing.T) {
	addr := freeAddr(t)
	p := stand(t, "http://"+addr, "--require-key", "POST /charge", "--scope", "single-tenant", "--attempts", "2")
	tr := newTransport(t, http1, "")
	for _, path := range []string{"/charge", "/free"} {
		send := exchange{Method: "POST", Target: path, Body: "x", Fields: [][2]string{{"Idempotency-Key", "k"}}}
		a, err := goExchange(tr, p.url, send)
		if err != nil || a.Status != http.StatusBadGateway || kindOf(a.Body) != "unreachable" || !strings.Contains(a.Body, `"reached":"no"`) {
			t.Errorf("POST %s while nobody listens: got %d %q, %v, want a 502 that says that nobody was reached", path, a.Status, a.Body, err)
		}
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("somebody else has taken the address: %v", err)
	}
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: http.HandlerFunc(serveGo)}}
	s.Start()
	t.Cleanup(s.Close)
	for _, path := range []string{"/charge", "/free"} {
		send := exchange{Method: "POST", Target: path, Body: "x", Fields: [][2]string{{"Idempotency-Key", "k"}}}
		if a, err := goExchange(tr, p.url, send); err != nil || a.Status != 200 {
			t.Errorf("POST %s with the same key once somebody listens: got %d %q, %v, want 200", path, a.Status, a.Body, err)
		}
	}
}

func TestABodyIsSentAgainWholeOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		size, sends int
		chunked     bool
	}{{0, 2, false}, {65536, 2, false}, {65537, 1, false}, {90000, 1, false}, {65536, 1, true}, {90000, 1, true}} {
		t.Run(fmt.Sprintf("%d bytes, chunked %v", c.size, c.chunked), func(t *testing.T) {
			body := bytes.Repeat([]byte("0123456789"), c.size/10+1)[:c.size]
			want := newSum()
			want.Write(body)
			var mu sync.Mutex
			var got []string
			p := stand(t, serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
				s := newSum()
				io.Copy(s, r.Body)
				mu.Lock()
				defer mu.Unlock()
				if got = append(got, s.String()); len(got) == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			a, err := goExchange(newTransport(t, http1, ""), p.url, exchange{Method: "PUT", Target: "/", Body: string(body), Chunked: c.chunked})
			status := http.StatusServiceUnavailable
			if c.sends == 2 {
				status = http.StatusOK
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil || a.Status != status || !slices.Equal(got, slices.Repeat([]string{want.String()}, c.sends)) {
				t.Errorf("PUT: got %d, %v; the service got bodies %v, want %d and %d times %v", a.Status, err, got, status, c.sends, want)
			}
		})
	}
}

func TestManyLargeUploadsDoNotFillTheMemory(t *testing.T) {
	const uploads, size = 60, 10 << 20
	gather := make(chan struct{})
	var arrived atomic.Int32
	p := stand(t, serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == uploads { // all of them are under way
			close(gather)
		}
		select {
		case <-gather:
			io.Copy(io.Discard, r.Body)
		case <-r.Context().Done():
		}
	}), "--silence", "1m")
	before := p.memory(t)
	tr := newTransport(t, http1, "")
	var running sync.WaitGroup
	for range uploads {
		running.Go(func() {
			req, err := http.NewRequest("POST", p.url+"/", &zeros{left: size})
			if err != nil {
				t.Error(err)
				return
			}
			req.ContentLength = size
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Errorf("an upload: %v", err)
				return
			}
			resp.Body.Close()
		})
	}
	running.Wait()
	// The detector of races needs several times the memory that the program has.
	if after, limit := p.memory(t), before+uploads*size/4; after > limit {
		t.Errorf("the proxy had %d MiB, and %d MiB after %d uploads of %d MiB at once, want no more than %d MiB", before>>20, after>>20, uploads, size>>20, limit>>20)
	} else {
		t.Logf("%d MiB before, at most %d MiB with %d uploads of %d MiB at once", before>>20, after>>20, uploads, size>>20)
	}
}

type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), z.left)
	z.left -= n
	return n, nil
}

// memory is the most that the proxy has had, in bytes.
func (p *proxy) memory(t testing.TB) int { return p.status(t, "VmHWM:") << 10 }

// status is a number of what Linux says of the process.
func (p *proxy) status(t testing.TB, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this system has no /proc/PID/status")
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	t.Fatalf("%s is not in the status of the process: %v", name, err)
	return 0
}

func TestAnAnswerThatBreaksOffIsNeitherSentAgainNorEndedWell(t *testing.T) {
	for _, client := range []protocol{http1, h2c} {
		for _, framing := range []string{"Content-Length: 5000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n400\r\n"} {
			t.Run(string(client)+" "+framing[:8], func(t *testing.T) {
				to, requests := scripted(t, func(int) string { return "HTTP/1.1 200 OK\r\n" + framing + strings.Repeat("x", 1024) })
				p := stand(t, to)
				resp, err := newTransport(t, client, "").RoundTrip(get(t, p.url))
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if body, err := io.ReadAll(resp.Body); err == nil || len(body) != 1024 || requests.Load() != 1 {
					t.Errorf("GET: got %d bytes, error %v, after %d requests, want 1024, an error, one request", len(body), err, requests.Load())
				}
			})
		}
	}
}

func TestFieldsOfAFailedAttemptDoNotArrive(t *testing.T) {
	to, requests := scripted(t, func(n int) string {
		if n == 1 {
			return "HTTP/1.1 503 Service Unavailable\r\nSet-Cookie: a=1\r\nX-From: first\r\nRetry-After: 0\r\nContent-Length: 9\r\n\r\nnot today"
		}
		return "HTTP/1.1 200 OK\r\nX-From: second\r\nContent-Length: 5\r\n\r\nhello"
	})
	p := stand(t, to)
	a, err := goExchange(newTransport(t, http1, ""), p.url, exchange{Method: "GET", Target: "/"})
	if got := listed(a.Fields); err != nil || a.Status != 200 || a.Body != "hello" || requests.Load() != 2 ||
		strings.Contains(got, "set-cookie") || !strings.Contains(got, "x-from: second\n") || strings.Contains(got, "first") {
		t.Errorf("GET: got %d %s%q, %v, after %d requests, want the second answer alone", a.Status, got, a.Body, err, requests.Load())
	}
}

func TestEachAttemptIsToldTheTimeThatIsLeftForIt(t *testing.T) {
	var mu sync.Mutex
	var told []string
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	p := stand(t, serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		told = append(told, strings.Join(r.Header[deadline.TimeoutHeader], ","))
		mu.Unlock()
		if r.URL.Path == "/hang" {
			select {
			case <-r.Context().Done():
			case <-hang:
			}
		}
	}), "--timeout", "4s", "--attempt-timeout", "400ms", "--attempts", "3")
	ask := func(path, timeout string) (answer, []int) {
		mu.Lock()
		told = nil
		mu.Unlock()
		e := exchange{Method: "GET", Target: path}
		if timeout != "" {
			e.Fields = [][2]string{{deadline.TimeoutHeader, timeout}}
		}
		a, err := goExchange(newTransport(t, http1, ""), p.url, e)
		if err != nil {
			t.Fatalf("GET %s with a time of %q: %v", path, timeout, err)
		}
		mu.Lock()
		defer mu.Unlock()
		var left []int
		for _, s := range told {
			n, err := strconv.Atoi(s)
			if err != nil || n <= 0 || n > 400 {
				t.Errorf("GET %s with a time of %q: the service was told %q, want up to 400", path, timeout, s)
			}
			left = append(left, n)
		}
		return a, left
	}
	for _, timeout := range []string{"", "0", "-5", "abc", "999999999S", "99999999999999999999", "3600000", "1e3"} {
		if a, left := ask("/", timeout); a.Status != 200 || len(left) != 1 {
			t.Errorf("GET with a time of %q: got %d after %d requests, want 200 after one", timeout, a.Status, len(left))
		}
	}
	if a, left := ask("/", "300"); len(left) > 1 || len(left) == 1 && left[0] >= 300 || a.Status != 200 && a.Status != http.StatusGatewayTimeout {
		t.Errorf("GET with a time of 300 ms: got %d, the service was told %v, want less than that", a.Status, left)
	}
	if a, left := ask("/hang", ""); a.Status != http.StatusGatewayTimeout || len(left) < 2 {
		t.Errorf("GET that hangs: got %d, the service was told %v, want 504 after several attempts", a.Status, left)
	}
	if a, left := ask("/hang", "600"); a.Status != http.StatusGatewayTimeout || len(left) == 2 && left[1] >= 200 || len(left) > 2 {
		t.Errorf("GET that hangs and has 600 ms: got %d, the service was told %v, want a second attempt to have what is left of them", a.Status, left)
	}
	if a, left := ask("/", "1"); len(left) > 0 && a.Status != 200 || len(left) == 0 && a.Status != http.StatusGatewayTimeout {
		t.Errorf("GET with a time of 1 ms: got %d, the service was told %v, want 504 without a request, or an answer", a.Status, left)
	}
}

func TestAttemptsDoNotMultiplyThroughTheProxy(t *testing.T) {
	t.Parallel() // it waits more than it works
	var last atomic.Int32
	down := serve(t, http1, func(w http.ResponseWriter, r *http.Request) {
		last.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	client := func(everybody bool) *http.Client {
		base := newTransport(t, http1, "")
		tr := &riphttp.Transport{Base: base, Policy: &riprap.Policy{MaxAttempts: 3, Backoff: riprap.Backoff{Base: 1e6}}}
		if everybody {
			tr.Internal = func(*http.Request) bool { return true }
		}
		return &http.Client{Transport: tr}
	}
	inner := client(true)
	middle := httptest.NewServer(deadline.Middleware{}.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), "GET", down, nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := inner.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
	})))
	t.Cleanup(middle.Close)
	p := stand(t, middle.URL, "--attempts", "3")
	for _, c := range []struct {
		name  string
		marks bool
		want  int32
	}{
		{"who says that it retries", true, 7},
		{"who does not say so", false, 15}, // three times what the proxy's own attempts come to
	} {
		last.Store(0)
		resp, err := client(c.marks).Do(get(t, p.url))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := last.Load(); got > c.want || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a client %s, the proxy and the service try three times each: got %d after %d requests at the last service, want 503 after %d at most", c.name, resp.StatusCode, got, c.want)
		}
	}
	last.Store(0)
	req := get(t, p.url)
	req.Header.Set(deadline.AttemptHeader, "2")
	resp, err := newTransport(t, http1, "").RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := last.Load(); got != 1 {
		t.Errorf("a request that says it is a retry came to %d requests at the last service, want 1", got)
	}
}

func get(t testing.TB, at string) *http.Request {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: "GET", URL: u, Header: make(http.Header)}
}
