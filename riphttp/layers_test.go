package riphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/deadline"
	"github.com/riprap-go/riprap/riphttp"
)

// relay is a handler that answers what a client's call answers, a 502 for an error.
func relay(client http.RoundTripper, method string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), method, serviceURL, nil)
		if err != nil {
			panic(err)
		}
		resp, err := client.RoundTrip(req)
		if err != nil {
			w.WriteHeader(502)
			return
		}
		resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
	}
}

func TestCallThatServesARetryIsNotRepeated(t *testing.T) {
	for _, test := range []struct {
		attempt string // in the request being served
		step    any
		calls   int
	}{
		{"", 503, 4},
		{"1", 503, 4},
		{"2", 503, 1},
		{"7", 503, 1},
		{"2", errWire, 1},
		{"soon", 503, 4},
		{"2", 200, 1},
	} {
		for _, internal := range []bool{false, true} {
			inBubble(t, fmt.Sprint(test.attempt, " ", test.step, ", internal ", internal), func(t *testing.T) {
				var log events
				service := script(test.step)
				client := &riphttp.Transport{Base: service, Policy: traced(even(), &log), Internal: always(internal)}
				served := newRequest(t, "GET", "http://gateway.test/", nil)
				if test.attempt != "" {
					served.Header.Set(deadline.AttemptHeader, test.attempt)
				}
				serve(served, relay(client, "GET"))
				wantCalls(t, service, test.calls)
				want := error(riphttp.ErrRetried)
				switch {
				case test.calls > 1:
					want = riprap.ErrAttempts
				case test.step == 200:
					want = nil
				}
				e := log.ended(t)
				if e.Reason != want {
					t.Errorf("Done: reason %v, want %v", e.Reason, want)
				}
				if test.step == errWire && !errors.Is(e.Err, errWire) {
					t.Errorf("Done: %v, want what the wire said", e.Err)
				}
				if got := service.values(t, deadline.AttemptHeader)[0]; internal && test.calls == 1 && got != test.attempt {
					t.Errorf("the number %q is handed on as %q", test.attempt, got)
				}
			})
		}
	}
}

func TestErrorOfACallThatServesARetryNamesTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &riphttp.Transport{Base: script(errWire), Policy: even()}
		served := newRequest(t, "GET", "http://gateway.test/", nil, deadline.AttemptHeader, "2")
		serve(served, func(_ http.ResponseWriter, r *http.Request) {
			_, err := roundTrip(t, client, newRequest(t, "GET", serviceURL, nil).WithContext(r.Context()))
			if !errors.Is(err, riphttp.ErrRetried) || !errors.Is(err, errWire) {
				t.Errorf("err = %v, want ErrRetried and what the wire said", err)
			}
		})
	})
}

// Why a call cannot be repeated at all comes first.
func TestPostThatServesARetryIsUnsafeAsEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log events
		client := &riphttp.Transport{Base: script(503), Policy: traced(even(), &log)}
		serve(newRequest(t, "GET", "http://gateway.test/", nil, deadline.AttemptHeader, "2"), relay(client, "POST"))
		if got := log.ended(t).Reason; got != riphttp.ErrUnsafe {
			t.Errorf("Done: reason %v, want ErrUnsafe", got)
		}
	})
}

func TestWhoIsNotTrustedCannotSwitchRetriesOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(503)
		client := &riphttp.Transport{Base: service, Policy: even()}
		m := deadline.Middleware{Trusted: always(false)}
		served := newRequest(t, "GET", "http://gateway.test/", nil, deadline.AttemptHeader, "2")
		m.Handler(relay(client, "GET")).ServeHTTP(httptest.NewRecorder(), served)
		wantCalls(t, service, 4)
	})
}

// upward serves n requests, one a second, by a client and returns the verdicts that the answers carry for the layer above.
func upward(t *testing.T, client http.RoundTripper, n int) (verdicts []string) {
	t.Helper()
	for range n {
		time.Sleep(time.Second)
		answer := serve(newRequest(t, "GET", "http://gateway.test/", nil), relay(client, "GET"))
		verdicts = append(verdicts, answer.Header.Get("X-Should-Retry"))
	}
	return verdicts
}

