package manifest

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap/chain"
)

// free is how keys of the file begin that mean nothing by themselves: for anchors.
const free = "x-"

// chain reads the document.
func (r *reader) chain(root *yaml.Node) {
	c, named := &r.Chain, false
	fields := []field{
		{"services", func(n *yaml.Node, path []string) { named = true; r.services(n, path) }},
		{"maxCalls", r.count(&c.MaxCalls, 1)},
		{"proxy", r.proxying},
	}
	if root.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(root.Content); i += 2 {
			if name := root.Content[i].Value; strings.HasPrefix(name, free) {
				fields = append(fields, field{name, func(*yaml.Node, []string) {}})
			}
		}
	}
	if r.object(root, nil, "the file", fields...) && !named {
		r.failf(root, `the file has no "services"`)
	}
	r.together()
	r.front()
}

func (r *reader) services(n *yaml.Node, path []string) {
	pairs, ok := r.pairs(n, "services")
	if ok && len(pairs) == 0 {
		r.failf(n, "services: want one at least, got none")
	}
	for _, p := range pairs {
		if !isName(p.key.Value) {
			r.failf(p.key, "a service: %s", noName)
			continue
		}
		r.enter(p, within(path, p.key.Value), r.service)
	}
}

func index(i int) string { return strconv.Itoa(i) }

// within is a path and one more step.
func within(path []string, step string) []string { return append(path[:len(path):len(path)], step) }

// service reads one service. Nothing behind its name is a service that has no figures and calls nobody.
func (r *reader) service(n *yaml.Node, path []string) {
	s := chain.Service{Name: path[len(path)-1]}
	var block *yaml.Node
	if n = follow(n); n.ShortTag() != "!!null" {
		r.object(n, path, "a service",
			field{"limit", r.limit(&s.Limit)},
			field{"lease", r.duration(&s.Lease)},
			field{"retention", r.duration(&s.Retention)},
			field{"calls", func(n *yaml.Node, path []string) { s.Calls = r.calls(n, path) }},
			field{"proxy", func(n *yaml.Node, _ []string) { block = n }},
		)
	}
	if block != nil { // after the figures of the service, which may stand behind it
		p := Proxy{Service: s.Name, Lease: s.Lease, Retention: s.Retention}
		r.proxy(&p)(block, within(path, "proxy"))
		r.Proxies = append(r.Proxies, p)
	}
	s.Limit = max(s.Limit, 0) // of a service, none is what leaving it out means
	r.Chain.Services = append(r.Chain.Services, s)
}

func (r *reader) calls(n *yaml.Node, path []string) (calls []chain.Call) {
	if n = follow(n); n.Kind != yaml.SequenceNode {
		r.failf(n, "calls: want a list, with - to: NAME for each service called, got %s", kind(n))
		return nil
	}
	for i, item := range n.Content {
		if r.spent(item) {
			break
		}
		calls = append(calls, r.call(item, within(path, index(i))))
	}
	return calls
}

func (r *reader) call(n *yaml.Node, path []string) (c chain.Call) {
	target := follow(n)
	r.places[key(path)] = target
	told := false
	ok := r.object(target, path, "a call",
		field{"to", func(n *yaml.Node, to []string) {
			told = true
			r.text(&c.To)(n, to)
			r.places[key(path)] = follow(n) // what is left out of a call is marked at whom it calls
		}},
		field{"p99", r.duration(&c.P99)},
		field{"idempotent", r.yes(&c.Idempotent)},
		field{"keyed", r.yes(&c.Keyed)},
		field{"policy", r.policy(&c.Policy)},
	)
	if ok && !told {
		r.failf(n, `a call without "to", the name of the service called`)
	}
	return c
}
