package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestAReplayHasTheHeaderFieldsThatDescribeTheAnswer(t *testing.T) {
	kept := map[string]string{
		"Content-Type": "application/pdf", "Content-Encoding": "br", "Content-Language": "de", "Content-Disposition": "attachment",
		"Location": "/charges/1", "Content-Location": "/charges/1", "Etag": `"1"`, "Last-Modified": "Mon, 02 Jan 2006 15:04:05 GMT",
		"Link": "</next>; rel=next", "X-Charge": "1",
	}
	dropped := []string{"Set-Cookie", "Www-Authenticate", "Authorization", "Proxy-Authenticate", "X-Request-Id", "X-Ratelimit-Remaining", "Keep-Alive", "X-Other"}
	bubble(t, idempotency.Middleware{KeepHeaders: []string{"x-charge"}}, func(w http.ResponseWriter, r *http.Request) {
		for name, value := range kept {
			w.Header().Set(name, value)
		}
		w.Header().Add("Link", "</last>; rel=last")
		for _, name := range dropped {
			w.Header().Set(name, "first only")
		}
		w.WriteHeader(201)
		w.Header().Set("X-Charge", "too late")
		w.Write([]byte{0, 255, 10, 13})
	}, func(s *service) {
		first, second := s.post("k", "a"), s.post("k", "a")
		s.wantAnswer(first, 201, "\x00\xff\n\r", false)
		s.wantAnswer(second, 201, "\x00\xff\n\r", true)
		for name, value := range kept {
			if !slices.Equal(first.Header[name], second.Header[name]) || second.Header.Get(name) != value {
				t.Errorf("%s = %q, and %q in the replay, want %q in both", name, first.Header[name], second.Header[name], value)
			}
		}
		for _, name := range dropped {
			if first.Header.Get(name) == "" || second.Header.Get(name) != "" {
				t.Errorf("%s = %q, and %q in the replay, want it in the first only", name, first.Header[name], second.Header[name])
			}
		}
		for _, a := range []answer{first, second} {
			if got := a.Header["Idempotency-Retention"]; !slices.Equal(got, []string{"86400"}) {
				t.Errorf("Idempotency-Retention = %q, want a day in seconds", got)
			}
		}
	})
}

func TestTheRetentionIsOursWhateverTheHandlerSays(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Idempotency-Retention", "1") // of a service that the handler asked
	}, func(s *service) {
		for range 2 {
			if got := s.post("k", "a").Header["Idempotency-Retention"]; !slices.Equal(got, []string{"86400"}) {
				t.Errorf("Idempotency-Retention = %q, want a day in seconds", got)
			}
		}
	})
}

func TestAReplayHasTheDateOfItsOwn(t *testing.T) {
	bubble(t, idempotency.Middleware{}, created, func(s *service) {
		first := s.post("k", "a")
		time.Sleep(time.Hour)
		synctest.Wait()
		if second := s.post("k", "a"); second.Header.Get("Date") == first.Header.Get("Date") {
			t.Errorf("Date = %q an hour later", second.Header.Get("Date"))
		}
	})
}

func TestTheContentTypeIsGuessedOnceAndAsByTheServer(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    []string
	}{
		{"guessed", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<html>")
		}, []string{"text/html; charset=utf-8"}},
		{"guessed from two parts", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			io.WriteString(w, "<ht")
			io.WriteString(w, "ml>")
		}, []string{"text/html; charset=utf-8"}},
		{"not to be guessed", func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<html>")
		}, nil},
		{"of an encoding", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "<html>")
		}, nil},
		{"of nothing", func(w http.ResponseWriter, r *http.Request) {}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{}, test.handler, func(s *service) {
				for _, replayed := range []bool{false, true} {
					got := s.post("k", "a")
					if got.replayed() != replayed || !slices.Equal(got.Header["Content-Type"], test.want) {
						t.Errorf("Content-Type = %q (replayed: %v), want %q", got.Header["Content-Type"], got.replayed(), test.want)
					}
				}
			})
		})
	}
}

