package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/internal/memhttp"
)

// net/http sends a request without a body again by itself if it carries a key and its kept connection fails.
func TestAKeptConnectionThatFailsRepeatsNoPost(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		body   string
		field  string
		sends  int64 // of the second request
	}{
		{"GET", "GET", "", "Idempotency-Key", 2},
		{"POST with a key", "POST", "", "Idempotency-Key", 1},
		{"POST with another kind of key", "POST", "", "X-Idempotency-Key", 1},
		{"POST with a key and a body", "POST", "body", "Idempotency-Key", 1},
		{"POST without a key", "POST", "", "X-Else", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sends atomic.Int64
				var key atomic.Value
				s := playing(t, manifest.Proxy{}, func(n int, p *memhttp.Peer) {
					for i := 1; ; i++ {
						req := p.ReadRequest()
						if req == nil {
							return
						}
						if n == 1 && i == 1 {
							p.Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
							continue
						}
						sends.Add(1)
						key.Store(req.Header.Get(c.field) + " " + req.Header.Get("Content-Length"))
						if n == 1 {
							return // the request was read, and the connection is reset
						}
						p.Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
				})
				defer s.close()
				s.send("GET", "/", nil)
				r := s.send(c.method, "/", strings.NewReader(c.body), c.field, "k")
				if got := sends.Load(); got != c.sends {
					t.Errorf("the service got the request %d times, want %d", got, c.sends)
				}
				if c.sends == 1 && r.is() != "outcome-unknown" {
					t.Errorf("the answer is %d %s, want outcome-unknown", r.StatusCode, r.is())
				}
				if told, _ := key.Load().(string); !strings.HasPrefix(told, "k ") {
					t.Errorf("the key and length that arrived are %q, want the key", told)
				}
			})
		})
	}
}

func TestAPostWithoutABodyArrivesWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, to := range []string{"http://memory.test", "h2c://memory.test"} {
			var length int64
			s := serving(t, manifest.Proxy{To: to}, func(w http.ResponseWriter, r *http.Request) { length = r.ContentLength })
			if r := s.send("POST", "/", nil, "Idempotency-Key", "k"); r.StatusCode != 200 || to[0:4] == "http" && length != 0 {
				t.Errorf("to %s: %d, length %d; want 200 and no body", to, r.StatusCode, length)
			}
			s.close()
		}
	})
}

func TestTheServicesProtocolIsTheOneThatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for to, want := range map[string]string{"http://memory.test": "HTTP/1.1", "h2c://memory.test": "HTTP/2.0"} {
			got := ""
			s := serving(t, manifest.Proxy{To: to}, func(w http.ResponseWriter, r *http.Request) { got = r.Proto })
			if s.send("GET", "/", nil); got != want {
				t.Errorf("%s was spoken to %s, want %s", got, to, want)
			}
			s.close()
		}
	})
}

func TestAnAddressThatIsNoneIsRefused(t *testing.T) {
	for to, want := range map[string]string{
		"": "scheme", "127.0.0.1:9000": "URL", "ftp://h": "scheme", "http://": "host", "http://u:p4ss@h": "user", "http://h?q=s3cret": "query", "http://h:p4ss:x": "URL",
	} {
		_, err := NewService(manifest.Proxy{Service: "s", To: to}, nil, Watch{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "p4ss") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("NewService(%q) = %v, want an error about the %s without secrets", to, err, want)
		}
	}
}
