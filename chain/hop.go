package chain

import "time"

// A Hop is a line of the picture of a chain: a service, and the call that leads to it.
type Hop struct {
	Depth   int    // how many calls lead here, 0 at the top
	From    string // the service that calls, empty at the top
	Call    int    // the index of the call among those of From, -1 at the top
	Service string // the service called; it may be unknown to the chain

	// Left is the time for the request here in the worst case: on the way, each attempt but the last took all of its
	// bound and each wait was as long as the backoff may make it. It is math.MaxInt64 if nothing bounds it. A caller to
	// which several ways lead begins with the least that one of them leaves it.
	Left time.Duration

	// Calls is how many calls arrive here for one at the top if all fail, at most math.MaxInt. Of several ways it is
	// that with the most.
	Calls int

	// Again says that what the service calls is not repeated below this hop: it stands above already, or the call
	// leads back to a service on the way here.
	Again bool
}

// Hops returns the picture of c, from each service that nobody calls down to the last, depth first, in the order of
// the chain. Each call is one hop, however many ways lead to it.
func (c *Chain) Hops() []Hop {
	g := newGraph(c)
	top := Hop{Call: -1, Left: forever, Calls: 1}
	at := make([]Hop, len(g.nodes)) // the worst at each service
	for i := range at {
		at[i] = Hop{Left: forever}
	}
	for _, i := range g.order {
		if len(g.nodes[i].in) == 0 {
			at[i] = top
		}
		at[i].Left = min(at[i].Left, limit(c.Services[i].Limit))
		for _, e := range g.nodes[i].out {
			if e.to >= 0 && e.cycle == nil {
				h := g.hop(e, at[i])
				at[e.to].Left = min(at[e.to].Left, h.Left)
				at[e.to].Calls = max(at[e.to].Calls, h.Calls)
			}
		}
	}

	var hops []Hop
	drawn := make([]bool, len(g.nodes))
	var draw func(i int, h Hop)
	draw = func(i int, h Hop) {
		if i >= 0 {
			h.Left = min(h.Left, limit(c.Services[i].Limit))
			h.Again = drawn[i] && len(g.nodes[i].out) > 0
		}
		hops = append(hops, h)
		if i < 0 || drawn[i] {
			return
		}
		drawn[i] = true
		for _, e := range g.nodes[i].out {
			below := g.hop(e, at[i])
			below.Depth = h.Depth + 1
			draw(e.to, below)
		}
	}
	for i, n := range g.nodes {
		if len(n.in) == 0 && !n.duplicate {
			h := top
			h.Service = g.name(i)
			draw(i, h)
		}
	}
	return hops
}

// hop returns what a call makes of the worst at its caller.
func (g *graph) hop(e *edge, caller Hop) Hop {
	h := Hop{From: g.name(e.from), Call: e.call, Service: e.To, Calls: product(caller.Calls, e.attempts())}
	h.Left = e.attempt()
	if total := min(e.timeout(), caller.Left); total != forever {
		last := e.last(total, max(e.Policy.MinAttempt, 1))
		h.Left = min(h.Left, total-e.begins(last, 0))
	}
	return h
}
