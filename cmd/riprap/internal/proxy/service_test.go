package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/internal/memhttp"
)

func TestARequestIsTriedAgainOnlyWhereItMayBeRepeated(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		fields []string
		keys   bool // the service honors them
		sends  int
		reason string
	}{
		{"a GET", "GET", nil, false, 3, "attempts"},
		{"a PUT", "PUT", nil, false, 3, "attempts"},
		{"a GET that some services take for another method", "GET", []string{"X-HTTP-Method-Override", "POST"}, false, 1, "unsafe"},
		{"a POST", "POST", nil, false, 1, "unsafe"},
		{"a POST with a key", "POST", []string{"Idempotency-Key", "k"}, false, 1, "unsafe"},
		{"a POST with a key to a service that honors keys", "POST", []string{"Idempotency-Key", "k"}, true, 3, "attempts"},
		{"a POST without a key to a service that honors keys", "POST", nil, true, 1, "unsafe"},
		{"an unknown method", "FROB", nil, false, 1, "unsafe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sends atomic.Int64
				s := serving(t, manifest.Proxy{UpstreamKeys: c.keys}, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-From", fmt.Sprint(sends.Add(1)))
					http.Error(w, "down for a moment", http.StatusServiceUnavailable)
				})
				defer s.close()
				r := s.send(c.method, "/", nil, c.fields...)
				if r.StatusCode != 503 || r.body != "down for a moment\n" || r.Header.Get("X-From") != fmt.Sprint(c.sends) {
					t.Errorf("the answer is %d %q of send %s, want the service's 503 of send %d", r.StatusCode, r.body, r.Header.Get("X-From"), c.sends)
				}
				if n := int(sends.Load()); n != c.sends {
					t.Errorf("the service got %d requests, want %d", n, c.sends)
				}
				v := s.visit()
				if v.Reason != c.reason || len(v.Attempts) != c.sends || v.Reached != ReachedYes || v.Problem != "" {
					t.Errorf("the visit has reason %q, %d attempts, reached %q, problem %q; want %q, %d, yes and none",
						v.Reason, len(v.Attempts), v.Reached, v.Problem, c.reason, c.sends)
				}
			})
		})
	}
}

func TestALostAnswerIsReportedAsUnknown(t *testing.T) {
	for _, c := range []struct {
		name   string
		method string
		path   string
		key    string
		sends  int
		is     string
		key2   idempotency.Kind
	}{
		{"a GET is repeated, and it is no matter", "GET", "/", "", 3, "no-answer", 0},
		{"a POST", "POST", "/", "", 1, "outcome-unknown", 0},
		{"a POST with a key that nobody keeps", "POST", "/", "k", 1, "outcome-unknown", 0},
		{"a POST whose key is kept", "POST", "/charge", "k", 1, "outcome-unknown", idempotency.Suspended},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sends atomic.Int64
				s := playing(t, manifest.Proxy{RequireKey: []string{"POST /charge"}}, func(_ int, p *memhttp.Peer) {
					for p.ReadRequest() != nil {
						sends.Add(1)
						return // the connection is closed
					}
				})
				defer s.close()
				fields := []string{"X-Customer", "me"}
				if c.key != "" {
					fields = append(fields, "Idempotency-Key", c.key)
				}
				r := s.send(c.method, c.path, nil, fields...)
				if r.StatusCode != 502 || r.is() != c.is || r.Reached != ReachedUnknown || r.Attempts != c.sends {
					t.Errorf("the answer is %d %s, reached %q, %d attempts; want 502 %s, unknown, %d", r.StatusCode, r.is(), r.Reached, r.Attempts, c.is, c.sends)
				}
				if n := int(sends.Load()); n != c.sends {
					t.Errorf("the service got %d requests, want %d", n, c.sends)
				}
				if v := s.visit(); v.Key != c.key2 || v.Problem != c.is {
					t.Errorf("the visit has key %v and problem %q, want %v and %q", v.Key, v.Problem, c.key2, c.is)
				}
				if c.key2 == 0 {
					return
				}
				if r := s.send(c.method, c.path, nil, fields...); r.StatusCode != 409 || r.is() != "outcome-unknown" || sends.Load() != 1 {
					t.Errorf("sent again it is %d %s, and the service got %d requests; want 409 outcome-unknown and 1", r.StatusCode, r.is(), sends.Load())
				}
			})
		})
	}
}

