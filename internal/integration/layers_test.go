package integration_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
)

// Layers are a client and the services A and B, which call each other in this order and at last a service C.
type layers struct {
	client, a, b *caller
	url          string // of A
}

// stack starts A and B above the service at url, with three attempts on each edge. Of the Middleware nil means none.
func stack(t *testing.T, last http.RoundTripper, url string, m *deadline.Middleware) *layers {
	t.Helper()
	relay := func(base http.RoundTripper, url string) (*server, *caller) {
		c := call(t, base)
		var changes []func(*httptest.Server)
		if m != nil {
			changes = append(changes, behind(*m))
		}
		return serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			resp, body, err := c.do(t, request(t, "GET", url, "", nil).WithContext(r.Context()))
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			w.WriteHeader(resp.StatusCode)
			io.WriteString(w, body)
		}, changes...), c
	}
	l := new(layers)
	var a, b *server
	b, l.b = relay(last, url)
	a, l.a = relay(b.base(), b.URL)
	l.client, l.url = call(t, a.base()), a.URL
	return l
}

// mark lets the callers tell the services what they call for.
func (l *layers) mark() {
	for _, c := range []*caller{l.client, l.a, l.b} {
		c.transport.Internal = everybody
	}
}

func TestAttemptsMultiplyUnlessTheLayersTellEachOther(t *testing.T) {
	middleware := &deadline.Middleware{}
	tests := []struct {
		name       string
		middleware *deadline.Middleware
		tell       func(*layers)
		calls      int32
	}{
		{"bare", nil, func(*layers) {}, 27},
		{"a Middleware of which the callers know nothing", middleware, func(*layers) {}, 27},
		{"the request says that it is a retry", middleware, (*layers).mark, 7},
		{"only the client says it", middleware, func(l *layers) { l.client.transport.Internal = everybody }, 15},
		{"only the service before the last says it", middleware, func(l *layers) { l.b.transport.Internal = everybody }, 27},
		{"the response says that a retry is useless", middleware, func(l *layers) {
			l.mark()
			l.b.transport.Policy.Budget = &riprap.Budget{Reserve: 2}
		}, 3},
		{"a service without budget at all", middleware, func(l *layers) {
			l.mark()
			l.b.transport.Policy.Budget = &riprap.Budget{Reserve: -1, Ratio: -1}
		}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Run("C answers 503", func(t *testing.T) {
				settles(t)
				dead := serve(t, flaky(1000, nil))
				l := stack(t, dead.base(), dead.URL, test.middleware)
				test.tell(l)
				l.client.answer(t, request(t, "GET", l.url, "", nil), 503, "not now")
				if n := dead.requests.Load(); n != test.calls {
					t.Errorf("one call of three layers became %d calls of C, want %d", n, test.calls)
				}
			})
			t.Run("C refuses connections", func(t *testing.T) {
				settles(t)
				var dials atomic.Int32
				base := plain()
				base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					dials.Add(1)
					return new(net.Dialer).DialContext(ctx, network, address)
				}
				gone, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				gone.Close()
				l := stack(t, base, "http://"+gone.Addr().String(), test.middleware)
				test.tell(l)
				l.client.answer(t, request(t, "GET", l.url, "", nil), 502, "")
				if n := dials.Load(); n != test.calls {
					t.Errorf("one call of three layers became %d connections to C, want %d", n, test.calls)
				}
			})
		})
	}
}
