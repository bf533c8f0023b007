package chain

import (
	"cmp"
	"slices"
)

// Check returns what cannot work in c, in the order of its services and calls, nil if all is fine. Where one finding
// follows from another, only the other is returned: a chain in which two timeouts were exchanged has one finding.
//
// It takes time in proportion to the size of c, whatever the number of ways through it. A figure of which zero means
// riprap's default is not blamed for the default: nobody chose it.
func Check(c *Chain) []Finding {
	k := &checker{graph: newGraph(c)}
	k.shape()
	k.outOfOrder()
	for _, e := range k.edges {
		k.untimed(e)
		if e.retries() {
			k.fit(e) // first: what follows from too many attempts is left to it
			k.waits(e)
			k.retry(e)
		}
		k.latency(e)
	}
	k.multiplied()
	k.leases()
	k.retentions()

	slices.SortStableFunc(k.found, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Call, b.Call), cmp.Compare(number(a.Rule), number(b.Rule)))
	})
	var findings []Finding
	for _, f := range k.found {
		findings = append(findings, f.Finding)
	}
	return findings
}

// A checker goes over a graph and notes what it finds, and where other rules need not look any more.
type checker struct {
	*graph
	found []located
}

type located struct {
	at int // the service's index
	Finding
}

// atService notes a finding about the service with an index, atCall one about a call.
func (k *checker) atService(at int, rule, field, text, fix string, figures ...Figure) {
	k.found = append(k.found, located{at, Finding{
		Rule: rule, Service: k.Services[at].Name, Call: -1, Field: field,
		Text: text, Why: rules[number(rule)].Why, Fix: fix, Figures: figures,
	}})
}

func (k *checker) atCall(e *edge, rule, field, text, fix string, figures ...Figure) {
	k.atService(e.from, rule, field, text, fix, figures...)
	f := &k.found[len(k.found)-1]
	f.To, f.Call = e.To, e.call
}
