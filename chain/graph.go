package chain

import "slices"

// A graph is a chain whose names are looked up, and an order in which callers come before those whom they call.
type graph struct {
	*Chain
	nodes []node  // as Services
	edges []*edge // all calls of the services that count, in their order
	order []int   // services, callers first, as far as no cycle is in the way
}

type node struct {
	in, out   []*edge // in without those that close a cycle and without those of duplicates
	window    window  // the time it has, once the order is judged
	disorder  bool    // its limit takes part in a finding about the order of timeouts
	duplicate bool    // a service of the same name comes before it: this one does not count
}

// An edge is a call between two services, with what the rules that have looked at it know.
type edge struct {
	*Call
	from, call int // the index of the caller, and that among its calls
	to         int // the index of the service called, -1 if it is unknown

	cycle    []string // the services from to back to from, if this call is the one that leads back; the middle may be left out
	endless  bool     // nothing ends it: found
	disorder bool     // takes part in a finding about the order of timeouts
	unfit    bool     // its attempts do not fit: found
	fitting  int      // how many of its attempts fit
	counted  int      // how many of them count where retries multiply
}

func newGraph(c *Chain) *graph {
	g := &graph{Chain: c, nodes: make([]node, len(c.Services))}
	byName := make(map[string]int, len(c.Services))
	for i, s := range c.Services {
		if _, g.nodes[i].duplicate = byName[s.Name]; !g.nodes[i].duplicate {
			byName[s.Name] = i
		}
	}
	called := make([]bool, len(c.Services))
	for i := range c.Services {
		if g.nodes[i].duplicate {
			continue
		}
		calls := c.Services[i].Calls
		for j := range calls {
			e := &edge{Call: &calls[j], from: i, call: j, to: -1}
			if to, known := byName[calls[j].To]; known {
				e.to = to
				called[to] = called[to] || to != i
			}
			g.nodes[i].out = append(g.nodes[i].out, e)
			g.edges = append(g.edges, e)
		}
	}
	g.sort(called)
	return g
}

// sort finds the order, from those whom nobody calls and then from what only a cycle leads to, and the calls that lead back.
func (g *graph) sort(called []bool) {
	const onWay, done = 1, 2
	state := make([]int, len(g.nodes))
	var way []string
	place := make([]int, len(g.nodes)) // of a service on the way
	var visit func(int)
	visit = func(i int) {
		state[i] = onWay
		place[i] = len(way)
		way = append(way, g.name(i))
		for _, e := range g.nodes[i].out {
			switch {
			case e.to < 0:
			case state[e.to] == onWay:
				e.cycle = shorten(way[place[e.to]:])
			default:
				if state[e.to] == 0 {
					visit(e.to)
				}
				g.nodes[e.to].in = append(g.nodes[e.to].in, e)
			}
		}
		way = way[:len(way)-1]
		state[i] = done
		g.order = append(g.order, i)
	}
	for _, cyclesToo := range []bool{false, true} {
		for i := range g.nodes {
			if state[i] == 0 && !g.nodes[i].duplicate && (cyclesToo || !called[i]) {
				visit(i)
			}
		}
	}
	slices.Reverse(g.order)
}

// name returns that of the service with an index.
func (g *graph) name(i int) string { return g.Services[i].Name }

// place names a call.
func (g *graph) place(e *edge) string { return g.name(e.from) + " → " + e.To }
