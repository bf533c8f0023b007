package deadline_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap/deadline"
)

func TestWhatAnUntrustedCallerSaysIsIgnoredAndRemoved(t *testing.T) {
	said := http.Header{
		"X-Request-Timeout-Ms":           {"500", "700"},
		"X-Request-Deadline":             {"1"},
		"Grpc-Timeout":                   {"500m"},
		"X-Envoy-Expected-Rq-Timeout-Ms": {"500"},
		"X-Request-Attempt":              {"4"},
		"X-Correlation-Id":               {"theirs"},
		"Accept":                         {"text/plain"},
	}
	for _, trusted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header = said.Clone()
			w := httptest.NewRecorder()
			m := deadline.Middleware{Limit: time.Second, Trusted: func(asked *http.Request) bool {
				if asked != r {
					t.Error("Trusted was asked about another request")
				}
				return trusted
			}}
			m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				id := deadline.CorrelationID(r.Context())
				want, left, attempt := http.Header{"Accept": {"text/plain"}, "X-Correlation-Id": {id}}, time.Second, 0
				if trusted {
					want, left, attempt = said, 500*time.Millisecond, 4
				}
				if !reflect.DeepEqual(r.Header, want) {
					t.Errorf("trusted %t: the handler sees %q, want %q", trusted, r.Header, want)
				}
				if got := deadline.Left(r.Context()); got != left {
					t.Errorf("trusted %t: %v left, want %v", trusted, got, left)
				}
				if got := deadline.Attempt(r.Context()); got != attempt || deadline.Retried(r.Context()) != trusted {
					t.Errorf("trusted %t: attempt %d, retried %t; want %d, %t", trusted, got, deadline.Retried(r.Context()), attempt, trusted)
				}
				if (id == "theirs") != trusted || id == "" {
					t.Errorf("trusted %t: correlation id %q", trusted, id)
				}
			})).ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Errorf("trusted %t: status %d, want 200", trusted, w.Code)
			}
			if !reflect.DeepEqual(r.Header, said) {
				t.Errorf("trusted %t: the request itself was changed to %q, want %q", trusted, r.Header, said)
			}
		})
	}
}

func TestTheCorrelationIDIsEverywhereTheSame(t *testing.T) {
	for _, test := range []struct {
		name string
		came []string
		want string // empty for a new one
	}{
		{"none", nil, ""},
		{"one", []string{"abc-1"}, "abc-1"},
		{"two", []string{"abc-1", "abc-2"}, "abc-1"},
		{"one that is no token", []string{"a b"}, ""},
		{"one that would break a log", []string{"a\nb"}, ""},
	} {
		var header []string
		for _, id := range test.came {
			header = append(header, deadline.CorrelationHeader, id)
		}
		var id string
		var inRequest []string
		w := serve(deadline.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
			id, inRequest = deadline.CorrelationID(r.Context()), r.Header[deadline.CorrelationHeader]
		}, header...)
		if id == "" || test.want != "" && id != test.want || test.want == "" && slices.Contains(test.came, id) {
			t.Errorf("%s: the context has id %q, want %q", test.name, id, test.want)
		}
		inAnswer := w.Result().Header[deadline.CorrelationHeader]
		if want := []string{id}; !slices.Equal(inRequest, want) || !slices.Equal(inAnswer, want) {
			t.Errorf("%s: the request has ids %q, the answer %q; want %q", test.name, inRequest, inAnswer, want)
		}
	}
}

func TestAnAnswerPassedOnHasOneCorrelationID(t *testing.T) {
	w := serve(deadline.Middleware{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add(deadline.CorrelationHeader, "of the service behind") // as httputil.ReverseProxy does
		w.WriteHeader(http.StatusTeapot)
	}, deadline.CorrelationHeader, "id")
	if got := w.Result().Header[deadline.CorrelationHeader]; !slices.Equal(got, []string{"id"}) {
		t.Errorf("the answer has ids %q, want the request's", got)
	}
}

func TestOneMiddlewareServesManyAtOnce(t *testing.T) {
	ids := make(chan string, 64)
	h := deadline.Middleware{}.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ids <- deadline.CorrelationID(r.Context())
	}))
	var serving sync.WaitGroup
	for range cap(ids) {
		serving.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) })
	}
	serving.Wait()
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		seen[id] = true
	}
	if len(seen) != cap(ids) {
		t.Errorf("%d requests got %d ids, want one each", cap(ids), len(seen))
	}
}
