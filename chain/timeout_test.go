package chain_test

import (
	"time"

	"github.com/riprap-go/riprap/chain"
)

var breachesOfTimes = []breach{
	{
		name: "neither of the two",
		breaks: func(_ *chain.Chain, first *chain.Call) {
			first.Policy.Timeout, first.Policy.AttemptTimeout, first.Policy.MaxAttempts = 0, 0, 1
		},
		near: func(_ *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = time.Second },
		want: chain.Finding{
			Rule: "no-timeout", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "Nothing ends the call of shop to stock: neither an attempt nor the whole of it has a timeout.",
			Fix:     "Set policy.timeout of shop → stock to 9s.",
			Figures: []chain.Figure{{"policy.timeout", "not set"}, {"policy.attemptTimeout", "not set"}},
		},
	},
	{
		name: "endless attempts",
		breaks: func(c *chain.Chain, first *chain.Call) {
			first.Policy.Timeout, first.Policy.MaxAttempts, c.MaxCalls = 0, -1, -1
		},
		near: func(c *chain.Chain, first *chain.Call) {
			first.Policy.Timeout = time.Minute
			c.Services[0].Limit = time.Hour
		},
		want: chain.Finding{
			Rule: "no-timeout", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "Nothing ends the call of shop to stock: its attempts are bounded, but not their number.",
			Fix:     "Set policy.timeout of shop → stock to 9s.",
			Figures: []chain.Figure{{"policy.timeout", "not set"}, {"policy.maxAttempts", "none"}},
		},
	},
	{
		name: "endless waits",
		breaks: func(c *chain.Chain, first *chain.Call) {
			first.Policy.Timeout, first.Policy.MaxWait, c.Services[0].Limit = 0, -1, 0
		},
		near: func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 0 },
		want: chain.Finding{
			Rule: "no-timeout", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "Nothing ends the call of shop to stock: it waits between its attempts for as long as stock asks for.",
			Fix:     "Set policy.timeout of shop → stock to 3.9s.",
			Figures: []chain.Figure{{"policy.timeout", "not set"}, {"policy.maxWait", "none"}},
		},
	},
	{
		name:   "the limit of its caller",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.Timeout = 10 * time.Second },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.Timeout = 10*time.Second - 1 },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "The call of shop to stock may take 10s, but shop works on a request for 10s only.",
			Fix:     "Lower policy.timeout of shop → stock from 10s to 9s.",
			Figures: []chain.Figure{{"policy.timeout", "10s"}, {"shop: limit", "10s"}},
		},
	},
	{
		name: "one attempt of its caller",
		breaks: func(c *chain.Chain, _ *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "disk", Policy: once(time.Second)}}
			c.Services = append(c.Services, chain.Service{Name: "disk"})
		},
		near: func(c *chain.Chain, _ *chain.Call) { c.Services[1].Calls[0].Policy.Timeout = time.Second - 1 },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "stock", To: "disk", Call: 0, Field: "policy.timeout",
			Text:    "The call of stock to disk may take 1s, but shop gives stock only 1s for an attempt.",
			Fix:     "Lower policy.timeout of stock → disk from 1s to 900ms.",
			Figures: []chain.Figure{{"policy.timeout", "1s"}, {"shop → stock: policy.attemptTimeout", "1s"}},
		},
	},
	{
		name:   "a limit above all callers",
		breaks: func(c *chain.Chain, _ *chain.Call) { c.Services[1].Limit = 5*time.Second + 1 },
		near:   func(c *chain.Chain, _ *chain.Call) { c.Services[1].Limit = 5 * time.Second },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "stock", Call: -1, Field: "limit",
			Text:    "stock works on a request for up to 5.000000001s, but no caller waits longer than 5s.",
			Fix:     "Lower limit of stock from 5.000000001s to 5s.",
			Figures: []chain.Figure{{"limit", "5.000000001s"}, {"shop → stock: policy.timeout", "5s"}},
		},
	},
	{
		name:   "waits that the service asks for",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.Timeout = 0 },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 2 * time.Second },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "The call of shop to stock may take 2m27s: it has no timeout of its own, 3 attempts of 1s, and waits as long as stock may ask for. But shop works on a request for 10s only.",
			Fix:     "Set policy.timeout of shop → stock to 9s.",
			Figures: []chain.Figure{{"policy.timeout", "2m27s"}, {"shop: limit", "10s"}},
		},
	},
	{
		name:   "four",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxAttempts, first.Policy.Timeout = 4, 4700*ms-1 },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.Timeout = 4700 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "4 attempts of 1s at stock and the waits between them take up to 4.7s, but the call ends after 4.699999999s: only 3 fit.",
			Fix:     "Lower policy.maxAttempts of shop → stock from 4 to 3.",
			Figures: []chain.Figure{{"policy.maxAttempts", "4"}, {"policy.attemptTimeout", "1s"}, {"longest waits", "700ms"}, {"policy.timeout", "4.699999999s"}},
		},
	},
	{
		name:   "no bound on one",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 0 },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 1500 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "The first of 3 attempts at stock may take all of the 5s that the call has, so that no other is made when stock hangs.",
			Fix:     "Set policy.attemptTimeout of shop → stock to 1.5s.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.attemptTimeout", "not set"}, {"longest waits", "300ms"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "too long for two",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 4950 * ms },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 1500 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "3 attempts of 4.95s at stock and the waits between them take up to 15.15s, but the call ends after 5s: only 1 fits.",
			Fix:     "Lower policy.attemptTimeout of shop → stock from 4.95s to 1.5s.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.attemptTimeout", "4.95s"}, {"longest waits", "300ms"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "a least time that is not left",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.MinAttempt = 2701 * ms },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.MinAttempt = 2700 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "3 attempts of 1s at stock and the waits between them take up to 5.001s, of which the last must have at least 2.701s, but the call ends after 5s: only 2 fit.",
			Fix:     "Lower policy.maxAttempts of shop → stock from 3 to 2.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.attemptTimeout", "1s"}, {"policy.minAttempt", "2.701s"}, {"longest waits", "300ms"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "as long as the call",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 5 * time.Second },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 5*time.Second - 1 },
		want: chain.Finding{
			Rule: "max-wait-beyond-deadline", Service: "shop", To: "stock", Call: 0, Field: "policy.maxWait",
			Text:    "stock may ask shop to wait for 5s, but the whole call ends after 5s.",
			Fix:     "Lower policy.maxWait of shop → stock from 5s to 2.5s, or leave it out.",
			Figures: []chain.Figure{{"policy.maxWait", "5s"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "no limit",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxWait = -1 },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 0 },
		want: chain.Finding{
			Rule: "max-wait-beyond-deadline", Service: "shop", To: "stock", Call: 0, Field: "policy.maxWait",
			Text:    "stock may ask shop to wait for as long as it likes, but the whole call ends after 5s.",
			Fix:     "Lower policy.maxWait of shop → stock from none to 2.5s, or leave it out.",
			Figures: []chain.Figure{{"policy.maxWait", "none"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "as long as the call",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 5 * time.Second },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 200 * ms },
		want: chain.Finding{
			Rule: "cap-beyond-total", Service: "shop", To: "stock", Call: 0, Field: "policy.backoff.max",
			Text:    "The waits of shop before it tries stock again are capped at 5s, but the whole call ends after 5s.",
			Fix:     "Lower policy.backoff.max of shop → stock from 5s to 200ms.",
			Figures: []chain.Figure{{"policy.backoff.max", "5s"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "two waits",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 201 * ms },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 200 * ms },
		want: chain.Finding{
			Rule: "cap-never-reached", Service: "shop", To: "stock", Call: 0, Field: "policy.backoff.max",
			Text:    "The waits of shop before it tries stock again are capped at 201ms, but with 3 attempts the longest is 200ms.",
			Fix:     "Lower policy.backoff.max of shop → stock from 201ms to 200ms.",
			Figures: []chain.Figure{{"policy.backoff.max", "201ms"}, {"policy.maxAttempts", "3"}, {"longest wait", "200ms"}},
		},
	},
	{
		name:   "less than twice",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.P99 = 501 * ms },
		near:   func(_ *chain.Chain, first *chain.Call) { first.P99 = 500 * ms },
		want: chain.Finding{
			Rule: "bound-near-p99", Service: "shop", To: "stock", Call: 0, Field: "policy.attemptTimeout",
			Text:    "An attempt of shop at stock may take 1s, which is less than twice its p99 of 501ms.",
			Fix:     "Raise policy.attemptTimeout of shop → stock from 1s to 1.503s, three times the p99.",
			Figures: []chain.Figure{{"policy.attemptTimeout", "1s"}, {"p99", "501ms"}},
		},
	},
	{
		name:   "more has to change",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.P99, first.Policy.AttemptTimeout = 800*ms, 1500*ms },
		near:   func(_ *chain.Chain, first *chain.Call) { first.P99 = 750 * ms },
		want: chain.Finding{
			Rule: "bound-near-p99", Service: "shop", To: "stock", Call: 0, Field: "policy.attemptTimeout",
			Text:    "An attempt of shop at stock may take 1.5s, which is less than twice its p99 of 800ms.",
			Fix:     "Raise policy.attemptTimeout of shop → stock from 1.5s to 2.4s, three times the p99, and what is above accordingly.",
			Figures: []chain.Figure{{"policy.attemptTimeout", "1.5s"}, {"p99", "800ms"}},
		},
	},
	{
		name:   "more than ten times",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.P99, first.Policy.AttemptTimeout = 110*ms, 1101*ms },
		near:   func(_ *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 1100 * ms },
		want: chain.Finding{
			Rule: "bound-far-above-p99", Service: "shop", To: "stock", Call: 0, Field: "policy.attemptTimeout",
			Text:    "An attempt of shop at stock may take 1.101s, which is more than ten times its p99 of 110ms.",
			Fix:     "Lower policy.attemptTimeout of shop → stock from 1.101s to 1s.",
			Figures: []chain.Figure{{"policy.attemptTimeout", "1.101s"}, {"p99", "110ms"}},
		},
	},
}
