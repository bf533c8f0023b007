package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"golang.org/x/net/dns/dnsmessage"
)

func TestCertificateErrorsAreFinal(t *testing.T) {
	for _, test := range []struct {
		name   string
		host   string
		change func(*tls.Config)
		is     func(error) bool
	}{
		{"untrusted authority", "127.0.0.1", func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }, isA[x509.UnknownAuthorityError]},
		{"another host's", "localhost", func(*tls.Config) {}, isA[x509.HostnameError]},
		{"expired", "127.0.0.1", func(c *tls.Config) {
			c.Time = func() time.Time { return time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }
		}, isA[x509.CertificateInvalidError]},
	} {
		t.Run(test.name, func(t *testing.T) {
			settles(t)
			var handshakes atomic.Int32
			server := serve(t, func(int, http.ResponseWriter, *http.Request) {}, func(s *httptest.Server) {
				s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
					handshakes.Add(1)
					return nil, nil
				}}
			})
			base := server.base()
			test.change(base.TLSClientConfig)
			c := call(t, base)
			_, _, err := c.do(t, request(t, "GET", strings.Replace(server.URL, "127.0.0.1", test.host, 1), "", nil))
			if !test.is(err) || isA[*riprap.Error](err) {
				t.Errorf("GET: %v (%T), want the certificate's error as it came", err, err)
			}
			if got := handshakes.Load(); got != 1 {
				t.Errorf("GET made %d handshakes, want 1", got)
			}
		})
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestPlainServerBehindAnHTTPSAddressIsFinal(t *testing.T) {
	settles(t)
	server := serve(t, flaky(0, say("hello")))
	c := call(t, server.base())
	_, _, err := c.do(t, request(t, "GET", strings.Replace(server.URL, "http:", "https:", 1), "", nil))
	if err == nil || isA[*riprap.Error](err) || server.conns.Load() != 1 {
		t.Errorf("GET over %d connections: %v, want one and the error as it came", server.conns.Load(), err)
	}
}

func TestAlertOfTheServerIsFinal(t *testing.T) {
	settles(t)
	server := serve(t, flaky(0, say("hello")), func(s *httptest.Server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	})
	base := server.base()
	base.TLSClientConfig.MaxVersion = tls.VersionTLS12 // so that the alert comes within the handshake
	c := call(t, base)
	_, _, err := c.do(t, request(t, "GET", server.URL, "", nil))
	if err == nil || isA[*riprap.Error](err) || server.conns.Load() != 1 {
		t.Errorf("GET without the certificate over %d connections: %v, want one and the error as it came", server.conns.Load(), err)
	}
}

func TestRequestThatCannotBeSentIsTriedOnce(t *testing.T) {
	settles(t)
	server := serve(t, flaky(0, say("hello")))
	for name, change := range map[string]func(*http.Request){
		"unsupported scheme": func(r *http.Request) { r.URL.Scheme = "gopher" },
		"bad header value":   func(r *http.Request) { r.Header.Set("X-Note", "two\nlines") },
		"bad header name":    func(r *http.Request) { r.Header["X Note"] = []string{"a"} },
		"bad method":         func(r *http.Request) { r.Method = "TWO WORDS" },
		"no host":            func(r *http.Request) { r.URL.Host = "" },
	} {
		c := call(t, server.base())
		req := request(t, "GET", server.URL, "", nil)
		change(req)
		_, _, err := c.do(t, req)
		if err == nil || isA[*riprap.Error](err) {
			t.Errorf("%s: %v, want the error as it came", name, err)
		}
		if name != "no host" { // which http.Client finds by itself
			if e := c.last(t); e.Attempts != 1 || e.Reason != nil {
				t.Errorf("%s: Done event = %+v, want one attempt", name, e)
			}
		}
	}
	if got := server.requests.Load(); got != 0 {
		t.Errorf("the server got %d requests, want none", got)
	}
}

// resolver returns a dialer that asks a name server of the test's own. Fails says with which code it answers.
func resolver(t *testing.T, code func() dnsmessage.RCode) *net.Dialer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil {
				continue
			}
			m.Header.Response, m.Header.RCode, m.Additionals = true, code(), nil
			if q := m.Questions[0]; m.Header.RCode == dnsmessage.RCodeSuccess && q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			if reply, err := m.Pack(); err == nil {
				conn.WriteTo(reply, from)
			}
		}
	})
	t.Cleanup(func() {
		conn.Close()
		running.Wait()
	})
	return &net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}}
}

func TestNameServerThatFailsIsAskedAgainAndAMissingNameIsNot(t *testing.T) {
	for _, test := range []struct {
		name     string
		code     dnsmessage.RCode // in the first attempt
		attempts int
		missing  bool
	}{
		{"server failure", dnsmessage.RCodeServerFailure, 2, false},
		{"no such name", dnsmessage.RCodeNameError, 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			settles(t)
			server := serve(t, flaky(0, say("hello")))
			var failing atomic.Bool
			failing.Store(true)
			dialer := resolver(t, func() dnsmessage.RCode {
				if failing.Load() {
					return test.code
				}
				return dnsmessage.RCodeSuccess
			})
			base := plain()
			base.DialContext = dialer.DialContext
			c := call(t, base)
			c.transport.Policy.Trace.Attempt = func(_ context.Context, e riprap.Event) context.Context {
				failing.Store(e.Attempts == 1)
				return nil
			}
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			// A POST: nothing was sent, so that it may be sent again without a key.
			_, _, err := c.do(t, request(t, "POST", "http://service.test.:"+port, "", strings.NewReader("order")))
			if dns, ok := errors.AsType[*net.DNSError](err); (err != nil) != test.missing || ok && !dns.IsNotFound {
				t.Errorf("POST: %v, want an error: %t", err, test.missing)
			}
			if e := c.last(t); e.Attempts != test.attempts {
				t.Errorf("Done event = %+v, want %d attempts", e, test.attempts)
			}
		})
	}
}