func TestLayerAboveGivesUpOnceABudgetIsSpentForADeadService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(503)
		client := &riphttp.Transport{Base: service, Policy: tries(3)}
		got := upward(t, client, 8)
		// Two retries each; the fifth call spends the last of ten.
		if want := []string{"", "", "", "", "false", "false", "false", "false"}; !slices.Equal(got, want) {
			t.Errorf("X-Should-Retry by call: %q, want %q", got, want)
		}
		wantCalls(t, service, 5*3+3)
	})
}

// A service that hangs is as dead, whichever bound of the Transport's ends the attempt.
func TestLayerAboveGivesUpOnAServiceThatHangs(t *testing.T) {
	for name, bounds := range map[string]riprap.Policy{
		"attempt's": {AttemptTimeout: 100 * time.Millisecond},
		"call's":    {Timeout: 100 * time.Millisecond, AttemptTimeout: -1},
	} {
		inBubble(t, name, func(t *testing.T) {
			policy := bounds
			policy.Budget = &riprap.Budget{Reserve: -1, Ratio: -1}
			if got := upward(t, &riphttp.Transport{Base: script(hang), Policy: &policy}, 1)[0]; got != "false" {
				t.Errorf("X-Should-Retry: %q, want false", got)
			}
			client := &riphttp.Transport{Base: script(hang), Policy: &policy}
			own := roundTripper(func(r *http.Request) (*http.Response, error) { // as long as that of all
				return client.RoundTrip(r.WithContext(riphttp.WithPolicy(r.Context(), &bounds)))
			})
			if got := upward(t, own, 1)[0]; got != "false" {
				t.Errorf("requests with a policy of their own: X-Should-Retry: %q, want false", got)
			}
		})
	}
}

func TestLayerAboveDoesNotGiveUp(t *testing.T) {
	spent := &riprap.Budget{Reserve: -1, Ratio: -1}
	for _, test := range []struct {
		name   string
		budget *riprap.Budget
		steps  []any
	}{
		{"with retries left", nil, []any{503}},
		{"without a limit for retries", &riprap.Budget{Reserve: 1 << 20}, []any{503}},
		{"while retries fail and first attempts do not all", &riprap.Budget{Reserve: 6, Ratio: -1}, append([]any{200}, slices.Repeat([]any{503}, 3)...)},
		{"while a tenth of first attempts succeed", spent, append([]any{200}, slices.Repeat([]any{503}, 3)...)},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			policy := tries(3)
			policy.Budget = test.budget
			client := &riphttp.Transport{Base: script(test.steps...), Policy: policy}
			n := max(len(test.steps), 4)
			if got := upward(t, client, n); slices.Contains(got, "false") || slices.Contains(got, "true") {
				t.Errorf("X-Should-Retry by call: %q, want none", got)
			}
		})
	}
}

// In a brownout retries pay off, though the budget is spent most of the time.
func TestLayerAboveNeverGivesUpInABrownout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(10) {
			random := rand.New(rand.NewPCG(seed, 0))
			client := &riphttp.Transport{Policy: tries(3), Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if random.IntN(2) == 0 {
					return response(503, ""), nil
				}
				return response(200, ""), nil
			})}
			client.Policy.Backoff.Base = time.Millisecond
			var log events
			client.Policy = traced(client.Policy, &log)
			got := upward(t, client, 1000)
			if n := len(got) - len(slices.DeleteFunc(got, func(v string) bool { return v != "" })); n > 0 {
				t.Errorf("seed %d: %d of 1000 answers told the layer above to give up, want none", seed, n)
			}
			if !slices.ContainsFunc(log.done, func(e riprap.Event) bool { return e.Reason == riprap.ErrBudget }) {
				t.Errorf("seed %d: the budget was never spent", seed)
			}
		}
	})
}

