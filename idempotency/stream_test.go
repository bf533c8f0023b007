package idempotency_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestAnInformationComesBeforeTheAnswerAndIsNotKept(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		t.Run(fmt.Sprint("transactional ", transactional), func(t *testing.T) {
			bubble(t, idempotency.Middleware{Transactional: transactional}, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Link", "</style.css>")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Del("Link")
				w.WriteHeader(201)
			}, func(s *service) {
				var hints []string
				r := s.request("POST", "/charges", "k", "a")
				r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					hints = append(hints, h.Get("Link"))
					return nil
				}}))
				got := s.send(r)
				s.wantAnswer(got, 201, "", false)
				if got.Header.Get("Link") != "" {
					t.Errorf("the answer has the Link of the information before it")
				}
				want := []string{"</style.css>"}
				if transactional { // nothing before the commit
					want = nil
				}
				if !slices.Equal(hints, want) {
					t.Errorf("informed of %q, want %q", hints, want)
				}
				s.wantAnswer(s.post("k", "a"), 201, "", true)
			})
		})
	}
}

func TestAnAnswerThatCannotBeKeptGoesThroughAndIsNotRunAgain(t *testing.T) {
	large := strings.Repeat("x", 101)
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		body    string
		trailer string
	}{
		{"too large", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); io.WriteString(w, large) }, large, ""},
		{"too large in parts", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			for i := range len(large) {
				w.Write([]byte(large[i : i+1]))
			}
		}, large, ""},
		{"too large, copied", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.Copy(w, io.LimitReader(strings.NewReader(large), 1000))
		}, large, ""},
		{"flushed", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			io.WriteString(w, "b")
		}, "ab", ""},
		{"flushed by a controller", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, "a")
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
		}, "a", ""},
		{"with a trailer that was announced", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Sum")
			w.WriteHeader(201)
			io.WriteString(w, "a")
			w.Header().Set("Sum", "7")
		}, "a", "7"},
		{"with a trailer that was not", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			io.WriteString(w, "a")
			w.Header().Set(http.TrailerPrefix+"Sum", "7")
		}, "a", "7"},
		{"flushed, with a trailer", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Sum")
			w.WriteHeader(201)
			w.(http.Flusher).Flush()
			w.Header().Set("Sum", "7")
		}, "", "7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{MaxAnswer: 100}, test.handler, func(s *service) {
				got := s.post("k", "a")
				s.wantAnswer(got, 201, test.body, false)
				if got.Trailer.Get("Sum") != test.trailer {
					t.Errorf("trailer = %q, want %q", got.Trailer.Get("Sum"), test.trailer)
				}
				if got.Header.Get("Idempotency-Retention") == "" {
					t.Errorf("the answer has no Idempotency-Retention")
				}
				again := s.post("k", "a")
				s.wantProblem(again, 409, "answer-not-kept")
				if again.member("first_status") != 201.0 {
					t.Errorf("first_status = %v, want 201", again.member("first_status"))
				}
				s.wantRuns(1)
			})
		})
	}
}

func TestAnAnswerOfTheLargestSizeIsKept(t *testing.T) {
	body := strings.Repeat("x", 100)
	for name, h := range map[string]http.HandlerFunc{
		"written": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) },
		"copied": func(w http.ResponseWriter, r *http.Request) {
			io.Copy(w, io.LimitReader(strings.NewReader(body), 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{MaxAnswer: 100}, h, func(s *service) {
				s.post("k", "a")
				s.wantAnswer(s.post("k", "a"), 200, body, true)
			})
		})
	}
}

func TestAStatusWithoutEffectLeavesTheKeyFreeWhenFlushedToo(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(429)
		w.(http.Flusher).Flush()
	}, func(s *service) {
		s.post("k", "a")
		s.post("k", "a")
		s.wantRuns(2)
	})
}

