package chain_test

import (
	"math"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

var breachesOfRetries = []breach{
	{
		name:   "none",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.Backoff.Jitter = riprap.None },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.Backoff.Jitter = riprap.Equal },
		want: chain.Finding{
			Rule: "no-jitter", Service: "shop", To: "stock", Call: 0, Field: "policy.backoff.jitter",
			Text:    "The waits of shop before it tries stock again are not random.",
			Fix:     "Change policy.backoff.jitter of shop → stock from none to full.",
			Figures: []chain.Figure{{"policy.backoff.jitter", "none"}},
		},
	},
	{
		name:   "none",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.Budget = nil },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.Budget = &riprap.Budget{} },
		want: chain.Finding{
			Rule: "no-budget", Service: "shop", To: "stock", Call: 0, Field: "policy.budget",
			Text:    "shop makes up to 3 attempts at stock for a call, and no budget limits how many of all calls do so.",
			Fix:     "Give shop → stock a policy.budget, one for all calls to stock: {ratio: 0.2, reserve: 10} is the default.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.budget", "none"}},
		},
	},
	{
		name:   "an unlimited one",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.Budget = &riprap.Budget{Ratio: math.Inf(1)} },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.Budget.Parent = &riprap.Budget{} },
		want: chain.Finding{
			Rule: "no-budget", Service: "shop", To: "stock", Call: 0, Field: "policy.budget",
			Text:    "shop makes up to 3 attempts at stock for a call, and its budget, which is unlimited, does not limit how many of all calls do so.",
			Fix:     "Change policy.budget.ratio of shop → stock from unlimited to 0.2, one for all calls to stock.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.budget", "unlimited"}},
		},
	},
	{
		name:   "a write",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Idempotent = false },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Keyed = true },
		want: chain.Finding{
			Rule: "retry-not-safe", Service: "shop", To: "stock", Call: 0, Field: "idempotent",
			Text:    "shop tries stock again, though the call is neither idempotent nor carries a key.",
			Fix:     "Lower policy.maxAttempts of shop → stock from 3 to 1; or send an idempotency key that stock honors, and set keyed; or set idempotent, if the call is.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"idempotent", "false"}, {"keyed", "false"}},
		},
	},
	{
		name:   "three layers",
		chain:  func() *chain.Chain { return row(2, 2, 3) },
		breaks: func(c *chain.Chain, _ *chain.Call) { c.MaxCalls = 11 },
		near:   func(c *chain.Chain, _ *chain.Call) { c.MaxCalls = 12 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "c", To: "d", Call: 0, Field: "policy.maxAttempts",
			Text:    "While d is down, one call at a becomes 2 × 2 × 3 = 12 there, and at most 11 are allowed.",
			Fix:     "Lower policy.maxAttempts of a → b from 2 to 1, or of c → d from 3 to 2.",
			Figures: []chain.Figure{{"a → b: policy.maxAttempts", "2"}, {"b → c: policy.maxAttempts", "2"}, {"c → d: policy.maxAttempts", "3"}, {"calls", "12"}, {"maxCalls", "11"}},
		},
	},
	{
		name:   "more than ten if nothing is said",
		chain:  func() *chain.Chain { return row(2, 2, 3) },
		breaks: func(c *chain.Chain, _ *chain.Call) { c.MaxCalls = 0 },
		near:   func(c *chain.Chain, _ *chain.Call) { c.MaxCalls = 12 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "c", To: "d", Call: 0, Field: "policy.maxAttempts",
			Text:    "While d is down, one call at a becomes 2 × 2 × 3 = 12 there, and at most 10 are allowed.",
			Fix:     "Lower policy.maxAttempts of a → b from 2 to 1, or of c → d from 3 to 2.",
			Figures: []chain.Figure{{"a → b: policy.maxAttempts", "2"}, {"b → c: policy.maxAttempts", "2"}, {"c → d: policy.maxAttempts", "3"}, {"calls", "12"}, {"maxCalls", "10"}},
		},
	},
	{
		name:   "one layer",
		breaks: func(c *chain.Chain, _ *chain.Call) { c.MaxCalls = 2 },
		near:   func(c *chain.Chain, _ *chain.Call) { c.MaxCalls = 3 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "While stock is down, one call at shop becomes 3 there, and at most 2 are allowed.",
			Fix:     "Lower policy.maxAttempts of shop → stock from 3 to 2.",
			Figures: []chain.Figure{{"shop → stock: policy.maxAttempts", "3"}, {"calls", "3"}, {"maxCalls", "2"}},
		},
	},
	{
		name:   "without end",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxAttempts = -1 },
		near:   func(c *chain.Chain, _ *chain.Call) { c.MaxCalls = -1 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "While stock is down, one call at shop becomes more than can be counted there, and at most 10 are allowed.",
			Fix:     "Lower policy.maxAttempts of shop → stock from none to 10.",
			Figures: []chain.Figure{{"shop → stock: policy.maxAttempts", "none"}, {"calls", "none"}, {"maxCalls", "10"}},
		},
	},
}
