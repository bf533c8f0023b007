package proxies

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestUnderMixedLoadEachRequestIsAnswered(t *testing.T) {
	t.Parallel() // it waits more than it works
	load(t, 6*time.Second)
}

func TestSoakUnderMixedLoadEachRequestIsAnswered(t *testing.T) {
	soaks(t)
	load(t, time.Minute)
}

// A shop is a service that is killed and started again at the same address.
type shop struct {
	addr string

	mu      sync.Mutex
	charges map[string]int
	server  *http.Server
}

func (s *shop) start(t testing.TB) {
	t.Helper()
	var ln net.Listener
	waitFor(t, "the address of the service to be free", func() bool {
		var err error
		ln, err = net.Listen("tcp", s.addr)
		return err == nil
	})
	s.addr = ln.Addr().String()
	s.server = &http.Server{Handler: s}
	go s.server.Serve(ln)
}

// kill ends it in the midst of whatever it is doing.
func (s *shop) kill() { s.server.Close() }

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/charge"), strings.HasPrefix(r.URL.Path, "/free"):
		s.mu.Lock()
		s.charges[r.Header.Get("X-Operation")]++
		s.mu.Unlock()
		fmt.Fprintln(w, r.Header.Get("X-Operation"))
	case r.Header.Get("Upgrade") != "":
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		io.Copy(conn, rw)
	default:
		serveGo(w, r)
	}
}

// A traffic is clients that send all kinds of requests.
type traffic struct {
	proxy *proxy
	tr    []*http.Transport

	mu     sync.Mutex
	counts map[string]int
	wrong  []string
	told   map[string]outcome
}

// load sends all kinds of requests for that long, while the service is killed now and then. Each is answered, and afterwards the
// proxy holds nothing of them.
func load(t *testing.T, lasts time.Duration) {
	s := &shop{addr: "127.0.0.1:0", charges: make(map[string]int)}
	s.start(t)
	t.Cleanup(func() { s.kill() })
	p := stand(t, "http://"+s.addr, "--require-key", "POST /charge", "--scope", "header:X-Customer", "--lease", "2s", "--attempts", "3", "--drain", "10s")
	l := &traffic{proxy: p, tr: []*http.Transport{newTransport(t, http1, ""), newTransport(t, h2c, "")}, counts: make(map[string]int), told: make(map[string]outcome)}
	l.run(t, lasts/4, nil)
	before := l.rest(t)
	l.run(t, lasts, func(over <-chan struct{}) {
		for {
			select {
			case <-over:
				return
			case <-time.After(700 * time.Millisecond):
			}
			s.kill()
			time.Sleep(300 * time.Millisecond)
			s.start(t)
		}
	})
	after := l.rest(t)

	var counts []string
	for _, what := range slices.Sorted(maps.Keys(l.counts)) {
		counts = append(counts, fmt.Sprintf("%d %s", l.counts[what], what))
	}
	t.Logf("answers: %s", strings.Join(counts, ", "))
	t.Logf("before: %v", before)
	t.Logf("after: %v", after)
	for _, wrong := range l.wrong[:min(len(l.wrong), 10)] {
		t.Errorf("without an answer: %s", wrong)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for operation, n := range s.charges {
		if n > 1 {
			t.Errorf("%s was charged %d times", operation, n)
		}
	}
	for operation, o := range l.told {
		if o == charged && s.charges[operation] != 1 {
			t.Errorf("%s was charged %d times, and the client was told that it was", operation, s.charges[operation])
		}
	}
	for what, most := range map[string]float64{"go_goroutines": before["go_goroutines"] + 5, "process_open_fds": before["process_open_fds"] + 16, "memory": 1.5*before["memory"] + 32<<20} {
		if after[what] > most {
			t.Errorf("%s: %v before, %v after, want no more than %v", what, before[what], after[what], most)
		}
	}
}

// run sends requests for that long, and lets something else happen meanwhile.
func (l *traffic) run(t *testing.T, lasts time.Duration, meanwhile func(over <-chan struct{})) {
	over := make(chan struct{})
	var working sync.WaitGroup
	for range 24 {
		working.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					l.one(t)
				}
			}
		})
	}
	if meanwhile != nil {
		working.Go(func() { meanwhile(over) })
	}
	<-time.After(lasts)
	close(over)
	working.Wait()
}

