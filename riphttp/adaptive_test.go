package riphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// A paced service takes so long, by path or for all, and notes the bound of each attempt.
type paced struct {
	mu       sync.Mutex
	took     map[string]time.Duration // by path; "" for all others
	code     int
	requests map[string]int
	bound    time.Duration // of the last attempt, zero for none
}

func pace(took time.Duration) *paced {
	return &paced{took: map[string]time.Duration{"": took}, code: 200, requests: map[string]int{}}
}

func (p *paced) set(took time.Duration, code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took[""], p.code = took, code
}

func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	took, ok := p.took[r.URL.Path]
	if !ok {
		took = p.took[""]
	}
	code := p.code
	p.requests[r.URL.Path]++
	p.bound = 0
	if until, ok := r.Context().Deadline(); ok {
		p.bound = time.Until(until)
	}
	p.mu.Unlock()
	if r.Body != nil {
		r.Body.Close()
	}
	select {
	case <-time.After(took):
		return response(code, ""), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// calls makes n calls, a millisecond apart, and returns how many were answered 200.
func calls(t testing.TB, rt http.RoundTripper, method, url string, n int) (answered int) {
	t.Helper()
	for range n {
		time.Sleep(time.Millisecond)
		if code, _, err := result(t, rt, newRequest(t, method, url, nil)); code == 200 && err == nil {
			answered++
		}
	}
	return answered
}

// wantBound makes a call and checks the bound of its first attempt, within two percent.
func (p *paced) wantBound(t testing.TB, rt http.RoundTripper, url string, want time.Duration) {
	t.Helper()
	req := newRequest(t, "POST", url, nil) // sent once
	result(t, rt, req)
	if got := p.bound; got < want-want/50 || got > want+want/50 {
		t.Errorf("POST %s: the attempt is bounded by %v, want %v within 2 %%", url, got, want)
	}
}

func TestBoundIsLearnedOnlyIfAdaptive(t *testing.T) {
	for adaptive, want := range map[bool]time.Duration{false: 10 * time.Second, true: 60 * time.Millisecond} {
		inBubble(t, fmt.Sprint("adaptive ", adaptive), func(t *testing.T) {
			service := pace(20 * time.Millisecond)
			client := &riphttp.Transport{Base: service, Adaptive: adaptive}
			service.wantBound(t, client, serviceURL, 10*time.Second)
			calls(t, client, "GET", serviceURL, 300)
			service.wantBound(t, client, serviceURL, want)
		})
	}
}

func TestEachDestinationLearnsABoundOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := pace(20 * time.Millisecond)
		service.took["/reports"] = 100 * time.Millisecond
		client := &riphttp.Transport{Base: service, Adaptive: true, Policy: even()}
		for range 300 {
			calls(t, client, "GET", "http://fast.test/", 1)
			calls(t, client, "GET", "http://slow.test/reports", 1)
		}
		service.wantBound(t, client, "http://fast.test/", 60*time.Millisecond)
		service.wantBound(t, client, "http://slow.test/reports", 300*time.Millisecond)
		service.wantBound(t, client, "http://new.test/", 10*time.Second)
	})
}

func TestBoundIsLearnedWhereNoOtherOneIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := pace(20 * time.Millisecond)
		client := &riphttp.Transport{Base: service, Adaptive: true, Policy: boundless}
		calls(t, client, "GET", serviceURL, 300)
		service.wantBound(t, client, serviceURL, 60*time.Millisecond)
		if got := calls(t, client, "GET", serviceURL, 300); got != 300 {
			t.Errorf("%d of 300 calls answered, want all", got)
		}
	})
}

func TestAttemptTimeoutIsTheCeilingOfTheLearnedBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := pace(20 * time.Millisecond)
		client := &riphttp.Transport{Base: service, Adaptive: true, Policy: &riprap.Policy{AttemptTimeout: 50 * time.Millisecond}}
		calls(t, client, "GET", serviceURL, 300)
		service.wantBound(t, client, serviceURL, 50*time.Millisecond)
	})
}

// A POST without a key is over with its only attempt, which has to widen the bound all the same.
func TestBoundRecoversWhenAServiceBecomesSlower(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		inBubble(t, method, func(t *testing.T) {
			service := pace(20 * time.Millisecond)
			client := &riphttp.Transport{Base: service, Adaptive: true, Policy: even()}
			calls(t, client, method, serviceURL, 500)
			service.set(400*time.Millisecond, 200)
			start := time.Now()
			calls(t, client, method, serviceURL, 20)
			for time.Since(start) < 20*time.Second { // two slots of a Latency
				calls(t, client, method, serviceURL, 1)
			}
			before := service.requests["/path"]
			if got := calls(t, client, method, serviceURL, 100); got != 100 {
				t.Errorf("%d of 100 calls answered, want all", got)
			}
			if got := service.requests["/path"] - before; got != 100 {
				t.Errorf("100 calls made %d requests, want one each", got)
			}
		})
	}
}

func TestFailuresAreNoSampleHoweverFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := pace(20 * time.Millisecond)
		client := &riphttp.Transport{Base: service, Adaptive: true, Policy: tries(1)}
		calls(t, client, "GET", serviceURL, 250)
		service.set(0, 500)
		calls(t, client, "GET", serviceURL, 30_000) // were they samples, the others would be less than a hundredth
		service.wantBound(t, client, serviceURL, 60*time.Millisecond)
	})
}

// The bound would be gone if they counted as attempts that timed out.
func TestImpatientCallerIsNoSample(t *testing.T) {
	for name, hurry := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 30*time.Millisecond)
		},
		"cancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(30*time.Millisecond, cancel)
			return ctx, cancel
		},
		"policy with a short timeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return riphttp.WithPolicy(ctx, &riprap.Policy{Timeout: 30 * time.Millisecond}), func() {}
		},
		"policy with a short bound": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return riphttp.WithPolicy(ctx, &riprap.Policy{MaxAttempts: 1, AttemptTimeout: 30 * time.Millisecond}), func() {}
		},
	} {
		for _, internal := range []bool{false, true} {
			inBubble(t, fmt.Sprint(name, ", internal ", internal), func(t *testing.T) {
				service := pace(20 * time.Millisecond)
				client := &riphttp.Transport{Base: service, Adaptive: true, Internal: always(internal)}
				calls(t, client, "GET", serviceURL, 300)
				service.set(40*time.Millisecond, 200)
				for range 100 {
					req := newRequest(t, "GET", serviceURL, nil)
					ctx, cancel := hurry(req.Context())
					if _, err := roundTrip(t, client, req.WithContext(ctx)); err == nil {
						t.Fatal("a caller in a hurry got an answer from a slow service")
					}
					cancel()
				}
				service.wantBound(t, client, serviceURL, 60*time.Millisecond)
			})
		}
	}
}

func always(yes bool) func(*http.Request) bool { return func(*http.Request) bool { return yes } }

// This is a limit of the idea, and documented: the slow route is too rare to widen a bound that others set.
func TestRareSlowRouteIsStarvedUnlessItHasAName(t *testing.T) {
	for _, named := range []bool{false, true} {
		inBubble(t, fmt.Sprint("named ", named), func(t *testing.T) {
			service := pace(5 * time.Millisecond)
			service.took["/report"] = 800 * time.Millisecond
			client := &riphttp.Transport{Base: service, Adaptive: true, Policy: tries(1)}
			if named {
				client.Destination = func(r *http.Request) string { return r.URL.Host + r.URL.Path }
			}
			calls(t, client, "GET", "http://service.test/item", 400)
			answered := 0
			for range 100 {
				calls(t, client, "GET", "http://service.test/item", 199)
				answered += calls(t, client, "GET", "http://service.test/report", 1)
			}
			want := 0
			if named {
				want = 100
			}
			if answered != want {
				t.Errorf("%d of 100 calls to the slow route answered, want %d", answered, want)
			}
		})
	}
}

func TestPolicyOfARequestKeepsToTheBoundOfTheOthers(t *testing.T) {
	shared := new(riprap.Latency)
	for name, latency := range map[string]*riprap.Latency{"of the destination": nil, "of the Transport's Policy": shared} {
		inBubble(t, name, func(t *testing.T) {
			service := pace(20 * time.Millisecond)
			client := &riphttp.Transport{Base: service, Adaptive: latency == nil, Policy: &riprap.Policy{Latency: latency}}
			own := roundTripper(func(r *http.Request) (*http.Response, error) {
				return client.RoundTrip(r.WithContext(riphttp.WithPolicy(r.Context(), &riprap.Policy{AttemptTimeout: time.Second})))
			})
			service.wantBound(t, own, serviceURL, time.Second)
			calls(t, own, "GET", serviceURL, 300) // learned under the requests' own policy, in force for all
			service.wantBound(t, client, serviceURL, 60*time.Millisecond)
			service.wantBound(t, own, serviceURL, 60*time.Millisecond)
			other := roundTripper(func(r *http.Request) (*http.Response, error) {
				return client.RoundTrip(r.WithContext(riphttp.WithPolicy(r.Context(), &riprap.Policy{Latency: new(riprap.Latency)})))
			})
			service.wantBound(t, other, serviceURL, 10*time.Second)
		})
	}
}

