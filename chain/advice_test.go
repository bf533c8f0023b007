package chain_test

import (
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

func TestTheAdviceFitsWhatIsAboveAndBelow(t *testing.T) {
	second := time.Second
	tests := []struct {
		name   string
		change func(*chain.Chain) // of the chain that is in order
		want   string
	}{
		{"there is room between the caller and what is called", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout, call(c, 1).Policy.Timeout = 4*second, 7*second
		}, "Lower policy.timeout of orders → payments from 7s to 3.6s."},
		{"the attempts need nearly all that the caller has", func(c *chain.Chain) {
			call(c, 1).Policy.Timeout, call(c, 2).Policy.Timeout = 2*second, 4*second
		}, "Lower policy.timeout of payments → database from 4s to 1.9s."},
		{"what is called needs more than the caller has", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout = 1500 * ms
		}, "Raise policy.timeout of gateway → orders from 1.5s to 4.8s."},
		{"two figures bound one attempt", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout, call(c, 0).Policy.AttemptTimeout = 1500*ms, 1500*ms
		}, "Raise policy.timeout and policy.attemptTimeout of gateway → orders from 1.5s to 4.8s."},
		{"the caller's own caller has no more", func(c *chain.Chain) {
			c.Services[0].Limit, call(c, 0).Policy.Timeout = 3*second, 1500*ms
		}, "Raise policy.timeout of gateway → orders from 1.5s to 4.8s, and what is above accordingly."},
		{"the limit of the caller is the one that is too short", func(c *chain.Chain) {
			c.Services[1].Limit = 1500 * ms
		}, "Raise limit of orders from 1.5s to 4.8s."},
		{"the limit of the caller would outlive its own caller", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout, c.Services[1].Limit = 4500*ms, 1500*ms
		}, "Raise limit of orders from 1.5s to 4.8s, and what is above accordingly."},
		{"a limit is longer than anybody waits", func(c *chain.Chain) {
			c.Services[2].Limit = 5 * second
		}, "Lower limit of payments from 5s to 4s."},
		{"a limit is longer than anybody waits, and so is what the service calls", func(c *chain.Chain) {
			call(c, 1).Policy.Timeout, c.Services[2].Limit = 1800*ms, 5*second
		}, "Raise policy.timeout of orders → payments from 1.8s to 5s."},
		{"a timeout is missing below a caller that has one", func(c *chain.Chain) {
			call(c, 1).Policy.Timeout = 0
		}, "Set policy.timeout of orders → payments to 6.3s."},
		{"a timeout is missing between two that leave no room", func(c *chain.Chain) {
			call(c, 1).Policy.Timeout, call(c, 0).Policy.Timeout, c.Services[3].Limit = 0, 2*second+1, 2*second
		}, "Set policy.timeout of orders → payments to less than 2.000000001s, and what is below it accordingly."},
		{"a timeout is missing at the top", func(c *chain.Chain) {
			c.Services[0].Limit, call(c, 0).Policy.Timeout = 0, 0
		}, "Set policy.timeout of gateway → orders to 4.8s."},
		{"a timeout is missing where only the latency is known", func(c *chain.Chain) {
			*c = chain.Chain{Services: []chain.Service{{Name: "a", Calls: []chain.Call{{To: "b", P99: second, Policy: once(0)}}}, {Name: "b"}}}
		}, "Set policy.timeout of a → b to 3.6s."},
		{"a timeout is missing where nothing is known", func(c *chain.Chain) {
			*c = chain.Chain{Services: []chain.Service{{Name: "a", Calls: []chain.Call{{To: "b", Policy: once(0)}}}, {Name: "b"}}}
		}, "Set policy.timeout of a → b to 30s, or less if its callers do not wait that long."},
		{"shorter attempts would be less than half as long", func(c *chain.Chain) {
			p := &call(c, 2).Policy
			p.AttemptTimeout, p.Backoff = 1100*ms, riprap.Backoff{Base: 1200 * ms, Jitter: riprap.Equal}
		}, "Lower policy.maxAttempts of payments → database from 2 to 1."},
		{"shorter attempts would be too near the p99", func(c *chain.Chain) {
			call(c, 2).P99, call(c, 2).Policy.AttemptTimeout = 500*ms, 1100*ms
		}, "Lower policy.maxAttempts of payments → database from 2 to 1."},
		{"shorter attempts would do", func(c *chain.Chain) {
			call(c, 2).P99, call(c, 2).Policy.AttemptTimeout = 400*ms, 1100*ms
		}, "Lower policy.attemptTimeout of payments → database from 1.1s to 950ms."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := inOrder()
			test.change(c)
			if got := chain.Check(c); len(got) == 0 || got[0].Fix != test.want {
				t.Errorf("Check =\n%swant the advice: %s", written(got), test.want)
			}
		})
	}
}

