package chain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

const ms = time.Millisecond

// once is the policy of a call that is made once within a time.
func once(timeout time.Duration) riprap.Policy {
	return riprap.Policy{MaxAttempts: 1, Timeout: timeout}
}

// twice is the policy of two attempts of 900 ms within two seconds.
func twice() riprap.Policy {
	return riprap.Policy{
		MaxAttempts: 2, Timeout: 2 * time.Second, AttemptTimeout: 900 * ms,
		Backoff: riprap.Backoff{Base: 100 * ms, Max: 200 * ms}, Budget: &riprap.Budget{},
	}
}

// inOrder is a chain in which all is fine: each timeout is shorter than the one above it.
func inOrder() *chain.Chain {
	return &chain.Chain{Services: []chain.Service{
		{Name: "gateway", Limit: 10 * time.Second, Calls: []chain.Call{{To: "orders", Policy: once(7 * time.Second)}}},
		{Name: "orders", Calls: []chain.Call{{To: "payments", Policy: once(4 * time.Second)}}},
		{Name: "payments", Calls: []chain.Call{{To: "database", Policy: twice(), Idempotent: true}}},
		{Name: "database"},
	}}
}

// variants are ways to write the chain that is in order down in full. All of them are fine too.
var variants = []struct {
	name  string
	write func(*chain.Chain)
}{
	{"as short as can be", func(*chain.Chain) {}},
	{"services limit themselves to what their callers wait", limits(2 * time.Second)},
	{"the last service limits itself to one attempt", limits(900 * ms)},
	{"attempts are bounded as well", attemptsToo},
	{"attempts are bounded and services limit themselves", func(c *chain.Chain) { attemptsToo(c); limits(2 * time.Second)(c) }},
	{"latencies are known", func(c *chain.Chain) {
		for i, p99 := range []time.Duration{1200 * ms, 800 * ms, 300 * ms} {
			call(c, i).P99 = p99
		}
	}},
	{"one policy is shared", func(c *chain.Chain) {
		for i := range 3 {
			p := &call(c, i).Policy
			p.MaxWait, p.Budget = 150*ms, call(c, 2).Policy.Budget
			p.Backoff = riprap.Backoff{Base: 100 * ms, Max: time.Second, Factor: 2}
		}
	}},
	{"keys are kept", func(c *chain.Chain) {
		limits(2 * time.Second)(c)
		for i := range 3 {
			call(c, i).Keyed = true
			c.Services[i+1].Lease, c.Services[i+1].Retention = time.Minute, 24*time.Hour
		}
	}},
	{"keys are kept for hardly longer than needed", func(c *chain.Chain) {
		for i := range 3 {
			call(c, i).Keyed = true
			c.Services[i+1].Lease = []time.Duration{7 * time.Second, 4 * time.Second, 900 * ms}[i]
			c.Services[i+1].Retention = 2 * time.Second
		}
	}},
}

func limits(last time.Duration) func(*chain.Chain) {
	return func(c *chain.Chain) {
		c.Services[1].Limit, c.Services[2].Limit, c.Services[3].Limit = 7*time.Second, 4*time.Second, last
	}
}

func attemptsToo(c *chain.Chain) {
	for i := range 2 {
		p := &call(c, i).Policy
		p.AttemptTimeout = p.Timeout
	}
}

// call returns the first call of a service.
func call(c *chain.Chain, i int) *chain.Call { return &c.Services[i].Calls[0] }

// written returns the findings as text, one a line.
func written(findings []chain.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s at %s[%d]→%s %s: %s %s %v\n", f.Rule, f.Service, f.Call, f.To, f.Field, f.Text, f.Fix, f.Figures)
	}
	return b.String()
}

func TestAChainInOrderIsFine(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			c := inOrder()
			v.write(c)
			if got := chain.Check(c); got != nil {
				t.Errorf("Check =\n%swant no findings", written(got))
			}
		})
	}
}

// mustHaveOne checks that a chain has exactly one finding, of a rule.
func mustHaveOne(t *testing.T, c *chain.Chain, rule string) {
	t.Helper()
	got := chain.Check(c)
	if len(got) != 1 || got[0].Rule != rule {
		t.Errorf("Check =\n%swant one finding, %s", written(got), rule)
	}
}

// timeouts returns the timeouts of the chain that is in order, from the top down: the limit of the first service, then the timeouts
// of the calls.
func timeouts(c *chain.Chain) []*time.Duration {
	return []*time.Duration{&c.Services[0].Limit, &call(c, 0).Policy.Timeout, &call(c, 1).Policy.Timeout, &call(c, 2).Policy.Timeout}
}

func TestTwoTimeoutsExchangedAreOneFinding(t *testing.T) {
	// What is exchanged, besides the timeouts, where each service limits itself or each call bounds its attempts too.
	kinds := []struct {
		name    string
		figures func(*chain.Chain) [][]*time.Duration // each with four figures, from the top down
	}{
		{"timeouts", func(c *chain.Chain) [][]*time.Duration { return [][]*time.Duration{timeouts(c)} }},
		{"limits", func(c *chain.Chain) [][]*time.Duration { return [][]*time.Duration{serviceLimits(c)} }},
		{"timeouts and limits", func(c *chain.Chain) [][]*time.Duration {
			limits := serviceLimits(c)
			limits[0] = new(time.Duration) // it is among the timeouts
			return [][]*time.Duration{timeouts(c), limits}
		}},
		{"timeouts and bounds of attempts", func(c *chain.Chain) [][]*time.Duration {
			return [][]*time.Duration{timeouts(c), {new(time.Duration), &call(c, 0).Policy.AttemptTimeout, &call(c, 1).Policy.AttemptTimeout, new(time.Duration)}}
		}},
	}
	for _, v := range variants {
		for _, kind := range kinds {
			for i := range 4 {
				for j := range i {
					t.Run(fmt.Sprintf("%s/%s %d and %d", v.name, kind.name, j, i), func(t *testing.T) {
						c := inOrder()
						v.write(c)
						for _, four := range kind.figures(c) {
							if a, b := four[i], four[j]; *a > 0 && *b > 0 {
								*a, *b = *b, *a
							}
						}
						if kind.name == "limits" && c.Services[3].Limit == 0 {
							return // there is nothing to exchange
						}
						mustHaveOne(t, c, "callee-outlives-caller")
					})
				}
			}
		}
	}
}

func serviceLimits(c *chain.Chain) (limits []*time.Duration) {
	for i := range c.Services {
		limits = append(limits, &c.Services[i].Limit)
	}
	return limits
}

func TestFourAttemptsAreOneFinding(t *testing.T) {
	for _, v := range variants {
		for i := range 3 {
			for _, n := range []int{4, 0} {
				t.Run(fmt.Sprintf("%s/call %d, %d attempts", v.name, i, n), func(t *testing.T) {
					c := inOrder()
					v.write(c)
					call(c, i).Policy.MaxAttempts = n
					mustHaveOne(t, c, "attempts-do-not-fit")
				})
			}
		}
	}
}

func TestWaitsWithoutJitterAreOneFinding(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			c := inOrder()
			v.write(c)
			for i := range 3 { // the upper calls are made once: there is nothing to wait for
				call(c, i).Policy.Backoff.Jitter = riprap.None
			}
			mustHaveOne(t, c, "no-jitter")
		})
	}
}
