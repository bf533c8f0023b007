package chain_test

import (
	"math"
	"slices"
	"strings"
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

// Each rule is broken by the first chain, and not by the second, which differs from it by as little as can be.
var broken = []struct {
	name         string
	breaks, near func(*chain.Chain, *chain.Call)
	chain        func() *chain.Chain // nil means pair
	want         chain.Finding
}{
	{
		name:   "a name with an error in it",
		breaks: func(c *chain.Chain, first *chain.Call) { first.To = "stok" },
		near:   func(c *chain.Chain, first *chain.Call) { first.To = "stock" },
		want: chain.Finding{
			Rule: "unknown-service", Service: "shop", To: "stok", Call: 0, Field: "to",
			Text:    "shop calls \"stok\", and no service has that name.",
			Fix:     "Add a service \"stok\", if only with its name, or correct the name.",
			Figures: []chain.Figure{{"to", "stok"}},
		},
	},
	{
		name: "many calls of it",
		breaks: func(c *chain.Chain, first *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "disk", Policy: once(ms)}, {To: "disk", Policy: once(2 * ms)}}
		},
		near: func(c *chain.Chain, first *chain.Call) { c.Services = append(c.Services, chain.Service{Name: "disk"}) },
		want: chain.Finding{
			Rule: "unknown-service", Service: "stock", To: "disk", Call: 0, Field: "to",
			Text:    "stock calls \"disk\", as does 1 other call, and no service has that name.",
			Fix:     "Add a service \"disk\", if only with its name, or correct the name.",
			Figures: []chain.Figure{{"to", "disk"}},
		},
	},
	{
		name:   "no name",
		breaks: func(c *chain.Chain, first *chain.Call) { first.To = "" },
		near:   func(c *chain.Chain, first *chain.Call) { first.To = "stock" },
		want: chain.Finding{
			Rule: "unknown-service", Service: "shop", To: "", Call: 0, Field: "to",
			Text:    "shop calls \"\", and no service has that name.",
			Fix:     "Name the service that is called.",
			Figures: []chain.Figure{{"to", ""}},
		},
	},
	{
		name: "the same name twice",
		breaks: func(c *chain.Chain, first *chain.Call) {
			c.Services = append(c.Services, chain.Service{Name: "stock", Calls: nil})
		},
		near: func(c *chain.Chain, first *chain.Call) {
			c.Services[2].Name, c.Services[1].Calls = "disk", []chain.Call{{To: "disk", Policy: once(ms)}}
		},
		want: chain.Finding{
			Rule: "duplicate-service", Service: "stock", Call: -1,
			Text:    "There is a service \"stock\" before this one.",
			Fix:     "Give one of the two another name, or join what they call.",
			Figures: []chain.Figure{{"name", "stock"}},
		},
	},
	{
		name: "back to the first",
		breaks: func(c *chain.Chain, first *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "shop", Policy: once(ms)}}
		},
		near: func(c *chain.Chain, first *chain.Call) {
			c.Services = append(c.Services, chain.Service{Name: "disk"})
			c.Services[1].Calls[0].To = "disk"
		},
		want: chain.Finding{
			Rule: "cycle", Service: "stock", To: "shop", Call: 0, Field: "to",
			Text:    "stock calls shop, which a request has passed before: shop → stock → shop.",
			Fix:     "Remove one of these calls, or hand the work to a queue there; stock → shop is the one that leads back.",
			Figures: []chain.Figure{{"cycle", "shop → stock → shop"}},
		},
	},
	{
		name: "to itself",
		breaks: func(c *chain.Chain, first *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "stock", Policy: once(ms)}}
		},
		near: func(c *chain.Chain, first *chain.Call) {
			c.Services = append(c.Services, chain.Service{Name: "disk"})
			c.Services[1].Calls[0].To = "disk"
		},
		want: chain.Finding{
			Rule: "cycle", Service: "stock", To: "stock", Call: 0, Field: "to",
			Text:    "stock calls itself.",
			Fix:     "Remove this call of stock, or hand the work to a queue.",
			Figures: []chain.Figure{{"cycle", "stock → stock"}},
		},
	},
	{
		name:   "nobody's service",
		breaks: func(c *chain.Chain, first *chain.Call) { c.Services = append(c.Services, chain.Service{Name: "disk"}) },
		near: func(c *chain.Chain, first *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "disk", Policy: once(ms)}}
		},
		want: chain.Finding{
			Rule: "unreachable", Service: "disk", Call: -1,
			Text:    "Nobody calls disk, and it calls nobody.",
			Fix:     "Remove disk, or add the calls that lead to it.",
			Figures: []chain.Figure{{"name", "disk"}},
		},
	},
	{
		name: "neither of the two",
		breaks: func(c *chain.Chain, first *chain.Call) {
			first.Policy.Timeout, first.Policy.AttemptTimeout, first.Policy.MaxAttempts = 0, 0, 1
		},
		near: func(c *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = time.Second },
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
		near: func(c *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 0 },
		want: chain.Finding{
			Rule: "no-timeout", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "Nothing ends the call of shop to stock: it waits between its attempts for as long as stock asks for.",
			Fix:     "Set policy.timeout of shop → stock to 3.9s.",
			Figures: []chain.Figure{{"policy.timeout", "not set"}, {"policy.maxWait", "none"}},
		},
	},
	{
		name:   "the limit of its caller",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.Timeout = 10 * time.Second },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.Timeout = 10*time.Second - 1 },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "The call of shop to stock may take 10s, but shop works on a request for 10s only.",
			Fix:     "Lower policy.timeout of shop → stock from 10s to 9s.",
			Figures: []chain.Figure{{"policy.timeout", "10s"}, {"shop: limit", "10s"}},
		},
	},
	{
		name: "one attempt of its caller",
		breaks: func(c *chain.Chain, first *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "disk", Policy: once(time.Second)}}
			c.Services = append(c.Services, chain.Service{Name: "disk"})
		},
		near: func(c *chain.Chain, first *chain.Call) { c.Services[1].Calls[0].Policy.Timeout = time.Second - 1 },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "stock", To: "disk", Call: 0, Field: "policy.timeout",
			Text:    "The call of stock to disk may take 1s, but shop gives stock only 1s for an attempt.",
			Fix:     "Lower policy.timeout of stock → disk from 1s to 900ms.",
			Figures: []chain.Figure{{"policy.timeout", "1s"}, {"shop → stock: policy.attemptTimeout", "1s"}},
		},
	},
	{
		name:   "a limit above all callers",
		breaks: func(c *chain.Chain, first *chain.Call) { c.Services[1].Limit = 5*time.Second + 1 },
		near:   func(c *chain.Chain, first *chain.Call) { c.Services[1].Limit = 5 * time.Second },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "stock", Call: -1, Field: "limit",
			Text:    "stock works on a request for up to 5.000000001s, but no caller waits longer than 5s.",
			Fix:     "Lower limit of stock from 5.000000001s to 5s.",
			Figures: []chain.Figure{{"limit", "5.000000001s"}, {"shop → stock: policy.timeout", "5s"}},
		},
	},
	{
		name:   "waits that the service asks for",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.Timeout = 0 },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 2 * time.Second },
		want: chain.Finding{
			Rule: "callee-outlives-caller", Service: "shop", To: "stock", Call: 0, Field: "policy.timeout",
			Text:    "The call of shop to stock may take 2m27s: it has no timeout of its own, 3 attempts of 1s, and waits as long as stock may ask for. But shop works on a request for 10s only.",
			Fix:     "Set policy.timeout of shop → stock to 9s.",
			Figures: []chain.Figure{{"policy.timeout", "2m27s"}, {"shop: limit", "10s"}},
		},
	},
	{
		name:   "four",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.MaxAttempts, first.Policy.Timeout = 4, 4700*ms-1 },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.Timeout = 4700 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "4 attempts of 1s at stock and the waits between them take up to 4.7s, but the call ends after 4.699999999s: only 3 fit.",
			Fix:     "Lower policy.maxAttempts of shop → stock from 4 to 3.",
			Figures: []chain.Figure{{"policy.maxAttempts", "4"}, {"policy.attemptTimeout", "1s"}, {"longest waits", "700ms"}, {"policy.timeout", "4.699999999s"}},
		},
	},
	{
		name:   "no bound on one",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 0 },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 1500 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "The first of 3 attempts at stock may take all of the 5s that the call has, so that no other is made when stock hangs.",
			Fix:     "Set policy.attemptTimeout of shop → stock to 1.5s.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.attemptTimeout", "not set"}, {"longest waits", "300ms"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "too long for two",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 4950 * ms },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 1500 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "3 attempts of 4.95s at stock and the waits between them take up to 15.15s, but the call ends after 5s: only 1 fits.",
			Fix:     "Lower policy.attemptTimeout of shop → stock from 4.95s to 1.5s.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.attemptTimeout", "4.95s"}, {"longest waits", "300ms"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "a least time that is not left",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.MinAttempt = 2701 * ms },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.MinAttempt = 2700 * ms },
		want: chain.Finding{
			Rule: "attempts-do-not-fit", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "3 attempts of 1s at stock and the waits between them take up to 5.001s, of which the last must have at least 2.701s, but the call ends after 5s: only 2 fit.",
			Fix:     "Lower policy.maxAttempts of shop → stock from 3 to 2.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.attemptTimeout", "1s"}, {"policy.minAttempt", "2.701s"}, {"longest waits", "300ms"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "as long as the call",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 5 * time.Second },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 5*time.Second - 1 },
		want: chain.Finding{
			Rule: "max-wait-beyond-deadline", Service: "shop", To: "stock", Call: 0, Field: "policy.maxWait",
			Text:    "stock may ask shop to wait for 5s, but the whole call ends after 5s.",
			Fix:     "Lower policy.maxWait of shop → stock from 5s to 2.5s, or leave it out.",
			Figures: []chain.Figure{{"policy.maxWait", "5s"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "no limit",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.MaxWait = -1 },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.MaxWait = 0 },
		want: chain.Finding{
			Rule: "max-wait-beyond-deadline", Service: "shop", To: "stock", Call: 0, Field: "policy.maxWait",
			Text:    "stock may ask shop to wait for as long as it likes, but the whole call ends after 5s.",
			Fix:     "Lower policy.maxWait of shop → stock from none to 2.5s, or leave it out.",
			Figures: []chain.Figure{{"policy.maxWait", "none"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "as long as the call",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 5 * time.Second },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 200 * ms },
		want: chain.Finding{
			Rule: "cap-beyond-total", Service: "shop", To: "stock", Call: 0, Field: "policy.backoff.max",
			Text:    "The waits of shop before it tries stock again are capped at 5s, but the whole call ends after 5s.",
			Fix:     "Lower policy.backoff.max of shop → stock from 5s to 200ms.",
			Figures: []chain.Figure{{"policy.backoff.max", "5s"}, {"policy.timeout", "5s"}},
		},
	},
	{
		name:   "two waits",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 201 * ms },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.Backoff.Max = 200 * ms },
		want: chain.Finding{
			Rule: "cap-never-reached", Service: "shop", To: "stock", Call: 0, Field: "policy.backoff.max",
			Text:    "The waits of shop before it tries stock again are capped at 201ms, but with 3 attempts the longest is 200ms.",
			Fix:     "Lower policy.backoff.max of shop → stock from 201ms to 200ms.",
			Figures: []chain.Figure{{"policy.backoff.max", "201ms"}, {"policy.maxAttempts", "3"}, {"longest wait", "200ms"}},
		},
	},
	{
		name:   "less than twice",
		breaks: func(c *chain.Chain, first *chain.Call) { first.P99 = 501 * ms },
		near:   func(c *chain.Chain, first *chain.Call) { first.P99 = 500 * ms },
		want: chain.Finding{
			Rule: "bound-near-p99", Service: "shop", To: "stock", Call: 0, Field: "policy.attemptTimeout",
			Text:    "An attempt of shop at stock may take 1s, which is less than twice its p99 of 501ms.",
			Fix:     "Raise policy.attemptTimeout of shop → stock from 1s to 1.503s, three times the p99.",
			Figures: []chain.Figure{{"policy.attemptTimeout", "1s"}, {"p99", "501ms"}},
		},
	},
	{
		name:   "more than ten times",
		breaks: func(c *chain.Chain, first *chain.Call) { first.P99, first.Policy.AttemptTimeout = 110*ms, 1101*ms },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.AttemptTimeout = 1100 * ms },
		want: chain.Finding{
			Rule: "bound-far-above-p99", Service: "shop", To: "stock", Call: 0, Field: "policy.attemptTimeout",
			Text:    "An attempt of shop at stock may take 1.101s, which is more than ten times its p99 of 110ms.",
			Fix:     "Lower policy.attemptTimeout of shop → stock from 1.101s to 1s.",
			Figures: []chain.Figure{{"policy.attemptTimeout", "1.101s"}, {"p99", "110ms"}},
		},
	},
	{
		name:   "none",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.Backoff.Jitter = riprap.None },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.Backoff.Jitter = riprap.Equal },
		want: chain.Finding{
			Rule: "no-jitter", Service: "shop", To: "stock", Call: 0, Field: "policy.backoff.jitter",
			Text:    "The waits of shop before it tries stock again are not random.",
			Fix:     "Change policy.backoff.jitter of shop → stock from none to full.",
			Figures: []chain.Figure{{"policy.backoff.jitter", "none"}},
		},
	},
	{
		name:   "none",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.Budget = nil },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.Budget = &riprap.Budget{} },
		want: chain.Finding{
			Rule: "no-budget", Service: "shop", To: "stock", Call: 0, Field: "policy.budget",
			Text:    "shop makes up to 3 attempts at stock for a call, and no budget limits how many of all calls do so.",
			Fix:     "Give shop → stock a policy.budget, one for all calls to stock: {ratio: 0.2, reserve: 10} is the default.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.budget", "none"}},
		},
	},
	{
		name:   "an unlimited one",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.Budget = &riprap.Budget{Ratio: math.Inf(1)} },
		near:   func(c *chain.Chain, first *chain.Call) { first.Policy.Budget.Parent = &riprap.Budget{} },
		want: chain.Finding{
			Rule: "no-budget", Service: "shop", To: "stock", Call: 0, Field: "policy.budget",
			Text:    "shop makes up to 3 attempts at stock for a call, and its budget, which is unlimited, does not limit how many of all calls do so.",
			Fix:     "Change policy.budget.ratio of shop → stock from unlimited to 0.2, one for all calls to stock.",
			Figures: []chain.Figure{{"policy.maxAttempts", "3"}, {"policy.budget", "unlimited"}},
		},
	},
	{
		name:   "a write",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Idempotent = false },
		near:   func(c *chain.Chain, first *chain.Call) { first.Keyed = true },
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
		breaks: func(c *chain.Chain, first *chain.Call) { c.MaxCalls = 11 },
		near:   func(c *chain.Chain, first *chain.Call) { c.MaxCalls = 12 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "c", To: "d", Call: 0, Field: "policy.maxAttempts",
			Text:    "While d is down, one call at a becomes 2 × 2 × 3 = 12 there, and at most 11 are allowed.",
			Fix:     "Lower policy.maxAttempts of c → d from 3 to 2.",
			Figures: []chain.Figure{{"a → b: policy.maxAttempts", "2"}, {"b → c: policy.maxAttempts", "2"}, {"c → d: policy.maxAttempts", "3"}, {"calls", "12"}, {"maxCalls", "11"}},
		},
	},
	{
		name:   "more than ten if nothing is said",
		chain:  func() *chain.Chain { return row(2, 2, 3) },
		breaks: func(c *chain.Chain, first *chain.Call) { c.MaxCalls = 0 },
		near:   func(c *chain.Chain, first *chain.Call) { c.MaxCalls = 12 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "c", To: "d", Call: 0, Field: "policy.maxAttempts",
			Text:    "While d is down, one call at a becomes 2 × 2 × 3 = 12 there, and at most 10 are allowed.",
			Fix:     "Lower policy.maxAttempts of c → d from 3 to 2.",
			Figures: []chain.Figure{{"a → b: policy.maxAttempts", "2"}, {"b → c: policy.maxAttempts", "2"}, {"c → d: policy.maxAttempts", "3"}, {"calls", "12"}, {"maxCalls", "10"}},
		},
	},
	{
		name:   "one layer",
		breaks: func(c *chain.Chain, first *chain.Call) { c.MaxCalls = 2 },
		near:   func(c *chain.Chain, first *chain.Call) { c.MaxCalls = 3 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "While stock is down, one call at shop becomes 3 there, and at most 2 are allowed.",
			Fix:     "Lower policy.maxAttempts of shop → stock from 3 to 2.",
			Figures: []chain.Figure{{"shop → stock: policy.maxAttempts", "3"}, {"calls", "3"}, {"maxCalls", "2"}},
		},
	},
	{
		name:   "without end",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Policy.MaxAttempts = -1 },
		near:   func(c *chain.Chain, first *chain.Call) { c.MaxCalls = -1 },
		want: chain.Finding{
			Rule: "retries-multiply", Service: "shop", To: "stock", Call: 0, Field: "policy.maxAttempts",
			Text:    "While stock is down, one call at shop becomes more than can be counted there, and at most 10 are allowed.",
			Fix:     "Lower policy.maxAttempts of shop → stock from none to 10.",
			Figures: []chain.Figure{{"shop → stock: policy.maxAttempts", "none"}, {"calls", "none"}, {"maxCalls", "10"}},
		},
	},
	{
		name: "its own limit",
		breaks: func(c *chain.Chain, first *chain.Call) {
			c.Services[1].Limit, c.Services[1].Lease = 2*time.Second, 2*time.Second-1
		},
		near: func(c *chain.Chain, first *chain.Call) { c.Services[1].Lease = 2 * time.Second },
		want: chain.Finding{
			Rule: "lease-shorter-than-limit", Service: "stock", Call: -1, Field: "lease",
			Text:    "stock works on a request for up to 2s, but holds its key for 1.999999999s only.",
			Fix:     "Raise lease of stock from 1.999999999s to 2s.",
			Figures: []chain.Figure{{"lease", "1.999999999s"}, {"limit", "2s"}},
		},
	},
	{
		name:   "its caller's patience",
		breaks: func(c *chain.Chain, first *chain.Call) { c.Services[1].Lease = 999 * ms },
		near:   func(c *chain.Chain, first *chain.Call) { c.Services[1].Lease = time.Second },
		want: chain.Finding{
			Rule: "lease-shorter-than-limit", Service: "stock", Call: -1, Field: "lease",
			Text:    "stock works on a request for as long as shop waits, up to 1s, but holds its key for 999ms only.",
			Fix:     "Raise lease of stock from 999ms to 1s.",
			Figures: []chain.Figure{{"lease", "999ms"}, {"shop → stock: policy.attemptTimeout", "1s"}},
		},
	},
	{
		name:   "a call with a key",
		breaks: func(c *chain.Chain, first *chain.Call) { first.Keyed, c.Services[1].Retention = true, 5*time.Second-1 },
		near:   func(c *chain.Chain, first *chain.Call) { c.Services[1].Retention = 5 * time.Second },
		want: chain.Finding{
			Rule: "retention-shorter-than-retries", Service: "stock", Call: -1, Field: "retention",
			Text:    "stock forgets an answer after 4.999999999s, but shop may send its key again for 5s.",
			Fix:     "Raise retention of stock from 4.999999999s to at least 5s; 24h leave room for a person who tries again.",
			Figures: []chain.Figure{{"retention", "4.999999999s"}, {"shop → stock: policy.timeout", "5s"}},
		},
	},
	{
		name:  "a key that is handed down",
		chain: func() *chain.Chain { return row(2, 1) },
		breaks: func(c *chain.Chain, first *chain.Call) {
			c.Services[0].Calls[0].Keyed, c.Services[1].Calls[0].Keyed, c.Services[2].Retention = true, true, time.Hour-1
		},
		near: func(c *chain.Chain, first *chain.Call) { c.Services[2].Retention = time.Hour },
		want: chain.Finding{
			Rule: "retention-shorter-than-retries", Service: "c", Call: -1, Field: "retention",
			Text:    "c forgets an answer after 59m59.999999999s, but a may send its key again for 1h.",
			Fix:     "Raise retention of c from 59m59.999999999s to at least 1h; 24h leave room for a person who tries again.",
			Figures: []chain.Figure{{"retention", "59m59.999999999s"}, {"a → b: policy.timeout", "1h"}},
		},
	},
}

