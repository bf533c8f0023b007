package chain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

// found returns the findings as rules and places.
func found(c *chain.Chain) (found []string) {
	for _, f := range chain.Check(c) {
		place := f.Service
		if f.To != "" {
			place += "→" + f.To
		}
		found = append(found, f.Rule+" "+place)
	}
	return found
}

func TestConsequencesAreNotReported(t *testing.T) {
	second := time.Second
	tests := []struct {
		name   string
		change func(*chain.Chain) // of the chain that is in order
		want   []string
	}{
		{"the name that a call misses may be that of the service that nobody calls", func(c *chain.Chain) {
			call(c, 2).To = "databse"
		}, []string{"unknown-service payments→databse"}},
		{"what is below a call without a timeout has the time of its caller", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout = 0
			call(c, 2).Policy.Timeout = 4 * second
		}, []string{"no-timeout gateway→orders", "callee-outlives-caller payments→database"}},
		{"a call without a timeout does not outlive anybody, and its caps are beyond nothing", func(c *chain.Chain) {
			p := &call(c, 2).Policy
			p.Timeout, p.AttemptTimeout, p.MaxWait, p.Backoff.Max = 0, 0, time.Hour, time.Hour
		}, []string{"no-timeout payments→database"}},
		{"a timeout that is to change says nothing about latency, attempts, waits and keys", func(c *chain.Chain) {
			call(c, 1).P99 = 30 * ms
			call(c, 2).P99 = 500 * ms
			p := &call(c, 2).Policy
			p.Timeout, p.MaxAttempts, p.MaxWait, p.Backoff.Max = 4*second, 4, time.Hour, time.Hour
			p.AttemptTimeout = 990 * ms
			call(c, 2).Keyed, c.Services[3].Retention, c.Services[3].Lease = true, second, 500*ms
		}, []string{"callee-outlives-caller payments→database"}},
		{"attempts of which only one fits are no retries", func(c *chain.Chain) {
			call(c, 0).Policy = riprap.Policy{Timeout: 7 * second, MaxWait: time.Hour, Backoff: riprap.Backoff{Jitter: riprap.None}}
		}, []string{"attempts-do-not-fit gateway→orders"}},
		{"attempts of which two fit are retries", func(c *chain.Chain) {
			p := &call(c, 2).Policy
			p.MaxAttempts, p.Budget, p.Backoff = 4, nil, riprap.Backoff{Base: 100 * ms, Jitter: riprap.None}
			call(c, 2).Idempotent = false
		}, []string{
			"attempts-do-not-fit payments→database", "no-jitter payments→database",
			"no-budget payments→database", "retry-not-safe payments→database",
		}},
		{"too many attempts for the time are not too many for the chain as well", func(c *chain.Chain) {
			call(c, 2).Policy.MaxAttempts = 12
		}, []string{"attempts-do-not-fit payments→database"}},
		{"calls of one service that outlive it are mended one by one", func(c *chain.Chain) {
			c.Services[1].Calls = append(c.Services[1].Calls, chain.Call{To: "database", Policy: once(8 * second)})
			call(c, 1).Policy.Timeout = 9 * second
		}, []string{"callee-outlives-caller orders→payments", "callee-outlives-caller orders→database"}},
		{"a second fault further down is one of its own", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout = 11 * second
			call(c, 2).Policy.Timeout = 4 * second
		}, []string{"callee-outlives-caller gateway→orders", "callee-outlives-caller payments→database"}},
		{"what is in order by one way and not by another is reported", func(c *chain.Chain) {
			c.Services[0].Calls = append(c.Services[0].Calls, chain.Call{To: "payments", Policy: once(2 * second)})
		}, []string{"callee-outlives-caller payments→database"}},
		{"below what is in order by one way, faults are reported", func(c *chain.Chain) {
			c.Services[0].Calls = append(c.Services[0].Calls, chain.Call{To: "payments", Policy: once(2 * second)})
			call(c, 2).Policy.Timeout = 3 * second
			call(c, 2).Policy.AttemptTimeout = 1400 * ms
			c.Services[3].Calls = []chain.Call{{To: "disk", Policy: once(2500 * ms)}}
			c.Services = append(c.Services, chain.Service{Name: "disk"})
		}, []string{"callee-outlives-caller payments→database", "callee-outlives-caller database→disk"}},
		{"below a fault by one way, what is wrong by another is reported", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout, call(c, 1).Policy.Timeout = 12*second, 11*second
			c.Services[0].Calls = append(c.Services[0].Calls, chain.Call{To: "payments", Policy: once(1900 * ms)})
		}, []string{"callee-outlives-caller gateway→orders", "callee-outlives-caller payments→database"}},
		{"the same, and the fault comes first", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout, call(c, 1).Policy.Timeout = 12*second, 11*second
			c.Services[0].Calls = append([]chain.Call{{To: "cart", Policy: once(6 * second)}}, c.Services[0].Calls...)
			c.Services = append(c.Services, chain.Service{Name: "cart", Calls: []chain.Call{{To: "payments", Policy: once(1900 * ms)}}})
		}, []string{"callee-outlives-caller gateway→orders", "callee-outlives-caller payments→database"}},
		{"a limit that is to change says nothing about leases", func(c *chain.Chain) {
			c.Services[2].Limit, c.Services[2].Lease = 5*second, 3*second
		}, []string{"callee-outlives-caller payments"}},
		{"a limit may be beyond the time of a caller that has no timeout", func(c *chain.Chain) {
			call(c, 0).Policy.Timeout, c.Services[1].Limit = 0, 12*second
		}, []string{"no-timeout gateway→orders", "callee-outlives-caller orders"}},
		{"endless attempts have no caps beyond the time of their caller", func(c *chain.Chain) {
			p := &call(c, 2).Policy
			p.Timeout, p.MaxAttempts, p.MaxWait, p.Backoff.Max, c.MaxCalls, c.Services[2].Limit = 0, -1, time.Hour, time.Hour, -1, 3*second
		}, []string{"no-timeout payments→database"}},
		{"a bound that a lost packet needs is not far above the p99", func(c *chain.Chain) {
			call(c, 2).P99 = 10 * ms
		}, nil},
		{"a bound that follows the latency is not far above it", func(c *chain.Chain) {
			call(c, 0).P99, call(c, 0).Policy.Latency = 100*ms, &riprap.Latency{}
		}, nil},
		{"attempts that are to be shorter say nothing about latency", func(c *chain.Chain) {
			call(c, 2).P99, call(c, 2).Policy.AttemptTimeout = 50*ms, 1500*ms
		}, []string{"attempts-do-not-fit payments→database"}},
		{"findings at one service come in the order of its calls", func(c *chain.Chain) {
			call(c, 2).Policy.Backoff.Jitter = riprap.None
			c.Services[2].Calls = append(c.Services[2].Calls, chain.Call{To: "database", Policy: once(4 * second)})
		}, []string{"no-jitter payments→database", "callee-outlives-caller payments→database"}},
		{"findings at one call come in the order of the rules", func(c *chain.Chain) {
			call(c, 2).P99, call(c, 2).Policy.Budget = 500*ms, nil
		}, []string{"bound-near-p99 payments→database", "no-budget payments→database"}},
		{"a limit is for the most patient caller", func(c *chain.Chain) {
			c.Services[2].Limit = 4 * second
			c.Services[0].Calls = append(c.Services[0].Calls, chain.Call{To: "payments", Policy: once(3 * second)})
		}, nil},
		{"a cycle is not followed", func(c *chain.Chain) {
			c.Services[3].Calls = []chain.Call{{To: "orders", Policy: once(500 * ms)}, {To: "orders", Policy: once(400 * ms)}}
		}, []string{"cycle database→orders"}},
		{"the call that leads back is the last on the way from the top, wherever the top stands", func(c *chain.Chain) {
			c.Services[3].Calls = []chain.Call{{To: "orders", Policy: once(500 * ms)}}
			slices.Reverse(c.Services)
		}, []string{"cycle database→orders"}},
		{"a key that is not handed down does not come again for longer", func(c *chain.Chain) {
			p := &call(c, 0).Policy
			p.MaxAttempts, p.AttemptTimeout, p.Budget = 2, 4500*ms, &riprap.Budget{}
			call(c, 0).Keyed, call(c, 2).Keyed, c.Services[3].Retention = true, true, 2*second
			c.Services[0].Limit, p.Timeout = 20*second, 10*second
		}, nil},
		{"findings come in the order of services and calls", func(c *chain.Chain) {
			call(c, 2).Policy.Backoff.Jitter = riprap.None
			c.Services[3].Lease = ms
			call(c, 0).P99 = 100 * ms
		}, []string{"bound-far-above-p99 gateway→orders", "no-jitter payments→database", "lease-shorter-than-limit database"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := inOrder()
			test.change(c)
			if got := found(c); !slices.Equal(got, test.want) {
				t.Errorf("Check finds\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
		})
	}
}