func TestLatencyOfThePolicyIsUsedForAllDestinations(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		inBubble(t, fmt.Sprint("adaptive ", adaptive), func(t *testing.T) {
			service := pace(20 * time.Millisecond)
			latency := new(riprap.Latency)
			client := &riphttp.Transport{Base: service, Adaptive: adaptive, Policy: &riprap.Policy{Latency: latency}}
			calls(t, client, "GET", "http://a.test/", 300)
			service.wantBound(t, client, "http://b.test/", 60*time.Millisecond)
			if got := latency.Snapshot(time.Now()); got.Count != 301 {
				t.Errorf("the Latency has %d samples, want those of all 301 calls", got.Count)
			}
		})
	}
}

// The last attempt may begin with just the least useful time left, and not with a millisecond less.
func TestLeastUsefulTimeIsTheMedianOnceThatIsKnown(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*riprap.Policy)
		usual  time.Duration // of the calls before; zero for none
		least  time.Duration
	}{
		{"no sample yet", func(*riprap.Policy) {}, 0, 10 * time.Millisecond},
		{"slow", func(*riprap.Policy) {}, 100 * time.Millisecond, 100 * time.Millisecond},
		{"fast", func(*riprap.Policy) {}, 3 * time.Millisecond, 3 * time.Millisecond},
		{"said otherwise", func(p *riprap.Policy) { p.MinAttempt = 50 * time.Millisecond }, 100 * time.Millisecond, 50 * time.Millisecond},
		{"any will do", func(p *riprap.Policy) { p.MinAttempt = -1 }, 100 * time.Millisecond, time.Millisecond},
	} {
		for _, enough := range []bool{false, true} {
			inBubble(t, fmt.Sprint(test.name, ", enough ", enough), func(t *testing.T) {
				policy := even()
				test.change(policy)
				service := pace(test.usual)
				client := &riphttp.Transport{Base: service, Adaptive: true, Policy: policy}
				if test.usual > 0 {
					calls(t, client, "GET", serviceURL, 300)
				}
				service.set(0, 503)
				left, want := test.least+test.least/50, 2 // a median is known within one percent
				if !enough {
					left, want = test.least-test.least/50-time.Nanosecond, 1
				}
				if !enough && policy.MinAttempt < 0 {
					left = 0
				}
				before := service.requests["/path"]
				req := newRequest(t, "GET", serviceURL, nil)
				ctx, cancel := context.WithTimeout(req.Context(), time.Second+left)
				defer cancel()
				result(t, client, req.WithContext(ctx))
				if got := service.requests["/path"] - before; got != want {
					t.Errorf("with %v left after the wait: %d requests, want %d", left, got, want)
				}
			})
		}
	}
}

// Were nothing sent to a service because it used to be slow, nothing could be learned of it.
func TestServiceThatUsedToBeSlowIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := pace(200 * time.Millisecond)
		client := &riphttp.Transport{Base: service, Adaptive: true, Internal: always(true), Policy: tries(1)}
		calls(t, client, "GET", serviceURL, 300)
		service.set(20*time.Millisecond, 200)
		before := service.requests["/path"]
		answered := 0
		for range 2 * 60 { // for two minutes
			time.Sleep(time.Second)
			req := newRequest(t, "GET", serviceURL, nil)
			ctx, cancel := context.WithTimeout(req.Context(), 150*time.Millisecond)
			code, _, err := result(t, client, req.WithContext(ctx))
			cancel()
			switch {
			case code == 200:
				answered++
			case !errors.Is(err, riprap.ErrDeadline) || service.requests["/path"] != before:
				t.Fatalf("a call with less than the median left: %d, %v, want it not to be sent", code, err)
			}
			before = service.requests["/path"]
		}
		if answered < 50 || answered > 115 {
			t.Errorf("%d of 120 calls in two minutes answered, want none at first and all in the second", answered)
		}
	})
}

func TestErrorOfALearnedBoundSaysWhichItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := pace(20 * time.Millisecond)
		client := &riphttp.Transport{Base: service, Adaptive: true, Policy: tries(1)}
		calls(t, client, "GET", serviceURL, 300)
		service.set(time.Hour, 200)
		_, err := roundTrip(t, client, newRequest(t, "GET", serviceURL, nil))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "no response within 6") && !strings.Contains(fmt.Sprint(err), "no response within 59") {
			t.Errorf("err = %v, want a timeout after about 60ms", err)
		}
	})
}
