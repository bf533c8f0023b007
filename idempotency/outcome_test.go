package idempotency_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/idempotency"
)

func TestWhatAStatusMeans(t *testing.T) {
	const kept, free = "kept", "free"
	for _, test := range []struct {
		status                       int
		plain, errors, transactional string
	}{
		{200, kept, kept, kept},
		{204, kept, kept, kept},
		{303, kept, kept, kept},
		{400, kept, kept, kept},
		{402, kept, kept, kept},
		{404, kept, kept, kept},
		{422, kept, kept, kept},
		{401, free, free, free},
		{403, free, free, free},
		{408, free, free, free},
		{409, free, free, free},
		{425, free, free, free},
		{429, free, free, free},
		{500, kept, free, free},
		{503, kept, free, free},
		{599, kept, free, free},
	} {
		for _, mode := range []struct {
			name string
			m    idempotency.Middleware
			want string
		}{
			{"plain", idempotency.Middleware{}, test.plain},
			{"releasing errors", idempotency.Middleware{ReleaseErrors: true}, test.errors},
			{"transactional", idempotency.Middleware{Transactional: true}, test.transactional},
		} {
			t.Run(fmt.Sprint(test.status, " ", mode.name), func(t *testing.T) {
				store := &book{pages: make(map[idempotency.ID]*page)}
				mode.m.Store = store
				bubble(t, mode.m, func(w http.ResponseWriter, r *http.Request) {
					store.effect(r.Context())
					w.WriteHeader(test.status)
				}, func(s *service) {
					s.wantAnswer(s.post("k", "a"), test.status, "", false)
					s.wantAnswer(s.post("k", "a"), test.status, "", mode.want == kept)
					switch committed := store.effects; {
					case mode.want == kept && committed != 1:
						t.Errorf("%d effects, want one", committed)
					case mode.want == free && mode.name == "transactional" && committed != 0:
						t.Errorf("%d effects were committed, want none", committed)
					}
				})
			})
		}
	}
}

func TestWhatAHandlerDeclaresGoesBeforeItsStatus(t *testing.T) {
	for _, test := range []struct {
		status        int
		declared      []idempotency.Outcome
		transactional bool
		first         idempotency.Kind
		second        string // "replay", "run", or a problem
		effects       int    // after the first
	}{
		{500, []idempotency.Outcome{idempotency.Final}, false, idempotency.Ran, "replay", 1},
		{500, []idempotency.Outcome{idempotency.Final}, true, idempotency.Ran, "replay", 1},
		{429, []idempotency.Outcome{idempotency.Final}, false, idempotency.Ran, "replay", 1},
		{200, []idempotency.Outcome{idempotency.NoEffect}, true, idempotency.Released, "run", 0},
		{500, []idempotency.Outcome{idempotency.NoEffect}, false, idempotency.Released, "run", 1},
		{502, []idempotency.Outcome{idempotency.Unknown}, false, idempotency.Suspended, "outcome-unknown", 1},
		{502, []idempotency.Outcome{idempotency.Unknown}, true, idempotency.Suspended, "outcome-unknown", 0},
		{201, []idempotency.Outcome{idempotency.NoStore}, false, idempotency.Ran, "answer-not-kept", 1},
		{201, []idempotency.Outcome{idempotency.NoStore}, true, idempotency.Ran, "answer-not-kept", 1},
		{201, []idempotency.Outcome{idempotency.Unknown, idempotency.Final}, false, idempotency.Ran, "replay", 1},
		{201, []idempotency.Outcome{idempotency.Unknown, 0}, false, idempotency.Ran, "replay", 1},
	} {
		t.Run(fmt.Sprint(test.status, test.declared, test.transactional), func(t *testing.T) {
			store := &book{pages: make(map[idempotency.ID]*page)}
			m := idempotency.Middleware{Store: store, Transactional: test.transactional}
			bubble(t, m, func(w http.ResponseWriter, r *http.Request) {
				store.effect(r.Context())
				for _, o := range test.declared {
					idempotency.Declare(r.Context(), o)
				}
				w.WriteHeader(test.status)
				io.WriteString(w, "secret")
			}, func(s *service) {
				s.wantAnswer(s.post("k", "a"), test.status, "secret", false)
				s.wantKinds(test.first)
				if store.effects != test.effects {
					t.Errorf("%d effects, want %d", store.effects, test.effects)
				}
				for range 2 {
					got := s.post("k", "a")
					switch test.second {
					case "replay":
						s.wantAnswer(got, test.status, "secret", true)
					case "run":
						s.wantAnswer(got, test.status, "secret", false)
					default:
						s.wantProblem(got, 409, test.second)
						if got.Header.Get("X-Should-Retry") != "false" {
							t.Errorf("X-Should-Retry = %q, want false", got.Header.Get("X-Should-Retry"))
						}
						if strings.Contains(got.body, "secret") {
							t.Errorf("the answer was kept: %s", got.body)
						}
					}
				}
			})
		})
	}
}