func TestOnlyFiguresThatAreWrittenAreBlamed(t *testing.T) {
	c, first := pair()
	first.Policy.MaxWait, first.Policy.Backoff = 0, riprap.Backoff{} // a minute, and up to ten seconds
	if got := found(c); got != nil {
		t.Errorf("Check of a policy with the default waits finds %q, want nothing", got)
	}
	first.Policy.MaxWait, first.Policy.Backoff.Max = time.Minute, 10*time.Second
	if got, want := found(c), []string{"max-wait-beyond-deadline shop→stock", "cap-beyond-total shop→stock"}; !slices.Equal(got, want) {
		t.Errorf("Check of a policy with the same waits in writing finds %q, want %q", got, want)
	}
}

func TestACallThatIsMadeOnceNeedsNothingForRetries(t *testing.T) {
	c, first := pair()
	first.Idempotent = false
	first.Policy = riprap.Policy{
		MaxAttempts: 1, Timeout: 5 * time.Second, MaxWait: time.Hour,
		Backoff: riprap.Backoff{Base: time.Hour, Max: time.Hour, Jitter: riprap.None},
	}
	if got := found(c); got != nil {
		t.Errorf("Check finds %q, want nothing", got)
	}
}

func TestCheckOfNothingFindsNothing(t *testing.T) {
	if got := chain.Check(&chain.Chain{}); got != nil {
		t.Errorf("Check of an empty chain = %v, want nil", got)
	}
	if got := found(&chain.Chain{Services: []chain.Service{{Name: "alone"}}}); got != nil {
		t.Errorf("Check of a single service finds %q, want nothing", got)
	}
}
