package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestARecordThatFailsForAMomentIsWrittenBeforeTheAnswer(t *testing.T) {
	for _, test := range []struct {
		step  string
		m     idempotency.Middleware
		after bool // it was done, and its answer was lost
	}{
		{"complete", idempotency.Middleware{}, false},
		{"complete", idempotency.Middleware{}, true},
		{"commit", idempotency.Middleware{Transactional: true}, false},
		{"commit", idempotency.Middleware{Transactional: true}, true},
	} {
		t.Run(fmt.Sprint(test.step, " after: ", test.after), func(t *testing.T) {
			fail := failing(test.step, 3, errDown)
			test.m.Store = newBook(fail, nil)
			if test.after {
				test.m.Store = newBook(nil, fail)
				test.m.Lease = 300 * time.Millisecond // whoever renews finds the key completed
			}
			bubble(t, test.m, created, func(s *service) {
				begun := time.Now()
				s.wantAnswer(s.post("k", "a"), 201, "did a", false)
				if took := time.Since(begun); took == 0 || took > 2*time.Second {
					t.Errorf("the answer took %v, want a pause between the tries and at most 2s", took)
				}
				s.wantKinds(idempotency.Ran)
				s.wantAnswer(s.post("k", "a"), 201, "did a", true)
				s.wantRuns(1)
			})
		})
	}
}

func TestTheClientGetsItsAnswerThoughTheRecordCannotBeWritten(t *testing.T) {
	for name, before := range map[string]func(context.Context, string) error{
		"fails": failing("complete", -1, errDown),
		"hangs": hanging("complete"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, idempotency.Middleware{Store: newBook(before, nil)}, created, func(s *service) {
				begun := time.Now()
				got := s.post("k", "a")
				s.wantAnswer(got, 201, "did a", false)
				if took := time.Since(begun); took < 1500*time.Millisecond || took > 2*time.Second {
					t.Errorf("the answer took %v, want about 2s", took)
				}
				if got.ContentLength != 5 || !got.Close {
					t.Errorf("Content-Length: %d, Connection: close: %v, want 5 and true", got.ContentLength, got.Close)
				}
				time.Sleep(30 * time.Second)
				s.wantProblem(s.post("k", "a"), 409, "in-flight") // still trying, still renewing
				s.wantKinds(idempotency.InFlight)
				time.Sleep(2 * time.Minute)
				s.wantProblem(s.post("k", "a"), 409, "outcome-unknown")
				s.wantKinds(idempotency.InFlight, idempotency.Unrecorded, idempotency.Unresolved)
				s.wantRuns(1)
				if n := s.store.took("release"); n != 0 {
					t.Errorf("the key was released %d times, want never", n)
				}
				if n := s.store.took("renew"); n < 3 {
					t.Errorf("renewed %d times while the record could not be written, want about 3", n)
				}
			})
		})
	}
}

func TestARecordThatIsWrittenAfterTheAnswerIsReplayed(t *testing.T) {
	var up atomic.Bool
	store := newBook(func(_ context.Context, step string) error {
		if step == "complete" && !up.Load() {
			return errDown
		}
		return nil
	}, nil)
	bubble(t, idempotency.Middleware{Store: store}, created, func(s *service) {
		s.wantAnswer(s.post("k", "a"), 201, "did a", false)
		time.Sleep(20 * time.Second)
		up.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		s.wantKinds(idempotency.Ran)
		s.wantAnswer(s.post("k", "a"), 201, "did a", true)
		s.wantRuns(1)
	})
}

func TestAStreamWhoseRecordCannotBeWrittenEndsForTheClient(t *testing.T) {
	bubble(t, idempotency.Middleware{Store: newBook(failing("complete", -1, errDown), nil)}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		created(w, r)
	}, func(s *service) {
		begun := time.Now()
		s.wantAnswer(s.post("k", "a"), 200, "did a", false)
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("the end of the stream took %v, want at most 2s", took)
		}
		s.wantKinds(idempotency.Unrecorded)
		s.wantProblem(s.post("k", "a"), 409, "in-flight")
	})
}

func TestAReleaseThatFails(t *testing.T) {
	limited := func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) }
	t.Run("on its way back, has released the key", func(t *testing.T) {
		bubble(t, idempotency.Middleware{Store: newBook(nil, failing("release", 1, errDown))}, limited, func(s *service) {
			s.wantAnswer(s.post("k", "a"), 429, "", false)
			s.wantKinds(idempotency.Released)
			s.wantAnswer(s.post("k", "a"), 429, "", false)
			s.wantRuns(2)
		})
	})
	t.Run("for good, leaves the key held", func(t *testing.T) {
		bubble(t, idempotency.Middleware{Store: newBook(failing("release", -1, errDown), nil)}, limited, func(s *service) {
			s.wantAnswer(s.post("k", "a"), 429, "", false)
			time.Sleep(3 * time.Minute)
			s.wantKinds(idempotency.Unrecorded)
			s.wantProblem(s.post("k", "a"), 409, "outcome-unknown")
			s.wantRuns(1)
		})
	})
}

