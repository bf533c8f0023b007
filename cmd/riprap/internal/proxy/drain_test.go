package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/idempotency"
)

func TestRequestsUnderWayAreFinishedAtTheEnd(t *testing.T) {
	for name, client := range map[string]func(*testing.T) *http.Client{"HTTP/1.1": fresh, "HTTP/2": freshHTTP2} {
		t.Run(name, func(t *testing.T) {
			g, to := newGate(t)
			r := launch(t, configure(t, manifest.Proxy{Service: "a", To: to}))
			url := r.server("a").url()
			before := client(t)
			result := sent(func() string { return fetch(before, url) })
			finished(t, "the request at the service", g.arrived)
			done := r.ending()
			if r.ready.Load() {
				t.Error("ready while it ends, want not")
			}
			if got := fetch(client(t), url); !strings.Contains(got, "refused") {
				t.Errorf("a new request while the proxy ends: %s, want a connection that is refused", got)
			}
			g.release()
			if got, want := finished(t, "the request", result), "200 through"; got != want {
				t.Errorf("the request under way = %s, want %s", got, want)
			}
			finished(t, "the end", done)
			if got := r.said.String(); !strings.Contains(got, "ending: 1 request is under way\n") || strings.Contains(got, "cut") {
				t.Errorf("said %q, want that 1 request is under way, and nothing of a cut", got)
			}
		})
	}
}

func TestAConnectionThatIsKeptCarriesARequestMoreWhileTheProxyEnds(t *testing.T) {
	g, to := newGate(t)
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: to}))
	conn, err := net.Dial("tcp", r.server("a").listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	ask := func() *http.Response {
		t.Helper()
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		io.Copy(io.Discard, resp.Body)
		return resp
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	finished(t, "the request at the service", g.arrived)
	done := r.ending()
	g.release()
	if resp := ask(); resp.Close {
		t.Error("the answer that was begun before the end closes its connection, want it kept for who has sent more")
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp := ask(); !resp.Close || resp.StatusCode != 200 {
		t.Errorf("the next answer: status %d, close %v, want 200 and the connection closed", resp.StatusCode, resp.Close)
	}
	finished(t, "the end", done)
}

func TestWhatTakesTooLongIsCutAtTheEndAndCounted(t *testing.T) {
	g, to := newGate(t)
	c := configure(t, manifest.Proxy{Service: "a", To: to}, manifest.Proxy{Service: "b", To: tunnelOf(t)})
	c.Drain = 50 * time.Millisecond
	r := launch(t, c)
	conn := tunnelTo(t, r.server("b"))
	client := fresh(t)
	result := sent(func() string { return fetch(client, r.server("a").url()) })
	finished(t, "the request at the service", g.arrived)
	finished(t, "the end", r.ending())
	got := finished(t, "the request", result)
	if !strings.HasPrefix(got, "502 ") || !strings.Contains(got, `"reached":"unknown"`) {
		t.Errorf("the request that was cut = %s, want a 502 that says that nobody knows whether it was reached", got)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the tunnel goes on, want it closed")
	}
	if said := r.said.String(); !strings.Contains(said, "ending: 2 requests are under way\n") || !strings.Contains(said, "cut 2 requests after 50ms\n") || !strings.HasSuffix(said, "ended\n") {
		t.Errorf("said %q, want 2 requests under way, 2 cut, ended", said)
	}
}

func TestARunThatIsCutAtTheEndIsUnknownAtOnce(t *testing.T) {
	g, to := newGate(t)
	c := configure(t, manifest.Proxy{Service: "a", To: to, RequireKey: []string{"POST /charge"}, Scope: "single-tenant"})
	c.Drain = 50 * time.Millisecond
	r := launch(t, c)
	client := fresh(t)
	result := sent(func() string {
		req, _ := http.NewRequest("POST", r.server("a").url()+"/charge", strings.NewReader("amount=100"))
		req.Header.Set("Idempotency-Key", "order-1")
		return body(client.Do(req))
	})
	finished(t, "the request at the service", g.arrived)
	finished(t, "the end", r.ending())
	got := finished(t, "the request", result)
	if !strings.HasPrefix(got, "502 ") || !strings.Contains(got, "outcome-unknown") || !strings.Contains(got, `"reached":"unknown"`) {
		t.Errorf("the request that was cut = %s, want a 502 that says that its outcome is unknown", got)
	}
	list, err := r.store.List(t.Context(), idempotency.Filter{})
	if err != nil || len(list) != 1 || list[0].State != idempotency.StateUnknown {
		t.Errorf("keys = %+v, %v, want one that is unknown", list, err)
	}
}

func TestATunnelMayEndByItselfWhileTheProxyEnds(t *testing.T) {
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: tunnelOf(t)}))
	conn := tunnelTo(t, r.server("a"))
	done := r.ending()
	io.WriteString(conn, "x")
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Errorf("the tunnel while the proxy ends: %v, want what was sent", err)
	}
	select {
	case <-done:
		t.Error("the proxy has ended before its tunnel")
	default:
	}
	conn.Close()
	finished(t, "the end", done)
	if said := r.said.String(); strings.Contains(said, "cut") {
		t.Errorf("said %q, want nothing of a cut", said)
	}
}

// tunnelOf is a service that takes over each connection and sends back what it gets.
func tunnelOf(t *testing.T) string {
	return serviceOf(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(conn, conn)
	})
}

// tunnelTo opens a tunnel by a server.
func tunnelTo(t *testing.T, v *server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", v.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil) // a small one, to take nothing of what follows
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the tunnel: %v, %v, want 101", resp, err)
	}
	return conn
}

func TestARunWhoseClientHasLeftIsRecordedBeforeTheEnd(t *testing.T) {
	g, to := newGate(t)
	p := manifest.Proxy{Service: "a", To: to, RequireKey: []string{"POST /charge"}, Scope: "single-tenant"}
	c := configure(t, p)
	r := launch(t, c)
	charge := func(ctx context.Context, r *rig) string {
		req, err := http.NewRequestWithContext(ctx, "POST", r.server("a").url()+"/charge", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "one")
		return body(fresh(t).Do(req))
	}
	ctx, leave := context.WithCancel(t.Context())
	left := sent(func() string { return charge(ctx, r) })
	finished(t, "the request at the service", g.arrived)
	leave()
	if got := finished(t, "the request of the client that leaves", left); !strings.HasPrefix(got, "error: ") {
		t.Fatalf("the client that leaves got %s, want nothing", got)
	}
	done := r.ending()
	g.release()
	finished(t, "the end", done)
	r.close()

	again := launch(t, c)
	if got, want := charge(t.Context(), again), "200 through"; got != want {
		t.Errorf("the same request after a restart = %s, want %s", got, want)
	}
	if n := len(g.arrived); n > 0 {
		t.Errorf("it was at the service %d times more, want the answer that was kept", n)
	}
}