func TestVerdictOfAnInternalServiceIsHandedOn(t *testing.T) {
	for _, test := range []struct {
		name     string
		internal bool
		step     any
		want     string
	}{
		{"of a later attempt", true, func(r *http.Request) (*http.Response, error) {
			if r.Header.Get(deadline.AttemptHeader) == "" {
				return response(504, "", exceeded...), nil
			}
			return response(503, "", "X-Should-Retry", "false"), nil
		}, "false"},
		{"ours", true, reply(503, "", "X-Should-Retry", "false"), "false"},
		{"another's", false, reply(503, "", "X-Should-Retry", "false"), ""},
		{"for one of another's kind", true, reply(503, "", "Stripe-Should-Retry", "false"), ""},
		{"none", true, reply(501, ""), ""},
		{"that a retry would help", true, reply(503, "", "X-Should-Retry", "true"), ""},
		{"since its time was over", true, reply(504, "", exceeded...), ""},
		{"just before its time was over", true, answersAt(-time.Millisecond, 503, "X-Should-Retry", "false"), "false"},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			policy := tries(2)
			policy.AttemptTimeout = 100 * time.Millisecond
			client := &riphttp.Transport{Base: script(test.step), Policy: policy, Internal: always(test.internal)}
			if got := upward(t, client, 1)[0]; got != test.want {
				t.Errorf("X-Should-Retry: %q, want %q", got, test.want)
			}
		})
	}
}

// A layer above that has no time left is told so by the deadline.Middleware, and one that has must not be stopped by what
// befell callers in a hurry.
func TestCallersFaultDoesNotMakeAServiceLookDead(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *riphttp.Transport){
		"deadline": func(t *testing.T, client *riphttp.Transport) {
			req, cancel := within(newRequest(t, "GET", serviceURL, nil), 20*time.Millisecond)
			defer cancel()
			result(t, client, req)
		},
		"deadline that the service answers": func(t *testing.T, client *riphttp.Transport) {
			req, cancel := within(newRequest(t, "GET", serviceURL+"/answers", nil), 20*time.Millisecond)
			defer cancel()
			result(t, client, req)
		},
		"policy with a short timeout": func(t *testing.T, client *riphttp.Transport) {
			req := newRequest(t, "GET", serviceURL, nil)
			own := riphttp.WithPolicy(req.Context(), &riprap.Policy{Timeout: 20 * time.Millisecond})
			result(t, client, req.WithContext(own))
		},
		"policy with a short bound": func(t *testing.T, client *riphttp.Transport) {
			req := newRequest(t, "GET", serviceURL, nil)
			own := riphttp.WithPolicy(req.Context(), &riprap.Policy{AttemptTimeout: 20 * time.Millisecond})
			result(t, client, req.WithContext(own))
		},
		"cancel": func(t *testing.T, client *riphttp.Transport) {
			req := newRequest(t, "GET", serviceURL, nil)
			ctx, cancel := context.WithCancel(req.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			result(t, client, req.WithContext(ctx))
		},
		"body that cannot be read": func(t *testing.T, client *riphttp.Transport) {
			body := track("content")
			body.err = errWire
			req := sized(t, "PUT", body, 100)
			req.GetBody = func() (io.ReadCloser, error) { return body, nil }
			result(t, client, req)
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			policy := tries(1)
			policy.Budget = &riprap.Budget{Reserve: -1, Ratio: -1}
			client := &riphttp.Transport{Policy: policy, Internal: always(true), MaxReplay: -1}
			client.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/path/answers" {
					return answersAt(-time.Millisecond, 504, exceeded...)(r)
				}
				return script(hang).RoundTrip(r)
			})
			for range 100 {
				spoil(t, client)
			}
			client.Base = script(200, 503)
			relay(client, "GET")(httptest.NewRecorder(), newRequest(t, "GET", "http://gateway.test/", nil))
			if got := upward(t, client, 1)[0]; got != "" {
				t.Errorf("X-Should-Retry: %q after one success and one failure, want none", got)
			}
		})
	}
}
