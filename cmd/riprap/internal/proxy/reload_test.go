package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/internal/selfsigned"
)

// reapply makes the process do what another configuration says.
func (r *rig) reapply(c *configuration) {
	r.t.Helper()
	c.Store = r.config.Store
	if err := r.apply(r.t.Context(), c); err != nil {
		r.t.Fatalf("apply = %v, want no error", err)
	}
}

func TestAServiceThatDoesNotChangeKeepsWhatItKnows(t *testing.T) {
	a := manifest.Proxy{Service: "a", To: saying(t, "a")}
	b := manifest.Proxy{Service: "b", To: saying(t, "b")}
	r := launch(t, configure(t, a, b))
	before := r.services
	b.MaxInFlight = 7
	a.MaxConnections = 7 // a matter of the address, not of the service
	r.reapply(configure(t, a, b))
	if r.services["a"].Service != before["a"].Service {
		t.Error("a is another Service though nothing changes for it, want the same, with its budgets")
	}
	if r.services["b"].Service == before["b"].Service {
		t.Error("b is the same Service though its limit is another, want a new one")
	}
}

func TestRequestsGoToTheNewServiceOnConnectionsThatWereThereBefore(t *testing.T) {
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: saying(t, "old")}))
	client, url := fresh(t), r.server("a").url()
	if got := fetch(client, url); got != "200 old" {
		t.Fatalf("before: %s, want 200 old", got)
	}
	v := r.server("a")
	r.reapply(configure(t, manifest.Proxy{Service: "a", To: saying(t, "new")}))
	if got := fetch(client, url); got != "200 new" {
		t.Errorf("after: %s, want 200 new", got)
	}
	if r.server("a") != v || v.turn.open.Load() != 1 {
		t.Errorf("another server, or %d connections, want the server and its one connection kept", v.turn.open.Load())
	}
}

func TestAConfigurationThatCannotBeTakenChangesNothing(t *testing.T) {
	a := manifest.Proxy{Service: "a", To: saying(t, "old"), RequireKey: []string{"POST /"}, Scope: "single-tenant"}
	c := configure(t, a)
	r := launch(t, c)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var free string
	for name, test := range map[string]struct {
		change func() *configuration
		want   string
	}{
		"an address that somebody has": {func() *configuration {
			c := configure(t, manifest.Proxy{Service: "a", To: saying(t, "new")}, manifest.Proxy{Service: "b", To: a.To}, manifest.Proxy{Service: "c", To: a.To, Listen: taken.Addr().String()})
			l, err := bind(t.Context(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			free = l.Addr().String()
			l.Close()
			c.fronts[1].Listen = free
			return c
		}, "c: cannot listen on " + taken.Addr().String() + ": another program has it"},
		"an admin address that somebody has": {func() *configuration {
			c := configure(t, a)
			c.Admin = taken.Addr().String()
			return c
		}, "admin: cannot listen on " + taken.Addr().String()},
		"a service that cannot be": {func() *configuration {
			return configure(t, manifest.Proxy{Service: "a", To: "ftp://new"})
		}, `got scheme "ftp"`},
		"another store": {func() *configuration { return configure(t, a) }, "the store is another one"},
	} {
		next := test.change()
		if name != "another store" {
			next.Store = c.Store
		}
		if err := r.apply(t.Context(), next); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: apply = %v, want an error with %q", name, err, test.want)
		}
		if got := fetch(fresh(t), r.server("a").url()); got != "200 old" || r.config != c {
			t.Errorf("%s: afterwards %s, want 200 old and the old configuration", name, got)
		}
	}
	if l, err := net.Listen("tcp", free); err != nil {
		t.Errorf("the address that was taken in vain is kept: %v", err)
	} else {
		l.Close()
	}
}

func TestAServiceThatIsGoneFinishesWhatItHasUnderWay(t *testing.T) {
	g, to := newGate(t)
	b := manifest.Proxy{Service: "b", To: saying(t, "b")}
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: to}, b))
	url := r.server("a").url()
	client := fresh(t)
	result := sent(func() string { return fetch(client, url) })
	finished(t, "the request at the service", g.arrived)
	r.reapply(configure(t, b))
	if got := fetch(fresh(t), url); !strings.Contains(got, "refused") {
		t.Errorf("a new request for it: %s, want a connection that is refused", got)
	}
	if got := fetch(fresh(t), r.server("b").url()); got != "200 b" {
		t.Errorf("meanwhile at b: %s, want 200 b", got)
	}
	if n := r.connections("a"); n != 1 {
		t.Errorf("connections(a) = %d, want the one that is left", n)
	}
	g.release()
	if got := finished(t, "the request", result); got != "200 through" {
		t.Errorf("the request under way: %s, want 200 through", got)
	}
	r.dismissed.Wait()
	if n := r.connections("a"); n != 0 || len(r.former) != 0 {
		t.Errorf("connections(a) = %d with %d former servers, want none", n, len(r.former))
	}
}

