package chain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

// pair is a chain of two in which all is fine, and its only call.
func pair() (*chain.Chain, *chain.Call) {
	c := &chain.Chain{Services: []chain.Service{
		{Name: "shop", Limit: 10 * time.Second, Calls: []chain.Call{{
			To: "stock",
			Policy: riprap.Policy{
				MaxAttempts: 3, Timeout: 5 * time.Second, AttemptTimeout: time.Second,
				Backoff: riprap.Backoff{Base: 100 * ms}, Budget: &riprap.Budget{},
			},
			Idempotent: true,
		}}},
		{Name: "stock"},
	}}
	return c, call(c, 0)
}

// row is a chain of services a, b, c and so on of which each tries the next one a number of times. The timeouts halve on the
// way down.
func row(attempts ...int) *chain.Chain {
	c := &chain.Chain{Services: make([]chain.Service, len(attempts)+1)}
	timeout := time.Hour
	for i := range c.Services {
		c.Services[i].Name = string(rune('a' + i))
		if i < len(attempts) {
			p := riprap.Policy{MaxAttempts: attempts[i], Timeout: timeout, Budget: &riprap.Budget{}}
			p.AttemptTimeout = (timeout - 30*time.Second) / time.Duration(max(attempts[i], 1))
			c.Services[i].Calls = []chain.Call{{To: string(rune('b' + i)), Policy: p, Idempotent: true}}
			timeout = p.AttemptTimeout - time.Second
		}
	}
	return c
}

// A breach is a chain that breaks one rule, and the nearest one that does not.
type breach struct {
	name         string
	breaks, near func(*chain.Chain, *chain.Call) // the second changes what the first has made
	chain        func() *chain.Chain             // nil means pair
	want         chain.Finding
}

var breaches = slices.Concat(breachesOfShape, breachesOfTimes, breachesOfRetries, breachesOfKeys)

func (b breach) start() (*chain.Chain, *chain.Call) {
	c, first := pair()
	if b.chain != nil {
		c = b.chain()
		first = call(c, 0)
	}
	b.breaks(c, first)
	return c, first
}

func TestEachRuleFindsWhatBreaksItAndNothingElse(t *testing.T) {
	for _, b := range breaches {
		t.Run(b.want.Rule+"/"+b.name, func(t *testing.T) {
			c, first := b.start()
			if got, want := written(chain.Check(c)), written([]chain.Finding{b.want}); got != want {
				t.Errorf("Check =\n%swant\n%s", got, want)
			}
			b.near(c, first)
			if got := chain.Check(c); got != nil {
				t.Errorf("Check of the nearest chain =\n%swant no findings", written(got))
			}
		})
	}
}

func TestFindingsGiveTheReasonOfTheirRule(t *testing.T) {
	why := map[string]string{}
	for _, rule := range chain.Rules() {
		if why[rule.ID] != "" || rule.Why == "" {
			t.Errorf("Rules has %q twice, or without a reason", rule.ID)
		}
		why[rule.ID] = rule.Why
	}
	for _, b := range breaches {
		c, _ := b.start()
		for _, f := range chain.Check(c) {
			if f.Why != why[f.Rule] {
				t.Errorf("Why of %s = %q, want %q", f.Rule, f.Why, why[f.Rule])
			}
		}
	}
}

func TestEachRuleIsShownBroken(t *testing.T) {
	for _, rule := range chain.Rules() {
		if !slices.ContainsFunc(breaches, func(b breach) bool { return b.want.Rule == rule.ID }) {
			t.Errorf("no chain shows what breaks %s", rule.ID)
		}
	}
}
