package manifest

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap"
)

// proxying reads what the proxies of a file have in common.
func (r *reader) proxying(n *yaml.Node, path []string) {
	p := &r.Proxying
	r.object(n, path, "proxy",
		field{"admin", r.address(&p.Admin, none)},
		field{"store", r.text(&p.Store)},
		field{"drain", r.limit(&p.Drain)},
	)
}

// proxy reads the proxy in front of a service.
func (r *reader) proxy(p *Proxy) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		keys, routes := newPatterns(UnsafeMethods), newPatterns(nil)
		ok := r.object(n, path, "a proxy",
			field{"listen", r.address(&p.Listen)},
			field{"to", r.target(&p.To)},
			field{"host", r.host(&p.Host)},
			field{"tlsCert", r.text(&p.TLSCert)},
			field{"tlsKey", r.text(&p.TLSKey)},
			field{"ca", r.text(&p.CA)},
			field{"policy", r.proxyPolicy(&p.Policy)},
			field{"connectTimeout", r.limit(&p.ConnectTimeout)},
			field{"silence", r.limit(&p.Silence)},
			field{"adaptive", r.yes(&p.Adaptive)},
			field{"maxReplay", r.size(&p.MaxReplay)},
			field{"routes", r.list("routes", func(n *yaml.Node, path []string) { r.route(p, routes, n, path) })},
			field{"requireKey", r.list("requireKey", func(n *yaml.Node, path []string) { r.keyPattern(&p.RequireKey, keys, n, path) })},
			field{"acceptKey", r.list("acceptKey", func(n *yaml.Node, path []string) { r.keyPattern(&p.AcceptKey, keys, n, path) })},
			field{"scope", r.scope(&p.Scope)},
			field{"upstreamKeys", r.yes(&p.UpstreamKeys)},
			field{"maxKeyedBody", r.bytes(&p.MaxKeyedBody)},
			field{"maxAnswer", r.bytes(&p.MaxAnswer)},
			field{"trust", r.trust(&p.Trust)},
			field{"maxHeader", r.bytes(&p.MaxHeader)},
			field{"maxBody", r.size(&p.MaxBody)},
			field{"maxConnections", r.count(&p.MaxConnections, 1)},
			field{"maxInFlight", r.count(&p.MaxInFlight, 1)},
		)
		if !ok {
			return
		}
		r.whole(path, p)
	}
}

// whole finds what is missing in a proxy, and what does not go together.
func (r *reader) whole(path []string, p *Proxy) {
	at := func(names ...string) *yaml.Node {
		for _, name := range names {
			if node, ok := r.places[key(within(path, name))]; ok {
				return node
			}
		}
		return r.places[key(path)]
	}
	written := func(name string) bool { _, ok := r.places[key(within(path, name))]; return ok }
	keyed := written("requireKey") || written("acceptKey")
	if !written("listen") {
		r.failf(at("listen"), `a proxy without "listen", the address that it takes requests at, such as 127.0.0.1:7070`)
	}
	if !written("to") {
		r.failf(at("to"), `a proxy without "to", the address of the service, such as http://127.0.0.1:9000`)
	}
	if written("tlsCert") != written("tlsKey") {
		r.failf(at("tlsCert", "tlsKey"), "tlsCert and tlsKey go together: want both files, or neither")
	}
	if keyed && !written("scope") {
		r.failf(at("requireKey", "acceptKey"), "a proxy that keeps keys needs a scope: header:NAME, the field that says whose they are, or single-tenant if everybody may see every answer")
	}
	service := path[:len(path)-1]
	if keyed && p.Lease > 0 && p.Lease < time.Millisecond {
		r.failf(r.places[key(within(service, "lease"))], "lease: want 1ms at least, for a proxy that keeps keys")
	}
	if keyed && p.Retention > 0 && p.Retention < time.Second {
		r.failf(r.places[key(within(service, "retention"))], "retention: want 1s at least, for a proxy that keeps keys")
	}
	if keyed && strings.Contains(p.Service, "/") {
		r.failf(r.places[key(service)], "service %q: the name of one that has keys is a part of their scope, and has no / in it", short(p.Service))
	}
}