func TestAnAddressIsHandedOverWithoutLosingARequest(t *testing.T) {
	to := saying(t, "ok")
	at := func(header int64, connections int) *configuration {
		return configure(t, manifest.Proxy{Service: "a", To: to, MaxHeader: header, MaxConnections: connections})
	}
	r := launch(t, at(0, 0))
	url := r.server("a").url()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	var answered atomic.Int64
	var failed atomic.Pointer[string]
	for i := range 8 {
		client := fresh(t)
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				req, err := http.NewRequest("POST", url, strings.NewReader("body")) // which a client does not send again by itself
				if err != nil {
					panic(err)
				}
				req.Close = (n+i)%3 == 0
				if got := body(client.Do(req)); got != "200 ok" {
					failed.CompareAndSwap(nil, &got)
				}
				answered.Add(1)
			}
		})
	}
	for n := range 10 {
		was := answered.Load()
		eventually(t, "requests are answered", func() bool { return answered.Load() > was+20 })
		before := r.server("a")
		r.reapply(at(int64(n+1)*32<<10, 100+n))
		if after := r.server("a"); after == before || after.url() != url {
			t.Fatalf("after a change of limits: the same server %v, at %s, want another one at %s", after == before, after.url(), url)
		}
	}
	was := answered.Load()
	eventually(t, "requests are answered at last", func() bool { return answered.Load() > was+20 })
	stop()
	clients.Wait()
	if text := failed.Load(); text != nil {
		t.Errorf("of %d requests one got %s, want each 200 ok", answered.Load(), *text)
	}
}

func TestACertificateIsReplacedForNewConnections(t *testing.T) {
	secure := func(name string) *configuration {
		c := configure(t, manifest.Proxy{Service: "a", To: saying(t, "ok")})
		certificate, err := selfsigned.Certificate(time.Now(), name)
		if err != nil {
			t.Fatal(err)
		}
		c.fronts[0].certificate = &certificate
		return c
	}
	r := launch(t, secure("old.test"))
	v := r.server("a")
	shown := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", v.listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return fmt.Sprint(c.ConnectionState().PeerCertificates[0].DNSNames, c.ConnectionState().NegotiatedProtocol)
	}
	if got, want := shown(), "[localhost old.test]h2"; got != want {
		t.Errorf("before: %s, want %s", got, want)
	}
	r.reapply(secure("new.test"))
	if got, want := shown(), "[localhost new.test]h2"; got != want || r.server("a") != v {
		t.Errorf("after: %s by another server: %v, want %s by the same", got, r.server("a") != v, want)
	}
	if _, err := tls.Dial("tcp", v.listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken, want at least 1.2")
	}
}

func TestALongHeaderIsRefusedByTheLimitOfItsAddress(t *testing.T) {
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: saying(t, "ok"), MaxHeader: 8 << 10}))
	for size, want := range map[int]int{4 << 10: 200, 32 << 10: 431} {
		conn := dial(t, r.server("a").listener)
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\nX-Long: %s\r\n\r\n", strings.Repeat("x", size))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("a header of %d bytes: %v, want %d", size, err, want)
			continue
		}
		io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != want {
			t.Errorf("a header of %d bytes: %d, want %d", size, resp.StatusCode, want)
		}
	}
}

func TestHTTP2IsTakenWithPriorKnowledge(t *testing.T) {
	r := launch(t, configure(t, manifest.Proxy{Service: "a", To: serviceOf(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Via")) })}))
	if got, want := fetch(freshHTTP2(t), r.server("a").url()), "200 2.0 riprap"; got != want {
		t.Errorf("over HTTP/2 without TLS: %s, want %s", got, want)
	}
}
