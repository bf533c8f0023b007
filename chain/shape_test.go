package chain_test

import (
	"github.com/riprap-go/riprap/chain"
)

var breachesOfShape = []breach{
	{
		name:   "a name with an error in it",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.To = "stok" },
		near:   func(_ *chain.Chain, first *chain.Call) { first.To = "stock" },
		want: chain.Finding{
			Rule: "unknown-service", Service: "shop", To: "stok", Call: 0, Field: "to",
			Text:    "shop calls \"stok\", and no service has that name.",
			Fix:     "Add a service \"stok\", if only with its name, or correct the name.",
			Figures: []chain.Figure{{"to", "stok"}},
		},
	},
	{
		name: "many calls of it",
		breaks: func(c *chain.Chain, _ *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "disk", Policy: once(ms)}, {To: "disk", Policy: once(2 * ms)}}
		},
		near: func(c *chain.Chain, _ *chain.Call) { c.Services = append(c.Services, chain.Service{Name: "disk"}) },
		want: chain.Finding{
			Rule: "unknown-service", Service: "stock", To: "disk", Call: 0, Field: "to",
			Text:    "stock calls \"disk\", as does 1 other call, and no service has that name.",
			Fix:     "Add a service \"disk\", if only with its name, or correct the name.",
			Figures: []chain.Figure{{"to", "disk"}},
		},
	},
	{
		name:   "no name",
		breaks: func(_ *chain.Chain, first *chain.Call) { first.To = "" },
		near:   func(_ *chain.Chain, first *chain.Call) { first.To = "stock" },
		want: chain.Finding{
			Rule: "unknown-service", Service: "shop", To: "", Call: 0, Field: "to",
			Text:    "shop calls \"\", and no service has that name.",
			Fix:     "Name the service that is called.",
			Figures: []chain.Figure{{"to", ""}},
		},
	},
	{
		name: "the same name twice",
		breaks: func(c *chain.Chain, _ *chain.Call) {
			c.Services = append(c.Services, chain.Service{Name: "stock", Calls: nil})
		},
		near: func(c *chain.Chain, _ *chain.Call) {
			c.Services[2].Name, c.Services[1].Calls = "disk", []chain.Call{{To: "disk", Policy: once(ms)}}
		},
		want: chain.Finding{
			Rule: "duplicate-service", Service: "stock", Call: -1,
			Text:    "A service before this one has the name \"stock\" too.",
			Fix:     "Give one of them another name, or join what they call.",
			Figures: []chain.Figure{{"name", "stock"}},
		},
	},
	{
		name: "back to the first",
		breaks: func(c *chain.Chain, _ *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "shop", Policy: once(ms)}}
		},
		near: func(c *chain.Chain, _ *chain.Call) {
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
		breaks: func(c *chain.Chain, _ *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "stock", Policy: once(ms)}}
		},
		near: func(c *chain.Chain, _ *chain.Call) {
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
		breaks: func(c *chain.Chain, _ *chain.Call) { c.Services = append(c.Services, chain.Service{Name: "disk"}) },
		near: func(c *chain.Chain, _ *chain.Call) {
			c.Services[1].Calls = []chain.Call{{To: "disk", Policy: once(ms)}}
		},
		want: chain.Finding{
			Rule: "unreachable", Service: "disk", Call: -1,
			Text:    "Nobody calls disk, and it calls nobody.",
			Fix:     "Remove disk, or add the calls that lead to it.",
			Figures: []chain.Figure{{"name", "disk"}},
		},
	},
}
