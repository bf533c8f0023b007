package chain_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

// diamonds is a row of services of which each calls two that both call the next one: 2^n ways lead to the last. All timeouts
// are in order.
func diamonds(n int) *chain.Chain {
	c := &chain.Chain{}
	timeout := time.Duration(n+1) * 2 * time.Second
	add := func(name string, to ...string) {
		s := chain.Service{Name: name}
		for _, to := range to {
			s.Calls = append(s.Calls, chain.Call{To: to, Policy: once(timeout)})
		}
		timeout -= time.Second
		c.Services = append(c.Services, s)
	}
	for i := range n {
		add(fmt.Sprint(i), fmt.Sprint(i, "left"), fmt.Sprint(i, "right"))
		add(fmt.Sprint(i, "left"), fmt.Sprint(i+1))
		timeout += time.Second // both alike
		add(fmt.Sprint(i, "right"), fmt.Sprint(i+1))
	}
	add(fmt.Sprint(n))
	return c
}

func TestManyWaysAreNotFollowedOneByOne(t *testing.T) {
	const n = 3000
	c := diamonds(n)
	if got := chain.Check(c); got != nil {
		t.Errorf("Check =\n%swant no findings", written(got))
	}
	if got, want := len(c.Hops()), 1+4*n; got != want {
		t.Errorf("Hops has %d lines, want one for each of %d calls and one for the top", got, want)
	}

	// Twice as many calls with each diamond, too many from the fourth on.
	for i := range c.Services {
		if s := &c.Services[i]; len(s.Calls) == 2 {
			for j := range s.Calls {
				s.Calls[j].Policy.MaxAttempts, s.Calls[j].Policy.Budget, s.Calls[j].Idempotent = 2, &riprap.Budget{}, true
				s.Calls[j].Policy.AttemptTimeout = s.Calls[j].Policy.Timeout - time.Second/2
			}
		}
	}
	var multiplied []string
	for _, f := range chain.Check(c) {
		if f.Rule == "retries-multiply" {
			multiplied = append(multiplied, f.Service+" → "+f.To)
		}
	}
	if got, want := strings.Join(multiplied, ", "), "3 → 3left, 3 → 3right"; got != want {
		t.Errorf("calls that multiply retries beyond the limit: %s, want %s", got, want)
	}
	for _, h := range c.Hops() {
		if h.Service == fmt.Sprint(n) && h.Calls != math.MaxInt {
			t.Errorf("2^%d calls are %d, want all that an int can count", n, h.Calls)
		}
	}
}

func TestALongChainIsChecked(t *testing.T) {
	const n = 10_000
	c := &chain.Chain{}
	for i := range n {
		s := chain.Service{Name: fmt.Sprint(i)}
		if i < n-1 {
			s.Calls = []chain.Call{{To: fmt.Sprint(i + 1), Policy: once(time.Duration(n-i) * time.Second)}}
		}
		c.Services = append(c.Services, s)
	}
	if got := chain.Check(c); got != nil {
		t.Errorf("Check =\n%swant no findings", written(got))
	}
	hops := c.Hops()
	if got := hops[len(hops)-1]; len(hops) != n || got.Depth != n-1 || got.Left != 2*time.Second {
		t.Errorf("Hops has %d lines, the last of them %+v, want %d and 2s left at the last", len(hops), got, n)
	}

	// From every service back to the first: a cycle each, and nothing else.
	for i := 1; i < n; i++ {
		c.Services[i].Calls = append(c.Services[i].Calls, chain.Call{To: "0", Policy: once(time.Second)})
	}
	findings := chain.Check(c)
	for _, f := range findings {
		if f.Rule != "cycle" {
			t.Fatalf("Check has %s, want cycles only", written([]chain.Finding{f}))
		}
	}
	if len(findings) != n-1 {
		t.Errorf("Check has %d findings, want %d", len(findings), n-1)
	}
	if got, want := findings[n-2].Figures[0].Value, "0 → 1 → 2 → 3 → … → 9996 → 9997 → 9998 → 9999 → 0"; got != want {
		t.Errorf("the longest cycle is written %q, want %q", got, want)
	}
}

func TestEndlessFiguresAreCountedInNoTime(t *testing.T) {
	c, first := pair()
	first.Policy.MaxAttempts, first.Policy.AttemptTimeout, c.MaxCalls = math.MaxInt-1, 1, -1
	first.Policy.Backoff = riprap.Backoff{Base: 1, Max: 1}
	got := chain.Check(c)
	if want := "from 9223372036854775806 to 2500000000."; len(got) != 1 || !strings.Contains(got[0].Fix, want) {
		t.Errorf("Check =\n%swant one finding that advises to change attempts %s", written(got), want)
	}
}
