package riphttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/riphttp"
)

// A fleet answers by host: with 503 for so many requests, then with 200.
type fleet struct {
	failures map[string]int
	requests map[string]int
}

const forever = 1 << 30

func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	f.requests[r.URL.Host]++
	if f.failures[r.URL.Host] > 0 {
		f.failures[r.URL.Host]--
		return response(503, ""), nil
	}
	return response(200, ""), nil
}

func newFleet(down ...string) *fleet {
	f := &fleet{failures: make(map[string]int), requests: make(map[string]int)}
	for _, host := range down {
		f.failures[host] = forever
	}
	return f
}

// quick has waits that hardly move the clock.
func quick() *riprap.Policy {
	p := even()
	p.Backoff.Base = time.Millisecond
	return p
}

// calls makes n calls to a host and returns how many requests it got.
func (f *fleet) calls(t testing.TB, client http.RoundTripper, host string, n int) int {
	before := f.requests[host]
	for range n {
		result(t, client, newRequest(t, "GET", "http://"+host+"/", nil))
	}
	return f.requests[host] - before
}

func TestRetriesFadeWhileAServiceIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("down.test")
		client := &riphttp.Transport{Base: f, Policy: quick()}
		if got := f.calls(t, client, "down.test", 1000); got != 1010 {
			t.Errorf("1000 calls made %d requests, want the reserve of ten retries above that", got)
		}
	})
}

func TestAPolicyOfARequestKeepsToTheBudgetOfTheOthers(t *testing.T) {
	for name, budget := range map[string]*riprap.Budget{"of the Transport's Policy": {Reserve: 5}, "of the destination": nil} {
		inBubble(t, name, func(t *testing.T) {
			f := newFleet("down.test")
			p := quick()
			p.Budget = budget
			client := &riphttp.Transport{Base: f, Policy: p}
			want := 5
			if budget == nil {
				want = 10
			}
			f.calls(t, client, "down.test", 2) // three retries each, as far as there are some
			for range 10 {
				req := newRequest(t, "GET", "http://down.test/", nil)
				result(t, client, req.WithContext(riphttp.WithPolicy(req.Context(), quick())))
			}
			if got := f.requests["down.test"] - 12; got != want {
				t.Errorf("12 calls, ten of them with a policy of their own, made %d retries, want the reserve of %d", got, want)
			}
		})
	}
}

func TestBudgetIsFilledAgain(t *testing.T) {
	for name, recover := range map[string]func(*testing.T, *fleet, *riphttp.Transport){
		"by success": func(t *testing.T, f *fleet, client *riphttp.Transport) {
			f.failures["a.test"] = 0
			if got := f.calls(t, client, "a.test", 1000); got != 1000 {
				t.Errorf("1000 good calls made %d requests", got)
			}
		},
		"by an hour of silence": func(*testing.T, *fleet, *riphttp.Transport) { time.Sleep(time.Hour) },
	} {
		inBubble(t, name, func(t *testing.T) {
			f := newFleet("a.test")
			client := &riphttp.Transport{Base: f, Policy: quick()}
			f.calls(t, client, "a.test", 20)
			if got := f.calls(t, client, "a.test", 1); got != 1 {
				t.Fatalf("with a spent budget a call made %d requests, want one", got)
			}
			recover(t, f, client)
			f.failures["a.test"] = forever
			if got := f.calls(t, client, "a.test", 1); got != 4 {
				t.Errorf("after the recovery a call made %d requests, want all four", got)
			}
		})
	}
}

func TestVeryFirstCallMayBeSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := script(503, 200)
		wantAnswer(t, &riphttp.Transport{Base: service}, newRequest(t, "GET", serviceURL, nil), 200, "OK")
	})
}

func TestRareCallsMayBeSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		client := &riphttp.Transport{Base: f, Policy: quick()}
		rescued := 0
		for i := range 24 * 60 { // a day of a request a minute, one of ten failing once
			time.Sleep(time.Minute)
			if i%10 == 0 {
				f.failures["quiet.test"] = 1
			}
			if f.calls(t, client, "quiet.test", 1) == 2 {
				rescued++
			}
		}
		if rescued != 24*6 {
			t.Errorf("%d of %d failures were rescued, want all", rescued, 24*6)
		}
	})
}

func TestHostThatFailsDoesNotTouchAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("bad.test")
		client := &riphttp.Transport{Base: f, Policy: quick()}
		rescued := 0
		const minutes = 5
		for second := range minutes * 60 {
			time.Sleep(time.Second)
			f.calls(t, client, "bad.test", 100)
			if second%60 == 59 {
				f.failures["good.test"] = 1
			}
			if f.calls(t, client, "good.test", 1) == 2 {
				rescued++
			}
		}
		if rescued != minutes {
			t.Errorf("%d failures of the good host were rescued, want all %d", rescued, minutes)
		}
		if retries := f.requests["bad.test"] - minutes*60*100; retries > 11 {
			t.Errorf("the bad host got %d retries, want its reserve and what comes in five minutes", retries)
		}
	})
}

func TestManyFailingHostsTogetherHaveTheTransportsReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down []string
		for i := range 10_000 {
			down = append(down, fmt.Sprintf("host-%d.test", i))
		}
		f := newFleet(down...)
		client := &riphttp.Transport{Base: f, Policy: quick()}
		requests := 0
		for _, host := range down {
			requests += f.calls(t, client, host, 1)
		}
		if retries := requests - len(down); retries != 100 {
			t.Errorf("%d failing hosts got %d retries, want 100", len(down), retries)
		}
	})
}

func TestBudgetOfThePolicyIsUsedForAllHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("a.test", "b.test")
		policy := quick()
		policy.Budget = &riprap.Budget{Reserve: 4}
		client := &riphttp.Transport{Base: f, Policy: policy}
		if got := f.calls(t, client, "a.test", 1) + f.calls(t, client, "b.test", 2); got != 7 {
			t.Errorf("three calls to two hosts made %d requests, want four retries for all", got)
		}
		if left := policy.Budget.Left(time.Now()); left != 0 {
			t.Errorf("retries left: %d, want none", left)
		}
	})
}

func TestDestinationNamesWhatSharesABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("a.test")
		var log events
		client := &riphttp.Transport{Base: f, Policy: traced(quick(), &log), Destination: func(r *http.Request) string {
			route, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
			return route
		}}
		get := func(path string) int {
			before := f.requests["a.test"]
			result(t, client, newRequest(t, "GET", "http://a.test"+path, nil))
			return f.requests["a.test"] - before
		}
		for range 4 {
			get("/search/1")
		}
		if got := get("/search/2"); got != 1 {
			t.Errorf("with the budget of its route spent a call made %d requests, want one", got)
		}
		if got := get("/order/1"); got != 4 {
			t.Errorf("on another route a call made %d requests, want four", got)
		}
		last := log.done[len(log.done)-1]
		if last.Name != "order" || log.retries[0].Name != "search" || log.attempts[0].Name != "search" {
			t.Errorf("events are named %q, %q, %q, want order, search, search", last.Name, log.retries[0].Name, log.attempts[0].Name)
		}
	})
}

func TestOnlyAFirstAttemptThatSucceedsDeposits(t *testing.T) {
	for _, test := range []struct {
		name    string
		steps   []any
		unbound bool
		want    int // of five retries, two of them spent
	}{
		{"success", []any{200}, false, 4},
		{"success without bounds", []any{200}, true, 4},
		{"not found is an answer", []any{404}, false, 4},
		{"success of a retry", []any{503, 200}, false, 2},
		{"failure", []any{501}, false, 3},
		{"failure given up", []any{errWire}, false, 0},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			policy := quick()
			policy.Budget = &riprap.Budget{Ratio: 1, Reserve: 5}
			client := &riphttp.Transport{Base: script(503, 503, 200), Policy: policy}
			if test.unbound {
				policy.Timeout, policy.AttemptTimeout, client.ReadTimeout = -1, -1, -1
			}
			result(t, client, newRequest(t, "GET", serviceURL, nil))
			client = &riphttp.Transport{Base: script(test.steps...), Policy: policy, ReadTimeout: client.ReadTimeout}
			result(t, client, newRequest(t, "GET", serviceURL, nil))
			if got := policy.Budget.Left(time.Now()); got != test.want {
				t.Errorf("retries left: %d, want %d", got, test.want)
			}
		})
	}
}