func TestAnAnswerWithoutABodyIsReplayed(t *testing.T) {
	for name, test := range map[string]struct {
		status  int
		handler http.HandlerFunc
	}{
		"nothing written": {200, func(http.ResponseWriter, *http.Request) {}},
		"empty write":     {200, func(w http.ResponseWriter, _ *http.Request) { w.Write(nil) }},
		"204":             {204, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		"304":             {304, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }},
		"304 with the length of another": {304, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(304)
		}},
		"202": {202, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202) }},
		"204 with a body": {204, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "x"); err != http.ErrBodyNotAllowed {
				panic(fmt.Sprintf("Write after 204 = %v, want http.ErrBodyNotAllowed", err))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{}, test.handler, func(s *service) {
				s.wantAnswer(s.post("k", "a"), test.status, "", false)
				s.wantAnswer(s.post("k", "a"), test.status, "", true)
				s.wantRuns(1)
			})
		})
	}
}

func TestTheFirstStatusCounts(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(201)
		w.WriteHeader(500)
		io.WriteString(w, "x")
		w.WriteHeader(404)
	}, func(s *service) {
		s.wantAnswer(s.post("k", "a"), 201, "x", false)
		s.wantAnswer(s.post("k", "a"), 201, "x", true)
	})
}

func TestAStatusThatIsNonePanicsInTheHandler(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		for _, code := range []int{0, 99, 1000} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("WriteHeader(%d) does not panic", code)
					}
				}()
				w.WriteHeader(code)
			}()
		}
		w.WriteHeader(202)
	}, func(s *service) {
		s.wantAnswer(s.post("k", "a"), 202, "", false)
	})
}

func TestTheClientIsAnsweredAfterTheRecord(t *testing.T) {
	store := &book{pages: make(map[idempotency.ID]*page)}
	var mu sync.Mutex
	var recorded time.Time
	store.before = func(_ context.Context, step string) error {
		if step == "complete" {
			time.Sleep(time.Second)
			mu.Lock()
			recorded = time.Now()
			mu.Unlock()
		}
		return nil
	}
	bubble(t, idempotency.Middleware{Store: store}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("x", 100_000))
	}, func(s *service) {
		resp, err := s.client.Do(s.request("POST", "/charges", "k", "a"))
		if err != nil {
			s.t.Fatal(err)
		}
		defer resp.Body.Close()
		mu.Lock()
		defer mu.Unlock()
		if recorded.IsZero() || time.Now().Before(recorded) {
			t.Errorf("the client got its answer before the store had it")
		}
	})
}

func TestABodyOfAnotherLengthThanSaidIsNotTheWhole(t *testing.T) {
	t.Run("longer", func(t *testing.T) {
		bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			io.WriteString(w, "ab")
			if _, err := io.WriteString(w, "c"); err != http.ErrContentLength {
				t.Errorf("Write = %v, want http.ErrContentLength", err)
			}
		}, func(s *service) {
			s.wantAnswer(s.post("k", "a"), 200, "ab", false)
			s.wantAnswer(s.post("k", "a"), 200, "ab", true)
		})
	})
	t.Run("shorter", func(t *testing.T) {
		bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "ab")
		}, func(s *service) {
			if got := s.post("k", "a"); got.err == nil {
				t.Errorf("a body that is too short looks whole: %q", got.body)
			}
			s.wantProblem(s.post("k", "a"), 409, "answer-not-kept")
			s.wantRuns(1)
		})
	})
}

func TestAnAnswerToHeadHasALengthAndNoBody(t *testing.T) {
	bubble(t, idempotency.Middleware{Methods: []string{"HEAD"}}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "3")
		w.Header().Set("Etag", `"1"`)
	}, func(s *service) {
		for _, replayed := range []bool{false, true} {
			got := s.send(s.request("HEAD", "/", "k", ""))
			s.wantAnswer(got, 200, "", replayed)
			if got.Header.Get("Etag") != `"1"` {
				t.Errorf("Etag = %q", got.Header.Get("Etag"))
			}
		}
	})
}

func TestASourceThatFailsAtOnceBeginsNoAnswer(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		t.Run(fmt.Sprint("transactional ", transactional), func(t *testing.T) {
			bubble(t, idempotency.Middleware{Transactional: transactional}, func(w http.ResponseWriter, r *http.Request) {
				if _, err := w.(io.ReaderFrom).ReadFrom(iotest.ErrReader(errors.New("broken"))); err == nil {
					t.Errorf("ReadFrom a broken source = nil")
				}
				w.WriteHeader(404)
			}, func(s *service) {
				s.wantAnswer(s.post("k", "a"), 404, "", false)
			})
		})
	}
}
