package chain_test

import (
	"time"

	"github.com/riprap-go/riprap/chain"
)

var breachesOfKeys = []breach{
	{
		name: "its own limit",
		breaks: func(c *chain.Chain, _ *chain.Call) {
			c.Services[1].Limit, c.Services[1].Lease = 2*time.Second, 2*time.Second-1
		},
		near: func(c *chain.Chain, _ *chain.Call) { c.Services[1].Lease = 2 * time.Second },
		want: chain.Finding{
			Rule: "lease-shorter-than-limit", Service: "stock", Call: -1, Field: "lease",
			Text:    "stock works on a request for up to 2s, but holds its key for 1.999999999s only.",
			Fix:     "Raise lease of stock from 1.999999999s to 2s.",
			Figures: []chain.Figure{{"lease", "1.999999999s"}, {"limit", "2s"}},
		},
	},
	{
		name:   "its caller's patience",
		breaks: func(c *chain.Chain, _ *chain.Call) { c.Services[1].Lease = 999 * ms },
		near:   func(c *chain.Chain, _ *chain.Call) { c.Services[1].Lease = time.Second },
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
		near:   func(c *chain.Chain, _ *chain.Call) { c.Services[1].Retention = 5 * time.Second },
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
		breaks: func(c *chain.Chain, _ *chain.Call) {
			c.Services[0].Calls[0].Keyed, c.Services[1].Calls[0].Keyed, c.Services[2].Retention = true, true, time.Hour-1
		},
		near: func(c *chain.Chain, _ *chain.Call) { c.Services[2].Retention = time.Hour },
		want: chain.Finding{
			Rule: "retention-shorter-than-retries", Service: "c", Call: -1, Field: "retention",
			Text:    "c forgets an answer after 59m59.999999999s, but a may send its key again for 1h.",
			Fix:     "Raise retention of c from 59m59.999999999s to at least 1h; 24h leave room for a person who tries again.",
			Figures: []chain.Figure{{"retention", "59m59.999999999s"}, {"a → b: policy.timeout", "1h"}},
		},
	},
}
