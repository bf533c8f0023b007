package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// patience is how long tests wait for what should be so at once.
const patience = 20 * time.Second

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !wait(ctx, so) {
		t.Fatalf("after %v it is not so that %s", patience, what)
	}
}

// watched are the tests whose goroutines are looked at.
var watched sync.Map

// noLeaks fails the test if goroutines of this program are left at its end, when all is cleaned up that was begun later.
func noLeaks(t *testing.T) {
	t.Helper()
	if _, twice := watched.LoadOrStore(t, true); twice {
		return
	}
	t.Cleanup(func() {
		var stacks string
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if !wait(ctx, func() bool { stacks = ours(); return stacks == "" }) {
			t.Errorf("goroutines are left:\n%s", stacks)
		}
	})
}

// ours are the goroutines that are at work in this package, in a server or in a store, but for the test itself.
func ours() string {
	buf := make([]byte, 1<<20)
	var left []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "testing.tRunner(") || strings.Contains(stack, "testing.(*M)") {
			continue
		}
		for _, frame := range []string{"internal/proxy.", "net/http.(*Server)", "net/http.(*conn)", "sqlstore.", "idempotency."} {
			if strings.Contains(stack, frame) {
				left = append(left, stack)
				break
			}
		}
	}
	return strings.Join(left, "\n\n")
}

// A notebook is what a process says. Many may write to it at once.
type notebook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notebook) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notebook) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// A rig is a process on real sockets.
type rig struct {
	*process
	t    *testing.T
	said *notebook
}

// launch starts a process with a configuration.
func launch(t *testing.T, c *configuration) *rig {
	t.Helper()
	noLeaks(t)
	r := &rig{t: t, said: &notebook{}}
	r.process = newProcess(&request{}, r.said)
	t.Cleanup(func() {
		r.impatient()
		r.dismissed.Wait()
		r.close()
	})
	if err := r.apply(t.Context(), c); err != nil {
		t.Fatalf("apply = %v, want no error", err)
	}
	r.announce()
	return r
}

// configure makes a configuration of proxies, without an admin listener and with a store of its own.
func configure(t *testing.T, proxies ...manifest.Proxy) *configuration {
	t.Helper()
	c := &configuration{Proxying: manifest.Proxying{Admin: none, Store: filepath.Join(t.TempDir(), "keys.db"), Drain: patience}}
	for _, p := range proxies {
		if p.Listen == "" {
			p.Listen = "127.0.0.1:0"
		}
		f := front{Proxy: p}
		if err := f.open(); err != nil {
			t.Fatal(err)
		}
		c.fronts = append(c.fronts, f)
	}
	return c
}

// server is the one that has the address of a service; "" is the admin listener.
func (r *rig) server(service string) *server {
	r.t.Helper()
	for _, v := range r.servers {
		if v.service == service {
			return v
		}
	}
	r.t.Fatalf("there is no server for %q", service)
	return nil
}

// fresh is a client without connections.
func fresh(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// freshHTTP2 is a client that speaks it without asking.
func freshHTTP2(t *testing.T) *http.Client {
	client := fresh(t)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client.Transport.(*http.Transport).Protocols = &protocols
	return client
}

// fetch is the status and the body of an answer, or the error.
func fetch(client *http.Client, url string) string { return body(client.Get(url)) }

func body(resp *http.Response, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprintf("%d %s, then %v", resp.StatusCode, text, err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, text)
}

// saying is a service that answers with a text.
func saying(t *testing.T, text string) string {
	return serviceOf(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) })
}

func serviceOf(t *testing.T, h http.HandlerFunc) string {
	noLeaks(t)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// A gate is a service whose requests wait until they are let through.
type gate struct {
	arrived chan struct{} // one for each request
	open    chan struct{} // closed to let them through
	once    sync.Once
}

func newGate(t *testing.T) (*gate, string) {
	g := &gate{arrived: make(chan struct{}, 100), open: make(chan struct{})}
	url := serviceOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		g.arrived <- struct{}{}
		<-g.open
		io.WriteString(w, "through")
	})
	t.Cleanup(g.release)
	return g, url
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// sent sends a request in a goroutine and returns what becomes of it.
func sent(send func() string) <-chan string {
	result := make(chan string, 1)
	go func() { result <- send() }()
	return result
}

// finished waits for the end of what was begun.
func finished[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s: nothing after %v", what, patience)
	}
	return v
}

// ending ends the process in a goroutine. The channel is closed when it has ended.
func (r *rig) ending() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.end()
	}()
	eventually(r.t, "the process says that it ends", func() bool { return strings.Contains(r.said.String(), "ending: ") })
	return done
}