func TestARaisedAttemptThatNoLongerFitsIsSaidToNeedMore(t *testing.T) {
	c := inOrder()
	p := &call(c, 1).Policy
	p.MaxAttempts, p.AttemptTimeout, p.Timeout, p.Budget = 2, 1800*ms, 4*time.Second, &riprap.Budget{}
	p.Backoff, call(c, 1).Idempotent = riprap.Backoff{Base: ms, Max: ms}, true
	want := "Raise policy.attemptTimeout of orders → payments from 1.8s to 2.4s, and what is above accordingly."
	if got := chain.Check(c); len(got) != 1 || got[0].Fix != want {
		t.Errorf("Check =\n%swant the advice: %s", written(got), want)
	}
}

func TestTheProductIsThatOfTheAttemptsThatFit(t *testing.T) {
	for _, test := range []struct {
		above, below int
		want         string
	}{
		{3, 1, "While c is down, one call at a becomes 3 × 5 = 15 there, and at most 10 are allowed."},
		{1, 3, "While d is down, one call at a becomes 5 × 3 = 15 there, and at most 10 are allowed."},
	} {
		c := row(test.above, 5, test.below)
		c.MaxCalls = 10
		c.Services[1].Calls[0].Policy.MaxAttempts = 100
		var texts []string
		for _, f := range chain.Check(c) {
			if f.Rule == "retries-multiply" {
				texts = append(texts, f.Text)
			}
		}
		if len(texts) != 1 || texts[0] != test.want {
			t.Errorf("%d attempts above and %d below: got %q, want %q", test.above, test.below, texts, test.want)
		}
	}
}

func TestAfterAHundredWaitsTheOthersCountAsLongAsTheCap(t *testing.T) {
	c, first := pair()
	c.MaxCalls = -1
	first.Policy = riprap.Policy{
		MaxAttempts: 200, AttemptTimeout: ms, Timeout: 2165 * ms, // 200 ms, 1+2+4+8 ms, and 195 times 10 ms
		Backoff: riprap.Backoff{Base: ms, Max: 10 * ms}, Budget: &riprap.Budget{},
	}
	if got := found(c); got != nil {
		t.Errorf("Check finds %q, want nothing", got)
	}
	first.Policy.Timeout--
	if got := chain.Check(c); len(got) != 1 || got[0].Fix != "Lower policy.maxAttempts of shop → stock from 200 to 199." {
		t.Errorf("Check =\n%swant one attempt less", written(got))
	}
}

func TestWaitsThatTheServiceAsksForAreStretched(t *testing.T) {
	c, first := pair()
	first.Policy.Timeout, first.Policy.MaxWait = 0, 2910*ms // twice 3.492s, and three attempts of 1s
	if got := found(c); got != nil {
		t.Errorf("Check finds %q, want nothing", got)
	}
	first.Policy.MaxWait = 2917 * ms
	if got := found(c); len(got) != 1 || got[0] != "callee-outlives-caller shop→stock" {
		t.Errorf("Check finds %q, want that the call takes longer than 10s", got)
	}
}