func TestEachRuleFindsWhatBreaksItAndNothingLess(t *testing.T) {
	for _, test := range broken {
		t.Run(test.want.Rule+"/"+test.name, func(t *testing.T) {
			start := func() (*chain.Chain, *chain.Call) {
				if test.chain == nil {
					return pair()
				}
				c := test.chain()
				return c, call(c, 0)
			}
			c, first := start()
			test.breaks(c, first)
			got := chain.Check(c)
			why := slices.Collect(func(yield func(string) bool) {
				for _, r := range chain.Rules() {
					if r.ID == test.want.Rule {
						yield(r.Why)
					}
				}
			})
			want := test.want
			want.Why = strings.Join(why, "")
			if len(got) != 1 || got[0].Why != want.Why || written(got) != written([]chain.Finding{want}) {
				t.Errorf("Check =\n%swant\n%s", written(got), written([]chain.Finding{want}))
			}

			c, first = start()
			test.breaks(c, first)
			test.near(c, first)
			if got := chain.Check(c); got != nil {
				t.Errorf("Check of the nearest chain =\n%swant no findings", written(got))
			}
		})
	}
}

func TestEachRuleIsShownBroken(t *testing.T) {
	for _, rule := range chain.Rules() {
		shown := false
		for _, test := range broken {
			shown = shown || test.want.Rule == rule.ID
		}
		if !shown {
			t.Errorf("no chain shows what breaks %s", rule.ID)
		}
	}
}