// route reads a pattern, alone or with a policy.
func (r *reader) route(p *Proxy, others *patterns, n *yaml.Node, path []string) {
	var match []string
	own := Route{}
	if target := follow(n); target.Kind == yaml.MappingNode {
		r.object(target, path, "a route",
			field{"match", func(n *yaml.Node, path []string) { r.pattern(&match, others, n, path) }},
			field{"policy", func(n *yaml.Node, path []string) {
				own.Policy = &riprap.Policy{}
				r.proxyPolicy(own.Policy)(n, path)
			}},
		)
		if len(match) == 0 && len(r.errs) == 0 {
			r.failf(target, `a route without "match", a pattern such as GET /reports/`)
		}
	} else {
		r.pattern(&match, others, n, path)
	}
	if len(match) == 1 {
		own.Match = match[0]
		p.Routes = append(p.Routes, own)
	}
}

// proxyPolicy reads a policy of a proxy, whose routes learn their bounds and share budgets.
func (r *reader) proxyPolicy(p *riprap.Policy) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		r.policy(p)(n, path)
		if p.Latency != nil {
			r.failf(r.places[key(within(path, "latency"))], "latency: a proxy learns for each route: want adaptive: true beside the policy")
			p.Latency = nil
		}
		if _, told := r.places[key(within(path, "budget"))]; told && p.Budget == nil {
			p.Budget = &riprap.Budget{Ratio: math.Inf(1)} // none, which grants everything
		}
	}
}

func (r *reader) list(name string, read func(*yaml.Node, []string)) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		if n = follow(n); n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			r.failf(n, "%s: want a list, with - before each, got %s", name, kind(n))
			return
		}
		for i, item := range n.Content {
			if r.spent(item) {
				return
			}
			r.enter(pair{item, item}, within(path, strconv.Itoa(i)), read)
		}
	}
}

// scope reads who owns a key.
func (r *reader) scope(to *string) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		const want = "header:NAME, such as header:X-Customer, or single-tenant"
		text, ok := r.scalar(n, path, want)
		if !ok {
			return
		}
		name, isField := strings.CutPrefix(text, "header:")
		if text != "single-tenant" && (!isField || name == "" || strings.ContainsFunc(name, NotInToken)) {
			r.failf(follow(n), "scope: want %s, got %q", want, short(text))
			return
		}
		*to = text
	}
}

// NotInToken reports whether a character cannot be one of a field's name (RFC 9110 section 5.6.2).
func NotInToken(c rune) bool {
	return c > 0x7e || c <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}

// trust reads networks, or none.
func (r *reader) trust(to *[]netip.Prefix) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		if follow(n).Value == none {
			*to = []netip.Prefix{}
			return
		}
		r.list("trust", func(n *yaml.Node, path []string) {
			const want = "a network such as 10.0.0.0/8, or an address"
			text, ok := r.scalar(n, path, want)
			if !ok {
				return
			}
			prefix, err := ParsePrefix(text)
			if err != nil {
				r.failf(follow(n), "trust: want %s, got %q", want, short(text))
				return
			}
			*to = append(*to, prefix)
		})(n, path)
	}
}

// ParsePrefix reads a network such as 10.0.0.0/8, or a single address.
func ParsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().WithZone("").Prefix(address.Unmap().BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}

// size reads a number of bytes, or none.
func (r *reader) size(to *int64) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		text, ok := r.scalar(n, path, wantSize)
		if !ok {
			return
		}
		size, err := ParseSize(text)
		if err != nil {
			r.failf(follow(n), "%s: %v", path[len(path)-1], err)
			return
		}
		*to = size
	}
}

// bytes reads a size that there must be: so much is held in memory.
func (r *reader) bytes(to *int64) func(*yaml.Node, []string) {
	return func(n *yaml.Node, path []string) {
		if follow(n).Value == none {
			r.failf(follow(n), "%s: so much is held in memory for each request, which must have a limit: want a size such as 64KiB", path[len(path)-1])
			return
		}
		r.size(to)(n, path)
	}
}

const wantSize = "a size such as 64KiB, 1MiB or 500kB, or none"

var sizes = []struct {
	unit  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// ParseSize reads a number of bytes above zero with a unit, such as 64KiB, or none, which is below zero.
func ParseSize(text string) (int64, error) {
	if text == none {
		return -1, nil
	}
	for _, s := range sizes {
		number, ok := strings.CutSuffix(text, s.unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !decimal.MatchString(strings.TrimSpace(number)) || n*float64(s.bytes) < 1 || n*float64(s.bytes) > 1<<50 {
			break
		}
		return int64(n * float64(s.bytes)), nil
	}
	if _, err := strconv.ParseUint(text, 10, 50); err == nil {
		return 0, fmt.Errorf("a number without a unit: want %s", wantSize)
	}
	return 0, fmt.Errorf("want %s, got %q", wantSize, short(text))
}
