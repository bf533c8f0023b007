package idempotency_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
	"github.com/riprap-go/riprap/internal/memhttp"
)

func TestARequestRunsOnceAndItsAnswerIsReplayed(t *testing.T) {
	bubble(t, idempotency.Middleware{}, created, func(s *service) {
		s.wantAnswer(s.post("k", "a"), 201, "did a", false)
		s.wantAnswer(s.post("k", "a"), 201, "did a", true)
		s.wantAnswer(s.post(`"k"`, "a"), 201, "did a", true)
		s.wantAnswer(s.post("l", "a"), 201, "did a", false)
		s.wantRuns(2)
		s.wantKinds(idempotency.Ran, idempotency.Replayed, idempotency.Replayed, idempotency.Ran)
	})
}

func TestARequestWithoutAKeyIsRefused(t *testing.T) {
	bubble(t, idempotency.Middleware{}, created, func(s *service) {
		got := s.post("", "a")
		s.wantProblem(got, 400, "key-missing")
		if got.Header.Get("Idempotency-Retention") != "" {
			t.Errorf("the answer to a request without a key has a retention")
		}
		s.wantRuns(0)
	})
}

func TestRequestsWithoutAKeyShareNothingWhereItIsOptional(t *testing.T) {
	bubble(t, idempotency.Middleware{Optional: true}, created, func(s *service) {
		s.wantAnswer(s.post("", "a"), 201, "did a", false)
		s.wantAnswer(s.post("", "a"), 201, "did a", false)
		s.wantRuns(2)
		if len(s.store.steps) != 0 {
			t.Errorf("the store was asked: %v", s.store.steps)
		}
	})
}

func TestAnInvalidKeyIsRefused(t *testing.T) {
	onlyLong := func(key string) error {
		if len(key) < 8 {
			return errors.New("fewer than 8 characters")
		}
		return nil
	}
	for _, test := range []struct {
		name string
		keys []string
		ok   bool
	}{
		{"unclosed quote", []string{`"k`}, false},
		{"two lines", []string{"long enough", "long enough"}, false},
		{"list", []string{`"long enough", "long enough"`}, false},
		{"empty", []string{""}, false},
		{"256 bytes", []string{strings.Repeat("k", 256)}, false},
		{"255 bytes", []string{strings.Repeat("k", 255)}, true},
		{"refused by CheckKey", []string{"short"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{CheckKey: onlyLong, Optional: true}, created, func(s *service) {
				r := s.request("POST", "/", "", "a")
				r.Header["Idempotency-Key"] = test.keys
				got := s.send(r)
				if test.ok {
					s.wantAnswer(got, 201, "did a", false)
					return
				}
				s.wantProblem(got, 400, "key-invalid")
				s.wantRuns(0)
				s.wantKinds(idempotency.Refused)
			})
		})
	}
}

func TestOtherMethodsPassAsTheyAre(t *testing.T) {
	for _, test := range []struct {
		method  string
		methods []string
		runs    int
	}{
		{"POST", nil, 1},
		{"PATCH", nil, 1},
		{"PUT", nil, 2},
		{"GET", nil, 2},
		{"PUT", []string{"PUT"}, 1},
		{"POST", []string{"PUT"}, 2},
	} {
		t.Run(fmt.Sprint(test.method, test.methods), func(t *testing.T) {
			bubble(t, idempotency.Middleware{Methods: test.methods}, created, func(s *service) {
				for range 2 {
					s.send(s.request(test.method, "/", "k", "a"))
				}
				s.wantRuns(test.runs)
			})
		})
	}
}

func TestAKeyOfOneTenantDoesNotShowTheAnswerOfAnother(t *testing.T) {
	tenant := func(r *http.Request) string { return r.Header.Get("Tenant") }
	bubble(t, idempotency.Middleware{Scope: tenant}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, tenant(r))
	}, func(s *service) {
		for _, name := range []string{"ann", "bob"} {
			r := s.request("POST", "/", "k", "a")
			r.Header.Set("Tenant", name)
			s.wantAnswer(s.send(r), 200, name, false)
		}
		s.wantProblem(s.post("k", "a"), 400, "scope-missing")
		s.wantRuns(2)
	})
}

func TestAKeyBelongsToOneOperation(t *testing.T) {
	t.Run("by method and path", func(t *testing.T) {
		bubble(t, idempotency.Middleware{}, created, func(s *service) {
			for _, operation := range []string{"POST /a", "POST /a%2Fb", "POST /a/b", "PATCH /a"} {
				method, path, _ := strings.Cut(operation, " ")
				s.wantAnswer(s.send(s.request(method, path, "k", "x")), 201, "did x", false)
			}
			s.wantProblem(s.send(s.request("POST", "/a?currency=eur", "k", "x")), 422, "key-reused")
			s.wantRuns(4)
		})
	})
	t.Run("by one name for all", func(t *testing.T) {
		m := idempotency.Middleware{Operation: func(*http.Request) string { return "all" }}
		bubble(t, m, created, func(s *service) {
			s.wantAnswer(s.send(s.request("POST", "/a", "k", "x")), 201, "did x", false)
			s.wantProblem(s.send(s.request("POST", "/b", "k", "x")), 422, "key-reused")
			s.wantProblem(s.send(s.request("PATCH", "/a", "k", "x")), 422, "key-reused")
			s.wantRuns(1)
		})
	})
}

