package riphttp_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

func tries(n int) *riprap.Policy {
	p := even()
	p.MaxAttempts = n
	return p
}

func TestTransportInsideAnotherDoesNotMultiplyAttempts(t *testing.T) {
	middleware := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Middleware", "was here")
			return next.RoundTrip(r)
		})
	}
	logsIn := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			if password, ok := r.URL.User.Password(); ok {
				r.SetBasicAuth(r.URL.User.Username(), password)
			}
			r.URL.User = nil
			return next.RoundTrip(r)
		})
	}
	direct := func(next http.RoundTripper) http.RoundTripper { return next }
	for name, between := range map[string]func(http.RoundTripper) http.RoundTripper{
		"direct": direct, "with a middleware between": middleware, "with one that logs in": logsIn,
	} {
		inBubble(t, name, func(t *testing.T) {
			if name == "direct" {
				service := script(503)
				unbound := &riphttp.Transport{Base: &riphttp.Transport{Base: service}, Policy: boundless, ReadTimeout: -1}
				wantAnswer(t, unbound, newRequest(t, "GET", serviceURL, nil), 503, "Service Unavailable")
				wantCalls(t, service, 4)
			}
			service := script(503)
			var inner, outer events
			transport := &riphttp.Transport{Base: service, Policy: traced(tries(5), &inner)}
			for range 2 {
				outer = events{}
				transport = &riphttp.Transport{Base: between(transport), Policy: traced(tries(3), &outer)}
			}
			wantAnswer(t, transport, newRequest(t, "GET", "http://user:secret@service.test/path", nil), 503, "Service Unavailable")
			wantCalls(t, service, 3)
			if e := outer.ended(t); e.Attempts != 3 {
				t.Errorf("the outer transport counts %d attempts, want 3", e.Attempts)
			}
			if n := len(inner.order); n > 0 {
				t.Errorf("the inner transport told %v, want nothing", inner.order)
			}
		})
	}
}

// An inner request of another kind, such as one for a token, is not the outer one's attempt.
func TestOtherRequestUnderTheSameContextHasAttemptsOfItsOwn(t *testing.T) {
	for _, other := range []struct{ method, url string }{{"GET", "http://tokens.test/"}, {"HEAD", serviceURL}} {
		inBubble(t, other.method+" "+other.url, func(t *testing.T) {
			others, service := script(503, 200), script(200)
			inner := &riphttp.Transport{Base: others, Policy: even()}
			client := &riphttp.Transport{Policy: even(), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				req, _ := http.NewRequestWithContext(r.Context(), other.method, other.url, nil)
				resp, err := inner.RoundTrip(req)
				if err != nil {
					return nil, err
				}
				resp.Body.Close()
				return service.RoundTrip(r)
			})}
			wantAnswer(t, client, newRequest(t, "GET", serviceURL, nil), 200, "OK")
			wantCalls(t, others, 2)
		})
	}
}

func TestPolicyInTheContextReplacesThatOfTheTransport(t *testing.T) {
	for _, test := range []struct {
		name  string
		own   *riprap.Policy
		calls int
	}{
		{"its own", tries(2), 2},
		{"none", nil, 3},
		{"the zero one", &riprap.Policy{}, 4},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			service := script(503)
			client := &riphttp.Transport{Base: service, Policy: tries(3)}
			req := newRequest(t, "GET", serviceURL, nil)
			req = req.WithContext(riphttp.WithPolicy(req.Context(), test.own))
			wantAnswer(t, client, req, 503, "Service Unavailable")
			wantCalls(t, service, test.calls)
		})
	}
}

func TestPolicyInTheContextSharesTheDestinationsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(503)
		client := &riphttp.Transport{Base: service, Policy: tries(2)}
		for range 10 { // as many as the reserve holds
			result(t, client, newRequest(t, "GET", serviceURL, nil))
		}
		var log events
		req := newRequest(t, "GET", serviceURL, nil)
		result(t, client, req.WithContext(riphttp.WithPolicy(req.Context(), traced(tries(9), &log))))
		if e := log.ended(t); e.Reason != riprap.ErrBudget || e.Attempts != 1 {
			t.Errorf("Done: reason %v after %d attempts, want ErrBudget after one", e.Reason, e.Attempts)
		}
	})
}

func TestRequestIsNeverModified(t *testing.T) {
	made := func(*http.Request) string { return "made" }
	for name, build := range map[string]func(t *testing.T) *http.Request{
		"GET": func(t *testing.T) *http.Request { return newRequest(t, "GET", serviceURL, nil) },
		"key made": func(t *testing.T) *http.Request {
			return newRequest(t, "POST", serviceURL, "pay", "Authorization", "Bearer b")
		},
		"body read first": func(t *testing.T) *http.Request { return sized(t, "PUT", track("content"), 7) },
		"redirected elsewhere": func(t *testing.T) *http.Request {
			req := newRequest(t, "POST", "http://other.test/", "pay", "Idempotency-Key", "k")
			req.Response = &http.Response{Request: newRequest(t, "POST", serviceURL, "pay", "Idempotency-Key", "k")}
			return req
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			req := build(t)
			before, header, url := *req, req.Header.Clone(), *req.URL
			body, getBody := req.Body, req.GetBody != nil
			client := &riphttp.Transport{Base: script(503, errWire, 200), Policy: even(), NewKey: made}
			result(t, client, req)
			if !equalHeaders(req.Header, header) || *req.URL != url {
				t.Errorf("header and URL after the call: %v, %v, want %v, %v", req.Header, req.URL, header, &url)
			}
			if req.URL != before.URL || req.Body != body || (req.GetBody != nil) != getBody || req.ContentLength != before.ContentLength ||
				req.Method != before.Method || req.Host != before.Host || req.Close != before.Close ||
				req.Context() != before.Context() || req.Response != before.Response {
				t.Errorf("request after the call: %+v, want %+v", req, before)
			}
		})
	}
}

func equalHeaders(a, b http.Header) bool {
	var x, y strings.Builder
	a.Write(&x)
	b.Write(&y)
	return x.String() == y.String() && len(a) == len(b)
}

// Under the race detector.
func TestOneRequestServesManyGoroutines(t *testing.T) {
	for _, bound := range []time.Duration{0, -1} {
		service := &stub{play: func(n int, r *http.Request) (*http.Response, error) {
			if n%3 != 0 {
				return response(503, "busy"), nil
			}
			return response(200, "ok"), nil
		}}
		client := &riphttp.Transport{Base: service, NewKey: func(*http.Request) string { return "k" }}
		client.Policy = &riprap.Policy{MaxAttempts: -1, Timeout: bound, AttemptTimeout: bound, Budget: &riprap.Budget{Ratio: 1, Reserve: 1000}}
		client.ReadTimeout = bound
		req, _ := http.NewRequest("POST", serviceURL, nil) // a context of the bubble would not do outside
		synctest.Test(t, func(t *testing.T) {
			done := make(chan struct{})
			for range 20 {
				go func() {
					defer func() { done <- struct{}{} }()
					resp, err := client.RoundTrip(req)
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
				}()
			}
			for range 20 {
				<-done
			}
		})
	}
}
