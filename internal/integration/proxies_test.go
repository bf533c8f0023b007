package integration_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/riprap-go/riprap/riphttp"
)

// forwards is a forward proxy: it passes requests on, and makes tunnels. It refuses so many first tunnels.
func forwards(t *testing.T, refused int32) (proxy *server, tunnels *atomic.Int32) {
	t.Helper()
	tunnels = new(atomic.Int32)
	onward := plain()
	t.Cleanup(onward.CloseIdleConnections)
	var open sync.WaitGroup // tunnels, which the server does not wait for
	t.Cleanup(open.Wait)
	proxy = serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			r.RequestURI = ""
			resp, err := onward.RoundTrip(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
			io.Copy(w, resp.Body)
			return
		}
		if tunnels.Add(1) <= refused {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		there, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer there.Close()
		open.Add(1)
		defer open.Done()
		here, in, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		var copies sync.WaitGroup
		copies.Go(func() {
			io.Copy(here, there)
			here.Close()
		})
		copies.Go(func() {
			io.Copy(there, in)
			there.Close()
		})
		copies.Wait()
	})
	return proxy, tunnels
}

func through(proxy *server) func(*http.Request) (*url.URL, error) {
	address, err := url.Parse(proxy.URL)
	return func(*http.Request) (*url.URL, error) { return address, err }
}

func TestRequestsThroughAProxyAreTriedAgain(t *testing.T) {
	settles(t)
	server := serve(t, flaky(2, say("hello")))
	proxy, _ := forwards(t, 0)
	base := server.base()
	base.Proxy = through(proxy)
	c := call(t, base)
	c.answer(t, request(t, "GET", server.URL, "", nil), 200, "hello")
	if proxy.requests.Load() != 3 || server.requests.Load() != 3 {
		t.Errorf("%d requests to the proxy and %d to the server, want 3 each", proxy.requests.Load(), server.requests.Load())
	}
}

func TestRequestsThroughATunnelAreTriedAgain(t *testing.T) {
	settles(t)
	server := serve(t, flaky(2, say("hello")), overTLS)
	proxy, tunnels := forwards(t, 0)
	base := server.base()
	base.Proxy = through(proxy)
	c := call(t, base)
	c.answer(t, request(t, "GET", server.URL, "", nil), 200, "hello")
	if tunnels.Load() != 1 || server.requests.Load() != 3 {
		t.Errorf("%d tunnels and %d requests, want 1 and 3", tunnels.Load(), server.requests.Load())
	}
	if e := c.last(t); e.Sends != 3 {
		t.Errorf("Done event = %+v, want 3 sends: a CONNECT is none", e)
	}
}

func TestPostIsTriedAgainWhenTheProxyRefusesTheTunnel(t *testing.T) {
	settles(t)
	server := serve(t, flaky(0, say("hello")), overTLS)
	proxy, tunnels := forwards(t, 2)
	base := server.base()
	base.Proxy = through(proxy)
	c := call(t, base)
	c.answer(t, request(t, "POST", server.URL, "", strings.NewReader("order")), 200, "hello")
	if tunnels.Load() != 3 || server.requests.Load() != 1 {
		t.Errorf("%d tunnels and %d requests, want 3 and 1", tunnels.Load(), server.requests.Load())
	}
}

// The environment is read once in the life of a process, so this takes a process of its own.
func TestZeroTransportTakesTheProxyOfTheEnvironment(t *testing.T) {
	const inChild = "RIPRAP_TEST_PROXY_CHILD"
	if os.Getenv(inChild) != "" {
		resp, err := (&http.Client{Transport: new(riphttp.Transport)}).Get("http://service.test/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if content, err := io.ReadAll(resp.Body); err != nil || string(content) != "hello" {
			t.Errorf("body = %q, %v, want hello", content, err)
		}
		return
	}
	settles(t)
	var host atomic.Value
	proxy := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		host.Store(r.URL.Host)
		io.WriteString(w, "hello")
	})
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), inChild+"=1", "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "NO_PROXY=", "no_proxy=", "REQUEST_METHOD=")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := host.Load(); got != "service.test" {
		t.Errorf("the proxy was asked for %v, want service.test", got)
	}
}