func TestAFlushReachesTheClientAtOnce(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		time.Sleep(time.Minute)
		io.WriteString(w, "b")
	}, func(s *service) {
		begun := time.Now()
		resp, err := s.client.Do(s.request("POST", "/", "k", "a"))
		if err != nil {
			s.t.Fatal(err)
		}
		defer resp.Body.Close()
		first := make([]byte, 1)
		if _, err := io.ReadFull(resp.Body, first); err != nil || time.Since(begun) != 0 {
			t.Errorf("the first byte took %v, %v, want no time", time.Since(begun), err)
		}
		rest, err := io.ReadAll(resp.Body)
		if string(rest) != "b" || err != nil || time.Since(begun) != time.Minute {
			t.Errorf("the rest = %q after %v, %v, want b after a minute", rest, time.Since(begun), err)
		}
	})
}

func TestAnAnswerThatIsTooLargeIsNotHeldBack(t *testing.T) {
	bubble(t, idempotency.Middleware{MaxAnswer: 100}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", 10_000))
		time.Sleep(time.Minute)
	}, func(s *service) {
		begun := time.Now()
		resp, err := s.client.Do(s.request("POST", "/", "k", "a"))
		if err != nil {
			s.t.Fatal(err)
		}
		defer resp.Body.Close()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the header took %v, want no time", took)
		}
		io.Copy(io.Discard, resp.Body)
	})
}

func TestAConnectionMayBeHijackedAfterTheHeader(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(202)
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		buffered.Flush()
		conn.Close()
	}, func(s *service) {
		s.wantAnswer(s.post("k", "a"), 202, "", false)
	})
}

func TestAHijackedConnectionIsNotRunAgain(t *testing.T) {
	for _, by := range []string{"type", "controller"} {
		t.Run(by, func(t *testing.T) {
			bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
				hijack := http.NewResponseController(w).Hijack
				if by == "type" {
					hijack = w.(http.Hijacker).Hijack
				}
				conn, _, err := hijack()
				if err != nil {
					panic(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(w, "x"); err != http.ErrHijacked {
					t.Errorf("Write after Hijack = %v, want http.ErrHijacked", err)
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
			}, func(s *service) {
				s.wantAnswer(s.post("k", "a"), 200, "hi", false)
				synctest.Wait()
				s.wantProblem(s.post("k", "a"), 409, "answer-not-kept")
				s.wantRuns(1)
			})
		})
	}
}

func TestNothingLeavesATransactionBeforeTheCommit(t *testing.T) {
	large := strings.Repeat("x", 10_000)
	var answered time.Time
	store := &book{pages: make(map[idempotency.ID]*page)}
	m := idempotency.Middleware{Store: store, Transactional: true, MaxAnswer: 100}
	bubble(t, m, func(w http.ResponseWriter, r *http.Request) {
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		c := http.NewResponseController(w)
		if err := c.Flush(); flushes || !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flusher: %v, Flush = %v, want none and http.ErrNotSupported", flushes, err)
		}
		if _, _, err := c.Hijack(); hijacks || !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Hijacker: %v, Hijack = %v, want none and http.ErrNotSupported", hijacks, err)
		}
		if err := c.SetWriteDeadline(time.Time{}); err != nil {
			t.Errorf("SetWriteDeadline = %v", err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Errorf("SetReadDeadline = %v", err)
		}
		io.Copy(w, io.LimitReader(strings.NewReader(large), 1e6))
		time.Sleep(time.Minute)
		answered = time.Now()
	}, func(s *service) {
		resp, err := s.client.Do(s.request("POST", "/charges", "k", "a"))
		if err != nil {
			s.t.Fatal(err)
		}
		if time.Now().Before(answered) || answered.IsZero() {
			t.Errorf("the header came before the commit")
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != large || err != nil {
			t.Errorf("body of %d bytes, %v, want %d", len(body), err, len(large))
		}
		s.wantProblem(s.post("k", "a"), 409, "answer-not-kept")
	})
}

// plain hides all that a writer can do besides writing.
type plain struct{ http.ResponseWriter }

// hijackOnly and flushOnly are writers that can do one thing more.
type hijackOnly struct {
	plain
	http.Hijacker
}

type flushOnly struct {
	plain
	http.Flusher
}

func TestAHandlerGetsAWriterThatDoesWhatTheOneOutsideDoes(t *testing.T) {
	for _, test := range []struct {
		name             string
		writer           func(http.ResponseWriter) http.ResponseWriter
		flushes, hijacks bool
	}{
		{"nothing", func(w http.ResponseWriter) http.ResponseWriter { return plain{w} }, false, false},
		{"flushes", func(w http.ResponseWriter) http.ResponseWriter { return flushOnly{plain{w}, w.(http.Flusher)} }, true, false},
		{"hijacks", func(w http.ResponseWriter) http.ResponseWriter { return hijackOnly{plain{w}, w.(http.Hijacker)} }, false, true},
		{"both", func(w http.ResponseWriter) http.ResponseWriter { return w }, true, true},
		{"both, wrapped", func(w http.ResponseWriter) http.ResponseWriter { return wrapped{w} }, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveInside(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
					_, flushes := w.(http.Flusher)
					_, hijacks := w.(http.Hijacker)
					if flushes != test.flushes || hijacks != test.hijacks {
						t.Errorf("flushes: %v, hijacks: %v, want %v, %v", flushes, hijacks, test.flushes, test.hijacks)
					}
					if !flushes && !errors.Is(http.NewResponseController(w).Flush(), http.ErrNotSupported) {
						t.Errorf("Flush is not http.ErrNotSupported")
					}
					created(w, r)
				}, func(h http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(test.writer(w), r) })
				})
				defer s.stop()
				s.wantAnswer(s.post("k", "a"), 201, "did a", false)
				s.wantAnswer(s.post("k", "a"), 201, "did a", true)
			})
		})
	}
}