func TestPatternsTellHostsApartAndMayBeRenamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := idempotency.Middleware{Store: &book{pages: make(map[idempotency.ID]*page)}, Scope: idempotency.SingleTenant}
		var events []idempotency.Event
		m.Observe = func(_ context.Context, e idempotency.Event) { events = append(events, e) }
		send := func(pattern, host string) {
			mux := http.NewServeMux()
			mux.Handle(pattern, m.Handler(http.HandlerFunc(created)))
			server := memhttp.Serve(mux)
			client := &http.Client{Transport: server.Transport()}
			r, _ := http.NewRequest("POST", memhttp.URL+"/orders/7", strings.NewReader("x"))
			r.Host = host
			r.Header.Set("Idempotency-Key", "k")
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			client.CloseIdleConnections()
			server.Stop()
		}
		send("POST /orders/{id}", "a.test")
		send("/orders/{order}", "a.test")
		send("a.test/orders/{id}", "a.test")
		send("POST b.test/orders/{id}", "b.test")
		want := []struct {
			kind      idempotency.Kind
			operation string
		}{
			{idempotency.Ran, "POST /orders/{id}"},
			{idempotency.Replayed, "POST /orders/{order}"},
			{idempotency.Ran, "POST a.test/orders/{id}"},
			{idempotency.Ran, "POST b.test/orders/{id}"},
		}
		for i, w := range want {
			if e := events[i]; e.Kind != w.kind || e.Operation != w.operation {
				t.Errorf("event %d = %v of %q, want %v of %q", i, e.Kind, e.Operation, w.kind, w.operation)
			}
		}
	})
}

func TestAnAnswerIsReplayedOnlyToThoseWhoMaySeeIt(t *testing.T) {
	may := func(r *http.Request) bool { return r.Header.Get("Role") == "admin" }
	bubble(t, idempotency.Middleware{MayReplay: may}, created, func(s *service) {
		s.post("k", "a")
		got := s.post("k", "a")
		s.wantProblem(got, 403, "replay-refused")
		if got.replayed() {
			t.Errorf("the refusal says that it is a replay")
		}
		r := s.request("POST", "/charges", "k", "a")
		r.Header.Set("Role", "admin")
		s.wantAnswer(s.send(r), 201, "did a", true)
	})
}

func TestAKeyWithAnotherBodyIsRefused(t *testing.T) {
	t.Run("after the first", func(t *testing.T) {
		bubble(t, idempotency.Middleware{}, created, func(s *service) {
			s.post("k", "a")
			s.wantProblem(s.post("k", "b"), 422, "key-reused")
			s.wantRuns(1)
			s.wantKinds(idempotency.Ran, idempotency.Mismatched)
		})
	})
	t.Run("while the first runs", func(t *testing.T) {
		bubble(t, idempotency.Middleware{Wait: time.Hour}, sleepy(time.Minute), func(s *service) {
			go s.post("k", "a")
			synctest.Wait()
			s.wantProblem(s.post("k", "b"), 422, "key-reused")
			s.wantRuns(1)
		})
	})
	t.Run("after its lease", func(t *testing.T) {
		bubble(t, idempotency.Middleware{Reexecute: true}, func(w http.ResponseWriter, r *http.Request) {
			panic(http.ErrAbortHandler)
		}, func(s *service) {
			s.post("k", "a")
			time.Sleep(2 * time.Minute)
			s.wantProblem(s.post("k", "b"), 422, "key-reused")
			s.wantRuns(1)
		})
	})
	t.Run("which a Fingerprint does not look at", func(t *testing.T) {
		m := idempotency.Middleware{Fingerprint: func(r *http.Request, body []byte) []byte { return body[:1] }}
		bubble(t, m, created, func(s *service) {
			s.post("k", "a1")
			s.wantAnswer(s.post("k", "a2"), 201, "did a1", true)
			s.wantProblem(s.post("k", "b1"), 422, "key-reused")
		})
	})
}