// one sends one request.
func (l *traffic) one(t *testing.T) {
	tr := l.tr[rand.IntN(len(l.tr))]
	operation := strconv.FormatUint(rand.Uint64(), 36)
	e := exchange{Method: "GET", Target: "/small", Fields: [][2]string{{"X-Operation", operation}, {"X-Customer", operation[:1]}}}
	what := "GET"
	switch n := rand.IntN(100); {
	case n < 40:
	case n < 60:
		what, e.Method, e.Target, e.Body = "keyed POST", "POST", "/charge", "amount=1"
		e.Fields = append(e.Fields, [2]string{"Idempotency-Key", operation})
	case n < 75:
		what, e.Method, e.Target, e.Body = "POST", "POST", "/free", "amount=1"
	case n < 85:
		what, e.Target = "stream", "/events"
	case n < 90:
		what, e.Target = "download", "/down/1"
	case n < 95:
		what, e.Method, e.Target, e.Blocks = "upload", "POST", "/up", 1
	default:
		l.note("tunnel", l.tunnel(t))
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	status, body, err := l.send(ctx, tr, e)
	switch {
	case status == 0:
		l.note(what, fmt.Sprintf("without an answer: %v", err))
		return
	case err != nil && status != 200:
		l.note(what, fmt.Sprintf("without the end of the proxy's own answer: %d %v", status, err))
		return
	case err != nil:
		l.note(what, "broken off")
		return
	}
	if status == 200 && e.Body != "" && body == operation+"\n" {
		l.mu.Lock()
		l.told[operation] = charged
		l.mu.Unlock()
	}
	l.note(what, strconv.Itoa(status))
}

// send sends an exchange. The status is that of the answer, zero if there is none, and an error is about what follows.
func (l *traffic) send(ctx context.Context, tr *http.Transport, e exchange) (status int, body string, err error) {
	var payload io.Reader
	switch {
	case e.Blocks > 0:
		payload = bytes.NewReader(block)
	case e.Body != "":
		payload = strings.NewReader(e.Body)
	}
	req, err := http.NewRequestWithContext(ctx, e.Method, l.proxy.url+e.Target, payload)
	if err != nil {
		return 0, "", err
	}
	for _, f := range e.Fields {
		req.Header.Set(f[0], f[1])
	}
	req.GetBody = nil // or the client would try again by itself
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// tunnel opens a tunnel and sends something through it.
func (l *traffic) tunnel(t *testing.T) string {
	conn, in := dial(t, l.proxy.addr)
	defer conn.Close()
	io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return fmt.Sprintf("without an answer: %v", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		io.Copy(io.Discard, resp.Body)
		return strconv.Itoa(resp.StatusCode)
	}
	io.WriteString(conn, "hello")
	if _, err := io.ReadFull(in, make([]byte, 5)); err != nil {
		return "broken off"
	}
	return "101"
}

func (l *traffic) note(what, became string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.HasPrefix(became, "without") {
		l.wrong = append(l.wrong, what+" "+became)
		became = "without an answer"
	}
	l.counts[what+" "+became]++
}

// rest waits until the proxy has nothing to do, and returns what it holds.
func (l *traffic) rest(t *testing.T) map[string]float64 {
	t.Helper()
	for _, tr := range l.tr {
		tr.CloseIdleConnections()
	}
	held := make(map[string]float64)
	// Longer than the proxy keeps connections to the service that nobody uses. The least counts: to look needs something too.
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		time.Sleep(250 * time.Millisecond)
		for line := range strings.Lines(fetch(t, l.proxy.admin+"/metrics")) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			if name == "go_goroutines" || name == "process_open_fds" {
				value, _ := strconv.ParseFloat(text, 64)
				if least, ok := held[name]; !ok || value < least {
					held[name] = value
				}
			}
		}
	}
	held["memory"] = float64(l.proxy.status(t, "VmRSS:") << 10)
	return held
}