type wrapped struct{ w http.ResponseWriter }

func (w wrapped) Header() http.Header         { return w.w.Header() }
func (w wrapped) Write(p []byte) (int, error) { return w.w.Write(p) }
func (w wrapped) WriteHeader(code int)        { w.w.WriteHeader(code) }
func (w wrapped) Unwrap() http.ResponseWriter { return w.w }

func TestFieldsOfOuterHandlersStayInEveryAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := serveInside(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
			if got := w.Header().Get("X-Correlation-Id"); got == "" {
				t.Errorf("the handler does not see the field of the outer one")
			}
			created(w, r)
		}, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n++
				w.Header().Set("X-Correlation-Id", fmt.Sprint(n))
				h.ServeHTTP(w, r)
			})
		})
		defer s.stop()
		for i, body := range []string{"a", "a", "b"} {
			if got, want := s.post("k", body).Header.Get("X-Correlation-Id"), fmt.Sprint(i+1); got != want {
				t.Errorf("X-Correlation-Id = %q, want %q", got, want)
			}
		}
	})
}

func TestATimeoutOutsideLeavesTheRunGoingOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveInside(t, idempotency.Middleware{}, sleepy(10*time.Second), func(h http.Handler) http.Handler {
			return http.TimeoutHandler(h, time.Second, "too late")
		})
		defer s.stop()
		s.wantAnswer(s.post("k", "a"), 503, "too late", false)
		s.wantProblem(s.post("k", "a"), 409, "in-flight")
		time.Sleep(10 * time.Second)
		s.wantAnswer(s.post("k", "a"), 200, "slept", true)
	})
}

func TestOverHTTP2TheAnswerIsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, idempotency.Middleware{}, created)
		defer s.stop()
		s.client.Transport = s.server.HTTP2()
		s.wantAnswer(s.post("k", "a"), 201, "did a", false)
		got := s.post("k", "a")
		s.wantAnswer(got, 201, "did a", true)
		if got.ProtoMajor != 2 {
			t.Errorf("spoken over %s", got.Proto)
		}
	})
}