// sleepy is a handler that takes its time, whatever its context says.
func sleepy(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(d)
		io.WriteString(w, "slept")
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	unknown := func(r *http.Request) { r.ContentLength = -1 }
	for _, test := range []struct {
		name string
		size int
		set  func(*http.Request)
		ok   bool
	}{
		{"of the largest size", 100, func(*http.Request) {}, true},
		{"one byte larger", 101, func(*http.Request) {}, false},
		{"of the largest size, not announced", 100, unknown, true},
		{"one byte larger, not announced", 101, unknown, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{MaxBody: 100}, created, func(s *service) {
				body := strings.Repeat("x", test.size)
				r := s.request("POST", "/", "k", body)
				test.set(r)
				got := s.send(r)
				if test.ok {
					s.wantAnswer(got, 201, "did "+body, false)
					return
				}
				s.wantProblem(got, 413, "body-too-large")
				s.wantRuns(0)
				if len(s.store.steps) != 0 {
					t.Errorf("the store was asked: %v", s.store.steps)
				}
			})
		})
	}
}

func TestABodyThatIsAnnouncedAsTooLargeIsNotRead(t *testing.T) {
	bubble(t, idempotency.Middleware{MaxBody: 100}, created, func(s *service) {
		conn, err := s.server.DialContext(s.t.Context(), "", "")
		if err != nil {
			s.t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a.test\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 413 {
			s.t.Fatalf("answer = %v, %v, want 413 without a 100 Continue before", resp, err)
		}
	})
}

func TestALimitOutsideMakesABodyTooLargeToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInside(t, idempotency.Middleware{}, created, func(h http.Handler) http.Handler {
			return http.MaxBytesHandler(h, 10)
		})
		defer s.stop()
		s.wantProblem(s.post("k", "more than ten bytes"), 413, "body-too-large")
		s.wantRuns(0)
	})
}

func TestABodyThatBreaksOffLeavesTheKeyUsable(t *testing.T) {
	bubble(t, idempotency.Middleware{}, created, func(s *service) {
		conn, err := s.server.DialContext(s.t.Context(), "", "")
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /charges HTTP/1.1\r\nHost: a.test\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nhalf")
		synctest.Wait()
		conn.Close()
		synctest.Wait()
		s.wantKinds(idempotency.Refused)
		s.wantAnswer(s.post("k", "a"), 201, "did a", false)
		s.wantRuns(1)
	})
}

func TestABodyShorterThanAnnouncedIsUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInside(t, idempotency.Middleware{}, created, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader("half")) // one who forgot what Content-Length says
				h.ServeHTTP(w, r)
			})
		})
		defer s.stop()
		s.wantProblem(s.post("k", "all of it"), 400, "body-unreadable")
		s.wantRuns(0)
	})
}

func TestTheHandlerReadsTheBodyThatWasRead(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		if r.GetBody != nil {
			t.Errorf("the handler's request has GetBody: a proxy's transport would send it twice")
		}
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v %v", body, err, r.Trailer)
	}, func(s *service) {
		r := s.request("POST", "/", "k", "all of it")
		r.ContentLength = -1
		r.Trailer = http.Header{"Sum": {"7"}}
		s.wantAnswer(s.send(r), 200, "all of it <nil> map[Sum:[7]]", false)
		s.wantAnswer(s.send(s.request("POST", "/", "empty", "")), 200, " <nil> map[]", false)
	})
}

func TestAMiddlewareThatCannotWorkPanicsAtOnce(t *testing.T) {
	store := &book{}
	var bare struct{ idempotency.Store }
	for _, test := range []struct {
		m    idempotency.Middleware
		want string
	}{
		{idempotency.Middleware{Scope: idempotency.SingleTenant}, "needs a Store"},
		{idempotency.Middleware{Store: store}, "needs a Scope"},
		{idempotency.Middleware{Store: bare, Scope: idempotency.SingleTenant, Transactional: true}, "Transactor"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, Transactional: true, FailOpen: true}, "FailOpen"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, Lease: -1}, "Lease of -1ns"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, Lease: 2}, "Lease of 2ns"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, Retention: time.Millisecond}, "Retention of 1ms"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, Wait: -1}, "Wait"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, MaxWaiting: -1}, "MaxWaiting"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, MaxBody: -1}, "MaxBody"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, MaxAnswer: -1}, "MaxAnswer"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, KeepHeaders: []string{"set-cookie"}}, "set-cookie"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, KeepHeaders: []string{"X-Request-ID"}}, "X-Request-ID"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, KeepHeaders: []string{"RateLimit-Policy"}}, "RateLimit-Policy"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, KeepHeaders: []string{"x-ratelimit-remaining"}}, "x-ratelimit-remaining"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, MismatchStatus: 200}, "MismatchStatus is 200"},
		{idempotency.Middleware{Store: store, Scope: idempotency.SingleTenant, KeepHeaders: []string{"Connection"}}, "Connection"},
	} {
		t.Run(test.want, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, test.want) || !strings.HasPrefix(got, "idempotency: ") {
					t.Errorf("Handler panicked with %q, want a text with %q", got, test.want)
				}
			}()
			test.m.Handler(http.HandlerFunc(created))
		})
	}
}
