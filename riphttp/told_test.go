package riphttp_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// told are the header fields for a service of one's own.
var told = []string{deadline.TimeoutHeader, deadline.DeadlineHeader, deadline.CorrelationHeader, deadline.AttemptHeader}

func TestCallersRequestKeepsItsHeader(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		inBubble(t, fmt.Sprint("bounded ", bounded), func(t *testing.T) {
			client := &riphttp.Transport{Base: script(503, errWire, 200), Policy: even(), Internal: always(true)}
			if !bounded {
				client.ReadTimeout, client.Policy.Timeout, client.Policy.AttemptTimeout = -1, -1, -1
			}
			req := newRequest(t, "GET", serviceURL, nil, "Accept", "text/plain", deadline.AttemptHeader, "7")
			before := req.Header.Clone()
			resp, err := roundTrip(t, client, req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if !maps.EqualFunc(req.Header, before, slices.Equal) {
				t.Errorf("header after the call: %v, want %v", req.Header, before)
			}
			if !maps.EqualFunc(resp.Request.Header, before, slices.Equal) {
				t.Errorf("header of the response's request: %v, want the caller's", resp.Request.Header)
			}
		})
	}
}

func TestCorrelationIDIsTheCallersOrTheContexts(t *testing.T) {
	for _, test := range []struct {
		name     string
		own      string
		incoming string
		want     string // "" for a new one
	}{
		{"nobody's", "", "", ""},
		{"the caller's", "own-1", "", "own-1"},
		{"that of the request being served", "", "in-2", "in-2"},
		{"both", "own-1", "in-2", "own-1"},
		{"the caller's is none", "own 1", "", ""},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(503, 200)
			client := &riphttp.Transport{Base: service, Policy: even(), Internal: always(true)}
			served := newRequest(t, "GET", "http://gateway.test/", nil)
			if test.incoming != "" {
				served.Header.Set(deadline.CorrelationHeader, test.incoming)
			}
			call := func(ctx context.Context) {
				req := newRequest(t, "GET", serviceURL, nil)
				if test.own != "" {
					req.Header.Set(deadline.CorrelationHeader, test.own)
				}
				wantAnswer(t, client, req.WithContext(ctx), 200, "OK")
			}
			if test.incoming == "" {
				call(t.Context())
			} else {
				serve(served, func(w http.ResponseWriter, r *http.Request) { call(r.Context()) })
			}
			ids := service.values(t, deadline.CorrelationHeader)
			if len(ids) != 2 || ids[0] != ids[1] || len(ids[0]) < 2 || test.want != "" && ids[0] != test.want {
				t.Errorf("ids by attempt: %q, want %q on both", ids, test.want)
			}
			if test.want == "" {
				call(t.Context())
				if again := service.values(t, deadline.CorrelationHeader)[2]; again == ids[0] {
					t.Errorf("two calls have the id %q, want each one of its own", again)
				}
			}
		})
	}
}

// serve lets a handler behind a deadline.Middleware serve a request and returns the answer.
func serve(r *http.Request, h http.HandlerFunc) *http.Response {
	w := httptest.NewRecorder()
	deadline.Middleware{}.Handler(h).ServeHTTP(w, r)
	return w.Result()
}

func TestOtherServicesAreToldNothing(t *testing.T) {
	ours := func(r *http.Request) bool { return r.URL.Host == "ours.test" }
	for name, internal := range map[string]func(*http.Request) bool{"no Internal": nil, "another host": ours} {
		inBubble(t, name, func(t *testing.T) {
			service := script(503, 200)
			client := &riphttp.Transport{Base: service, Policy: even(), Internal: internal}
			served := newRequest(t, "GET", "http://gateway.test/", nil, deadline.TimeoutHeader, "20000")
			serve(served, func(_ http.ResponseWriter, r *http.Request) {
				wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil).WithContext(r.Context()), 200, "OK")
			})
			for _, field := range told {
				if got := service.values(t, field); !slices.Equal(got, []string{"-", "-"}) {
					t.Errorf("%s by attempt: %q, want none", field, got)
				}
			}
		})
	}
}

func TestRedirectToAnotherServiceIsToldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := redirects(307, "http://ours.test/2", "http://other.test/")
		client := &http.Client{Transport: &riphttp.Transport{Base: service, Policy: even(),
			Internal: func(r *http.Request) bool { return r.URL.Host == "ours.test" }}}
		resp, err := client.Do(newRequest(t, "GET", "http://ours.test/1", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		wantCalls(t, service, 3)
		for i, sent := range service.sent {
			for _, field := range told[:3] {
				if _, got := sent.header[field]; got != (i < 2) {
					t.Errorf("%s: %s %v, want it for our service only", sent.url, field, sent.header[field])
				}
			}
		}
	})
}

func TestNestedTransportsTellOnce(t *testing.T) {
	between := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return next.RoundTrip(r.Clone(r.Context())) })
	}
	for _, test := range []struct {
		name         string
		outer, inner bool
		told         bool
	}{{"both", true, true, true}, {"the outer one", true, false, true}, {"the inner one, which only passes on", false, true, false}} {
		for way, wrap := range map[string]func(http.RoundTripper) http.RoundTripper{
			"direct": func(next http.RoundTripper) http.RoundTripper { return next }, "with one between": between,
		} {
			inBubble(t, test.name+", "+way, func(t *testing.T) {
				service := script(503, 503, 200)
				inner := &riphttp.Transport{Base: service, Policy: even(), Internal: always(test.inner)}
				client := &riphttp.Transport{Base: wrap(inner), Policy: even(), Internal: always(test.outer)}
				wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 200, "OK")
				want := []string{"-", "-", "-"}
				if test.told {
					want = []string{"-", "2", "3"}
				}
				if got := service.values(t, deadline.AttemptHeader); !slices.Equal(got, want) {
					t.Errorf("%s by attempt: %q, want %q", deadline.AttemptHeader, got, want)
				}
				if got := service.values(t, deadline.TimeoutHeader); len(got) != 3 || (got[0] != "-") != test.told {
					t.Errorf("%s by attempt: %q, want it to be told: %v", deadline.TimeoutHeader, got, test.told)
				}
			})
		}
	}
}