func TestASuspendThatFailsLeavesTheKeyHeld(t *testing.T) {
	bubble(t, idempotency.Middleware{Store: newBook(failing("suspend", -1, errDown), nil)}, func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}, func(s *service) {
		s.post("k", "a")
		time.Sleep(3 * time.Minute)
		s.wantProblem(s.post("k", "a"), 409, "outcome-unknown")
		if e := s.events[0]; e.Kind != idempotency.Suspended || !errors.Is(e.Err, errDown) {
			t.Errorf("event = %v, %v, want suspended and %v", e.Kind, e.Err, errDown)
		}
	})
}

func TestAnAnswerForWhichThereIsNoRoomIsNotRunAgain(t *testing.T) {
	full := failing("complete", 1, idempotency.ErrFull)
	bubble(t, idempotency.Middleware{Store: newBook(full, nil)}, created, func(s *service) {
		begun := time.Now()
		s.wantAnswer(s.post("k", "a"), 201, "did a", false)
		if took := time.Since(begun); took != 0 {
			t.Errorf("the answer took %v, want no time", took)
		}
		s.wantProblem(s.post("k", "a"), 409, "answer-not-kept")
		s.wantKinds(idempotency.Unrecorded, idempotency.Replayed)
		s.wantRuns(1)
	})
}

func TestACommitThatFails(t *testing.T) {
	for _, test := range []struct {
		name    string
		store   func() *book
		problem string
		kinds   []idempotency.Kind
		again   func(*service)
	}{
		{"surely", func() *book { return newBook(failing("commit", 1, idempotency.ErrNotCommitted), nil) },
			"not-committed", []idempotency.Kind{idempotency.NotCommitted}, func(s *service) {
				s.wantAnswer(s.post("k", "a"), 201, "did a", false)
				s.wantRuns(2)
			}},
		{"without a word", func() *book { return newBook(nil, failing("commit", -1, errDown)) },
			"commit-unknown", []idempotency.Kind{idempotency.Unrecorded}, func(s *service) {
				s.wantAnswer(s.post("k", "a"), 201, "did a", true)
				s.wantRuns(1)
			}},
		{"without a word and without effect", func() *book { return newBook(failing("commit", -1, errDown), nil) },
			"commit-unknown", []idempotency.Kind{idempotency.Unrecorded}, func(s *service) {
				s.wantProblem(s.post("k", "a"), 409, "in-flight")
				s.store.before = nil
				time.Sleep(time.Minute)
				s.wantAnswer(s.post("k", "a"), 201, "did a", false)
				s.wantRuns(2)
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := test.store()
			bubble(t, idempotency.Middleware{Store: store, Transactional: true}, func(w http.ResponseWriter, r *http.Request) {
				store.effect(r.Context())
				w.Header().Set("Location", "/charges/1")
				created(w, r)
			}, func(s *service) {
				got := s.post("k", "a")
				s.wantProblem(got, 503, test.problem)
				if got.Header.Get("Location") != "" || got.Header.Get("Retry-After") == "" || got.member("retry_same_key") != true {
					t.Errorf("answer = %v %s, want Retry-After, retry_same_key and nothing of the handler's", got.Header, got.body)
				}
				if kinds := s.kinds(); !slices.Equal(kinds, test.kinds) {
					t.Errorf("events = %v, want %v", kinds, test.kinds)
				}
				test.again(s)
				if store.effects != 1 {
					t.Errorf("%d effects, want one", store.effects)
				}
			})
		})
	}
}

func TestAKeyIsNewAfterItsRetention(t *testing.T) {
	bubble(t, idempotency.Middleware{Retention: 90*time.Minute + time.Millisecond}, created, func(s *service) {
		if got := s.post("k", "a").Header.Get("Idempotency-Retention"); got != "5400" {
			t.Errorf("Idempotency-Retention = %q, want 5400", got)
		}
		time.Sleep(90 * time.Minute)
		s.wantAnswer(s.post("k", "a"), 201, "did a", true)
		time.Sleep(time.Second)
		s.wantAnswer(s.post("k", "a"), 201, "did a", false)
	})
}