func TestARequestThatDidNotReachTheServiceFreesItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := memhttp.Listen()
		s := behind(t, service, manifest.Proxy{RequireKey: []string{"POST /charge"}})
		defer s.close()
		service.Close()
		for range 2 { // the second one is no conflict
			r := s.send("POST", "/charge", nil, "X-Customer", "me", "Idempotency-Key", "k")
			if r.StatusCode != 502 || r.is() != "unreachable" || r.Reached != ReachedNo || r.Attempts != 3 {
				t.Errorf("the answer is %d %s, reached %q, %d attempts; want 502 unreachable, no, 3", r.StatusCode, r.is(), r.Reached, r.Attempts)
			}
		}
		if v := s.visit(); v.Key != idempotency.Released || v.Attempts[0].Failure != "refused" {
			t.Errorf("the key was %v after %q, want it released after a connection refused", v.Key, v.Attempts[0].Failure)
		}
	})
}

func TestAnAnswerIsReplayedWithoutTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sends atomic.Int64
		s := serving(t, manifest.Proxy{RequireKey: []string{"POST /charge"}, AcceptKey: []string{"POST /order"}}, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, sends.Add(1))
		})
		defer s.close()
		for _, c := range []struct {
			path, customer, key string
			status              int
			is, body            string
		}{
			{"/charge", "a", "k", 201, "", "1"},
			{"/charge", "a", "k", 201, "", "1"},
			{"/charge", "b", "k", 201, "", "2"}, // nobody gets another customer's answer
			{"/charge", "a", "", 400, "key-missing", ""},
			{"/charge", "", "k", 400, "scope-missing", ""},
			{"/order", "a", "k", 201, "", "3"}, // another operation
			{"/order", "a", "k", 201, "", "3"},
			{"/order", "a", "", 201, "", "4"},
			{"/else", "a", "k", 201, "", "5"},
			{"/else", "a", "k", 201, "", "6"}, // its keys are not ours to keep
		} {
			var fields []string
			if c.customer != "" {
				fields = append(fields, "X-Customer", c.customer)
			}
			if c.key != "" {
				fields = append(fields, "Idempotency-Key", c.key)
			}
			r := s.send("POST", c.path, strings.NewReader("x"), fields...)
			if r.StatusCode != c.status || r.is() != c.is || c.is == "" && r.body != c.body {
				t.Errorf("POST %s by %q with key %q = %d %s %q, want %d %s %q", c.path, c.customer, c.key, r.StatusCode, r.is(), r.body, c.status, c.is, c.body)
			}
		}
		r := s.send("POST", "/charge", nil, "X-Customer", "a", "X-Customer", "b", "Idempotency-Key", "k")
		if r.is() != "scope-missing" {
			t.Errorf("a request of two customers = %d %s, want scope-missing", r.StatusCode, r.is())
		}
		r = s.send("POST", "/charge", nil, "X-Customer", "a", "Connection", "close, x-customer", "Idempotency-Key", "k")
		if r.is() != "scope-missing" {
			t.Errorf("a request whose customer the service is not to see = %d %s, want scope-missing", r.StatusCode, r.is())
		}
	})
}

func TestTheTimeThatACallerHasIsKeptAndHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 9)
		s := serving(t, manifest.Proxy{Trust: everybody}, func(w http.ResponseWriter, r *http.Request) {
			told <- r.Header.Get(deadline.TimeoutHeader)
			<-r.Context().Done()
		})
		defer s.close()
		s.proxy.trust = nil
		began := time.Now()
		if r := s.send("POST", "/", nil, deadline.TimeoutHeader, "1000"); r.StatusCode != 504 || time.Since(began) != 9500*time.Millisecond {
			t.Errorf("without trust = %d after %v, want 504 after the attempt's 9.5s", r.StatusCode, time.Since(began))
		}
		if ms := <-told; ms != "9400" {
			t.Errorf("the service was told %s ms, want the attempt's time less its margin, 9400", ms)
		}
	})
}

func TestAPolicyOfARouteHoldsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{
			Policy: riprap.Policy{AttemptTimeout: time.Second, MaxAttempts: 1},
			Routes: []manifest.Route{{Match: "GET /report/", Policy: &riprap.Policy{AttemptTimeout: time.Minute, Timeout: time.Minute}}, {Match: "/plain"}},
		}, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(20 * time.Second):
			case <-r.Context().Done():
			}
		})
		defer s.close()
		for path, want := range map[string]int{"/report/1": 200, "/plain": 504, "/else": 504} {
			if r := s.send("GET", path, nil); r.StatusCode != want {
				t.Errorf("GET %s = %d, want %d", path, r.StatusCode, want)
			}
		}
		routes := map[string]bool{}
		for _, d := range s.proxy.Snapshot(time.Now()).Routes {
			routes[d.Name] = true
		}
		if len(routes) != 3 || !routes["service"] || !routes["service GET /report/"] || !routes["service /plain"] {
			t.Errorf("there are budgets for %v, want one for each route and one for the rest", routes)
		}
	})
}

func TestAFullProxyTurnsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan bool)
		s := serving(t, manifest.Proxy{MaxInFlight: 1}, func(w http.ResponseWriter, r *http.Request) { <-hold })
		defer s.close()
		first := make(chan int)
		go func() { first <- s.send("GET", "/", nil).StatusCode }()
		synctest.Wait()
		waits := map[string]bool{}
		for range 50 {
			r := s.send("GET", "/", nil)
			waits[r.Header.Get("Retry-After")] = true
			if r.StatusCode != 503 || r.is() != "busy" || r.Reached != ReachedNo {
				t.Fatalf("the second request = %d %s, reached %q; want 503 busy, no", r.StatusCode, r.is(), r.Reached)
			}
		}
		if len(waits) < 3 || waits[""] {
			t.Errorf("those turned away are told to come back after %v, want several times", waits)
		}
		close(hold)
		if got := <-first; got != 200 {
			t.Errorf("the first request = %d, want 200", got)
		}
	})
}

func TestAnAnswerThatBreaksOffIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sends atomic.Int64
		s := playing(t, manifest.Proxy{}, func(_ int, p *memhttp.Peer) {
			p.ReadRequest()
			sends.Add(1)
			p.Say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfive!")
		})
		defer s.close()
		r := s.send("GET", "/", nil)
		if r.StatusCode != 200 || r.body != "five!" || r.err != io.ErrUnexpectedEOF || sends.Load() != 1 {
			t.Errorf("the answer is %d %q, %v, after %d sends; want what there is of it, an unexpected EOF, one send", r.StatusCode, r.body, r.err, sends.Load())
		}
		if v := s.visit(); !v.Broken {
			t.Error("the visit is not broken, want it to be")
		}
	})
}

func TestOnlyTheLastAttemptsHeaderArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := serving(t, manifest.Proxy{}, func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 1 {
				w.Header().Set("Set-Cookie", "a=1")
				w.Header().Set("X-Only", "first")
				w.WriteHeader(503)
				return
			}
			w.Header().Set("X-From", "second")
		})
		defer s.close()
		r := s.send("GET", "/", nil)
		if h := r.Header; r.StatusCode != 200 || h.Get("X-From") != "second" || h.Get("Set-Cookie") != "" || h.Get("X-Only") != "" {
			t.Errorf("the answer is %d with %v, want the fields of the second attempt only", r.StatusCode, h)
		}
	})
}

func TestEveryAnswerOfTheProxyHasACorrelationID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serving(t, manifest.Proxy{MaxBody: 1, RequireKey: []string{"POST /charge"}}, func(http.ResponseWriter, *http.Request) {})
		defer s.close()
		for is, r := range map[string]*reply{
			"loop":           s.send("GET", "/", nil, "Via", strings.Repeat("1.1 riprap, ", 20)),
			"ambiguous":      s.send("POST", "/Charge", nil),
			"body-too-large": s.send("PUT", "/", strings.NewReader("xx")),
			"key-missing":    s.send("POST", "/charge", nil),
			"":               s.send("GET", "/", nil),
		} {
			if r.is() != is || r.Header.Get(deadline.CorrelationHeader) == "" {
				t.Errorf("the answer is %q with the id %q, want %q and an id", r.is(), r.Header.Get(deadline.CorrelationHeader), is)
			}
		}
	})
}

func TestLatencyIsObservedAndBoundsOnlyIfToldTo(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slow := false
			s := serving(t, manifest.Proxy{Adaptive: adaptive, Routes: []manifest.Route{{Match: "/a"}}}, func(w http.ResponseWriter, r *http.Request) {
				if slow {
					<-r.Context().Done()
				}
				time.Sleep(50 * time.Millisecond)
			})
			defer s.close()
			for range 250 {
				s.send("GET", "/a", nil)
			}
			for _, d := range s.proxy.Snapshot(time.Now()).Routes {
				if d.Name == "service /a" && (d.Latency.P50 < 49*time.Millisecond || d.Latency.P50 > 51*time.Millisecond) {
					t.Errorf("adaptive %v: the median of /a is %v, want about 50ms", adaptive, d.Latency.P50)
				}
			}
			slow = true
			began := time.Now()
			s.send("GET", "/a", nil)
			if took := time.Since(began); adaptive && took > 10*time.Second || !adaptive && took < 25*time.Second {
				t.Errorf("adaptive %v: a request that hangs took %v", adaptive, took)
			}
			began = time.Now()
			s.send("POST", "/a", nil) // would be an unknown outcome, and no other attempt comes
			if took := time.Since(began); took < 9*time.Second {
				t.Errorf("adaptive %v: a request that is sent once took %v, want all of its 9.5s", adaptive, took)
			}
		})
	}
}