func TestAnAnswerThatWasNotKeptIsToldWithItsStatus(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		idempotency.Declare(r.Context(), idempotency.NoStore)
		w.WriteHeader(201)
	}, func(s *service) {
		s.post("k", "a")
		got := s.post("k", "a")
		s.wantProblem(got, 409, "answer-not-kept")
		if got.member("first_status") != 201.0 || !got.replayed() {
			t.Errorf("first_status = %v, replayed: %v, want 201 and true", got.member("first_status"), got.replayed())
		}
		s.wantRuns(1)
	})
}

// That there was an answer, and with which status, is for those who may see it too.
func TestAnAnswerThatWasNotKeptIsToldOnlyToThoseWhoMaySeeIt(t *testing.T) {
	may := func(*http.Request) bool { return false }
	bubble(t, idempotency.Middleware{MayReplay: may}, func(w http.ResponseWriter, r *http.Request) {
		idempotency.Declare(r.Context(), idempotency.NoStore)
	}, func(s *service) {
		s.post("k", "a")
		got := s.post("k", "a")
		s.wantProblem(got, 403, "replay-refused")
		if _, told := got.Header["Idempotent-Replayed"]; told || got.member("first_status") != nil {
			t.Errorf("the refusal tells of the first answer: %v %s", got.Header, got.body)
		}
	})
}

// catching keeps what a handler panics with, nil for runtime.Goexit, and breaks the connection.
func catching(panicked *any) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			returned := false
			defer func() {
				if !returned {
					*panicked = recover()
					panic(http.ErrAbortHandler)
				}
			}()
			h.ServeHTTP(w, r)
			returned = true
		})
	}
}

func TestAHandlerThatPanicsKeepsItsKey(t *testing.T) {
	for _, test := range []struct {
		name  string
		m     idempotency.Middleware
		panic any
		want  string // what the key is afterwards: "unknown", "leased" or "free"
		kind  idempotency.Kind
	}{
		{"plain", idempotency.Middleware{}, "boom", "unknown", idempotency.Suspended},
		{"aborted", idempotency.Middleware{}, http.ErrAbortHandler, "unknown", idempotency.Suspended},
		{"goexit", idempotency.Middleware{}, nil, "unknown", idempotency.Suspended},
		{"releasing errors", idempotency.Middleware{ReleaseErrors: true}, "boom", "unknown", idempotency.Suspended},
		{"reexecute", idempotency.Middleware{Reexecute: true}, "boom", "leased", idempotency.Unrecorded},
		{"transactional", idempotency.Middleware{Transactional: true}, "boom", "free", idempotency.Released},
		{"transactional, aborted", idempotency.Middleware{Transactional: true}, http.ErrAbortHandler, "free", idempotency.Released},
		{"transactional, goexit", idempotency.Middleware{Transactional: true}, nil, "free", idempotency.Released},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &book{pages: make(map[idempotency.ID]*page)}
				test.m.Store = store
				var panicked any
				first := true
				s := serveInside(t, test.m, func(w http.ResponseWriter, r *http.Request) {
					store.effect(r.Context())
					if !first {
						return
					}
					first = false
					idempotency.Declare(r.Context(), idempotency.NoEffect) // a panic says more
					io.WriteString(w, "half of it")
					if test.panic == nil {
						runtime.Goexit()
					}
					panic(test.panic)
				}, catching(&panicked))
				defer s.stop()
				if got := s.post("k", "a"); got.err == nil {
					t.Errorf("answer = %d %q, want a connection that breaks", got.StatusCode, got.body)
				}
				if panicked != test.panic {
					t.Errorf("outside it panics with %v, want %v", panicked, test.panic)
				}
				s.wantKinds(test.kind)
				got := s.post("k", "a")
				switch test.want {
				case "unknown":
					s.wantProblem(got, 409, "outcome-unknown")
					time.Sleep(time.Hour)
					s.wantProblem(s.post("k", "a"), 409, "outcome-unknown")
					s.wantRuns(1)
				case "leased":
					s.wantProblem(got, 409, "in-flight")
					time.Sleep(time.Minute)
					s.wantAnswer(s.post("k", "a"), 200, "", false)
				case "free":
					s.wantAnswer(got, 200, "", false)
					if store.effects != 1 {
						t.Errorf("%d effects, want the one of the second run", store.effects)
					}
				}
			})
		})
	}
}

