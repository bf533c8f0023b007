package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/deadline"
)

var everybody = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}

func TestTheServiceGetsWhatTheClientAsked(t *testing.T) {
	for _, c := range []struct{ to, asked, want string }{
		{"", "/", "/"},
		{"", "/a%2Fb//c/../d?x=%zz;y&&z", "/a%2Fb//c/../d?x=%zz;y&&z"},
		{"", "/{a}|\"<>^`?{q}", "/{a}|\"<>^`?{q}"},
		{"", "/%7Ea~%c3%A9", "/%7Ea~%c3%A9"},
		{"", "/a?", "/a?"},
		{"", "//host/a", "//host/a"},
		{"/base/", "/a%2Fb?q", "/base/a%2Fb?q"},
		{"/base", "//a", "/base//a"},
		{"/b%2Fc", "/", "/b%2Fc/"},
	} {
		t.Run(c.to+c.asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := ""
				s := serving(t, manifest.Proxy{To: "http://memory.test" + c.to}, func(w http.ResponseWriter, r *http.Request) { got = r.RequestURI })
				defer s.close()
				req := s.request("GET", "/", nil)
				req.URL.Opaque, req.URL.RawQuery, _ = strings.Cut(c.asked, "?")
				_, _, req.URL.ForceQuery = strings.Cut(c.asked, "?")
				if strings.HasPrefix(c.asked, "//") {
					req.URL.Opaque, req.URL.Path = "", req.URL.Opaque
				}
				if r := s.do(req); r.StatusCode != 200 || got != c.want {
					t.Errorf("asked for %q, status %d, the service got %q, want %q", c.asked, r.StatusCode, got, c.want)
				}
			})
		})
	}
}

// HTTP/2 has no request line, so what would end it may stand anywhere.
func TestNothingCanBeAddedToTheRequestLine(t *testing.T) {
	for asked, want := range map[string]string{
		"/a HTTP/1.1":             "/a%20HTTP/1.1",
		"/a?b HTTP/1.1":           "/a?b%20HTTP/1.1",
		"/a#b?c#d":                "/a%23b?c%23d",
		"/ HTTP/1.1\r\nX-Not: so": "/%20HTTP/1.1%0D%0AX-Not:%20so",
		"/?q\r\nX-Not: so":        "",
	} {
		synctest.Test(t, func(t *testing.T) {
			got := ""
			s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
				got = r.RequestURI
				if r.Header.Get("X-Not") != "" {
					t.Error("a field came out of the path")
				}
			})
			defer s.close()
			req := httptest.NewRequest("GET", "/", nil) // as a server makes it of what arrived
			path, query, _ := strings.Cut(asked, "?")
			req.RequestURI, req.URL = asked, &url.URL{Path: path, RawQuery: query}
			w := httptest.NewRecorder()
			s.proxy.ServeHTTP(w, req)
			if got != want || want == "" && w.Code < 400 {
				t.Errorf("asked for %q, status %d, the service got %q, want %q", asked, w.Code, got, want)
			}
		})
	}
}

func TestWhatAClientSaysOfItselfIsBelievedIfItIsTrusted(t *testing.T) {
	said := []string{
		"X-Forwarded-For", "203.0.113.9", "X-Forwarded-Host", "shop.test", "X-Forwarded-Proto", "https", "X-Forwarded-Prefix", "/p",
		"Forwarded", "for=203.0.113.9", "X-Real-Ip", "203.0.113.9", "X_Forwarded_For", "1.1.1.1", "X_Customer", "other", "Idempotency_Key", "k",
		deadline.AttemptHeader, "2", deadline.CorrelationHeader, "abc", "X-Other", "stays", "Connection", "X-Hop", "X-Hop", "goes",
	}
	for _, c := range []struct {
		trusted bool
		want    map[string]string
	}{
		{true, map[string]string{"X-Forwarded-For": "203.0.113.9, 192.0.2.1", "X-Forwarded-Host": "shop.test", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/p",
			"Forwarded": "for=203.0.113.9", "X-Real-Ip": "203.0.113.9", deadline.AttemptHeader: "2", deadline.CorrelationHeader: "abc"}},
		{false, map[string]string{"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "memory.test", "X-Forwarded-Proto": "http", "X-Forwarded-Prefix": "",
			"Forwarded": "", "X-Real-Ip": "", deadline.AttemptHeader: ""}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got http.Header
			p := manifest.Proxy{Trust: []netip.Prefix{}}
			if c.trusted {
				p.Trust = everybody
			}
			s := serving(t, p, func(w http.ResponseWriter, r *http.Request) { got = r.Header })
			defer s.close()
			req := s.request("GET", "/", nil, said...)
			w := httptest.NewRecorder()
			req.RemoteAddr, req.RequestURI = "192.0.2.1:999", "/"
			s.proxy.ServeHTTP(w, req)
			for name, want := range c.want {
				if got.Get(name) != want {
					t.Errorf("trusted %v: %s is %q, want %q", c.trusted, name, got.Get(name), want)
				}
			}
			for name, want := range map[string]string{"X-Other": "stays", "X-Hop": "", "Via": "1.1 riprap"} {
				if got.Get(name) != want {
					t.Errorf("trusted %v: %s is %q, want %q", c.trusted, name, got.Get(name), want)
				}
			}
			for _, name := range []string{"X_forwarded_for", "X_customer", "Idempotency_key"} {
				if got[name] != nil {
					t.Errorf("trusted %v: %s arrived, want it taken away", c.trusted, name)
				}
			}
			if !c.trusted && got.Get(deadline.CorrelationHeader) == "abc" {
				t.Error("a stranger named the request, want a name of our own")
			}
		})
	}
}

func TestNoContentTypeIsMadeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{AcceptKey: []string{"POST /"}}, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			w.Write([]byte("<html>"))
		})
		defer s.close()
		for range 2 { // the second one is a replay
			r := s.send("POST", "/", nil, "X-Customer", "a", "Idempotency-Key", "k")
			if values, ok := r.Header["Content-Type"]; ok || r.body != "<html>" {
				t.Errorf("the answer is %q of type %q, want <html> and none", r.body, values)
			}
		}
	})
}

func TestAnUpgradeToAnotherHTTPIsNotPassedOn(t *testing.T) {
	for upgrade, want := range map[string]string{
		"websocket": "websocket", "h2c": "", "H2C": "", "websocket, h2c": "", "HTTP/2.0": "", "TLS/1.2": "", "http-like": "http-like",
	} {
		synctest.Test(t, func(t *testing.T) {
			var got http.Header
			s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) { got = r.Header })
			defer s.close()
			s.send("GET", "/", nil, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", upgrade, "HTTP2-Settings", "AAM")
			if got.Get("Upgrade") != want || (got.Get("Connection") != "") != (want != "") || got["Http2-Settings"] != nil {
				t.Errorf("Upgrade: %s: the service got %v, want Upgrade %q", upgrade, got, want)
			}
		})
	}
}

func TestTheServiceIsAskedToContinueByTheProxyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
		defer s.close()
		s.client.ExpectContinueTimeout = time.Hour
		for _, size := range []int{5, 100 << 10} { // one that is read first, and one that is sent on as it comes
			said := 0
			req := s.request("POST", "/", strings.NewReader(strings.Repeat("x", size)), "Expect", "100-continue")
			ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
				said++
				return nil
			}})
			if r := s.do(req.WithContext(ctx)); r.StatusCode != 200 || len(r.body) != size || said != 1 {
				t.Errorf("POST of %d bytes with Expect: got %d, %d bytes, %d times 100; want 200, all, once", size, r.StatusCode, len(r.body), said)
			}
		}
	})
}

func TestTrailersPassInBothDirections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			body := make([]byte, 10)
			for {
				if _, err := r.Body.Read(body); err != nil {
					break
				}
			}
			w.Write([]byte("ok"))
			w.Header().Set("X-Sum", r.Trailer.Get("X-Check"))
			w.Header().Set(http.TrailerPrefix+"X-More", "late")
		})
		defer s.close()
		req := s.request("POST", "/", struct{ *strings.Reader }{strings.NewReader("hello")})
		req.Trailer = http.Header{"X-Check": {"5"}}
		r := s.do(req)
		if r.Trailer.Get("X-Sum") != "5" || r.Trailer.Get("X-More") != "late" {
			t.Errorf("the trailers are %v, want X-Sum: 5 and X-More: late", r.Trailer)
		}
	})
}

func TestAHostIsNoMoreThanAHost(t *testing.T) {
	for _, host := range []string{"shop.test/path", "shop.test?a", "user@shop.test", "shop.test#a", `shop.test\a`, "shop.test other.test"} {
		synctest.Test(t, func(t *testing.T) {
			s := serving(t, manifest.Proxy{}, func(http.ResponseWriter, *http.Request) { t.Errorf("the service got a request for %q", host) })
			defer s.close()
			req := httptest.NewRequest("GET", "/", nil)
			req.Host = host
			w := httptest.NewRecorder()
			s.proxy.ServeHTTP(w, req)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "#ambiguous") {
				t.Errorf("GET of %q: got %d %s, want a 400", host, w.Code, w.Body)
			}
		})
	}
}

func TestWhatIsNoRequestForTheServiceIsAnswered(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		fields []string
		status int
		is     string
		passed bool
	}{
		{"a loop", "GET", []string{"Via", strings.Repeat("1.1 riprap, ", 20)}, 508, "loop", false},
		{"two proxies", "GET", []string{"Via", "1.1 riprap, 2.0 riprap"}, 200, "", true},
		{"an OPTIONS for the last but one", "OPTIONS", []string{"Max-Forwards", "1"}, 200, "", true},
		{"an OPTIONS for the proxy", "OPTIONS", []string{"Max-Forwards", "0"}, 204, "", false},
		{"a GET does not count them", "GET", []string{"Max-Forwards", "0"}, 200, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				passed, forwards := false, ""
				s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
					passed, forwards = true, r.Header.Get("Max-Forwards")
				})
				defer s.close()
				r := s.send(c.method, "/", nil, c.fields...)
				if r.StatusCode != c.status || r.is() != c.is || passed != c.passed {
					t.Errorf("= %d %s, passed %v; want %d %s, %v", r.StatusCode, r.is(), passed, c.status, c.is, c.passed)
				}
				if c.method == "OPTIONS" && passed && forwards != "0" {
					t.Errorf("Max-Forwards is %q, want one less", forwards)
				}
			})
		})
	}
}

func TestAConnectionThatMayHideAnotherRequestIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {})
		defer s.close()
		if r := s.send("POST", "/", struct{ *strings.Reader }{strings.NewReader("chunked")}); !r.Close {
			t.Error("the connection of a chunked request is kept, want it closed")
		}
		if r := s.send("POST", "/", strings.NewReader("with a length")); r.Close {
			t.Error("the connection of a request with a length is closed, want it kept")
		}
	})
}