func TestAPanicOfWhichTheRollbackIsNotSureSuspendsTheKey(t *testing.T) {
	for _, status := range []int{0, 500} { // zero: it panics
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			bubble(t, idempotency.Middleware{Transactional: true}, func(w http.ResponseWriter, r *http.Request) {
				r.Context().Value(bookKey{}).(*bookTx).dirty = true
				if status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(status)
			}, func(s *service) {
				s.post("k", "a")
				s.wantProblem(s.post("k", "a"), 409, "outcome-unknown")
				s.wantRuns(1)
				if s.store.took("release") != 0 {
					t.Errorf("the key was released")
				}
			})
		})
	}
}

func TestARunKnowsItsKey(t *testing.T) {
	bubble(t, idempotency.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		id, ok := idempotency.FromContext(r.Context())
		child := idempotency.ChildKey(r.Context(), "charge")
		fmt.Fprint(w, ok, " ", id, " ", child == id.ChildKey("charge") && child != "")
	}, func(s *service) {
		want := idempotency.NewID(idempotency.SingleTenant(nil), "POST /charges", "k")
		s.wantAnswer(s.post("k", "a"), 200, fmt.Sprint("true ", want, " true"), false)
	})
}

func TestOutsideOfARunThereIsNoKey(t *testing.T) {
	ctx := context.Background()
	idempotency.Declare(ctx, idempotency.Unknown)
	if id, ok := idempotency.FromContext(ctx); ok {
		t.Errorf("FromContext = %v, want none", id)
	}
	if key := idempotency.ChildKey(ctx, "charge"); key != "" {
		t.Errorf("ChildKey = %q, want none", key)
	}
}

func TestAProblemSaysWhatToDo(t *testing.T) {
	type say struct{ same, new bool }
	bubble(t, idempotency.Middleware{MaxBody: 10}, func(w http.ResponseWriter, r *http.Request) {
		idempotency.Declare(r.Context(), idempotency.Unknown)
		time.Sleep(time.Minute)
	}, func(s *service) {
		check := func(got answer, name string, want say) {
			s.t.Helper()
			if got.problem() != name {
				s.t.Errorf("answer = %s, want %s", got.body, name)
			}
			if said := (say{got.member("retry_same_key") == true, got.member("safe_new_key") == true}); said != want {
				s.t.Errorf("%s: retry_same_key, safe_new_key = %v, want %v", name, said, want)
			}
			if got.member("status") != float64(got.StatusCode) || got.member("title") == "" || got.member("detail") == "" {
				s.t.Errorf("%s: title, status or detail are missing in %s", name, got.body)
			}
			_, published := got.Header["Idempotency-Retention"]
			if valid := !slices.Contains([]string{"key-missing", "key-invalid"}, name); published != valid {
				s.t.Errorf("%s: retention published: %v, want %v", name, published, valid)
			}
		}
		check(s.post("", "a"), "key-missing", say{false, true})
		check(s.post(`"`, "a"), "key-invalid", say{false, true})
		check(s.post("k", "more than ten"), "body-too-large", say{false, true})
		go s.post("k", "a")
		synctest.Wait()
		check(s.post("k", "a"), "in-flight", say{true, false})
		check(s.post("k", "b"), "key-reused", say{false, false})
		time.Sleep(2 * time.Minute)
		check(s.post("k", "a"), "outcome-unknown", say{false, false})
	})
}
