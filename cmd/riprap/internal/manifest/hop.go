package manifest

import (
	"slices"
	"strings"

	"github.com/riprap-go/riprap"
	"github.com/riprap-go/riprap/chain"
)

// hop is behind a service's name for what stands in front of it.
const hop = " (proxy)"

// Hop returns the proxy as a link of a chain: a service that calls the one behind it, by its policy and by that of each route
// that has one of its own.
func Hop(p *Proxy) chain.Service {
	s := chain.Service{Name: p.Service + hop, Calls: []chain.Call{p.call("", p.Policy)}}
	for _, r := range p.Routes {
		if r.Policy != nil {
			s.Calls = append(s.Calls, p.call(r.Match, *r.Policy))
		}
	}
	if p.keepsKeys() {
		s.Lease, s.Retention = p.Lease, p.Retention
	}
	return s
}

// call is what becomes of requests that match a pattern.
func (p *Proxy) call(match string, policy riprap.Policy) chain.Call {
	policy = Effective(policy)
	if policy.Budget == nil {
		policy.Budget = &riprap.Budget{} // that of riphttp
	}
	if method, _, named := strings.Cut(match, " "); named && !p.UpstreamKeys && !slices.Contains(repeatable, method) {
		policy.MaxAttempts = 1
	}
	// What is not idempotent is sent once, unless the service honors keys.
	return chain.Call{To: p.Service, Policy: policy, Idempotent: true, Keyed: p.UpstreamKeys}
}

// repeatable are methods of requests that a proxy may send again as they are (RFC 9110 section 9.2.2).
var repeatable = []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}

// keepsKeys reports whether there are requests that the proxy runs once for their key.
func (p *Proxy) keepsKeys() bool { return len(p.RequireKey)+len(p.AcceptKey) > 0 }

// route is the index of the route whose policy a call of the proxy's hop has, -1 if it is the proxy's own.
func (p *Proxy) route(call int) int {
	for i, r := range p.Routes {
		if r.Policy == nil {
			continue
		}
		if call--; call == 0 {
			return i
		}
	}
	return -1
}

// front puts the proxies into the chain, each before its service.
func (f *File) front() {
	if len(f.Proxies) == 0 {
		return
	}
	proxies := map[string]*Proxy{}
	for i := range f.Proxies {
		proxies[f.Proxies[i].Service] = &f.Proxies[i]
	}
	var services []chain.Service
	for _, s := range f.Chain.Services {
		for i := range s.Calls {
			if proxies[s.Calls[i].To] != nil {
				s.Calls[i].To += hop
			}
		}
		if p := proxies[s.Name]; p != nil {
			services = append(services, Hop(p))
			if p.keepsKeys() {
				s.Lease, s.Retention = 0, 0 // they are the proxy's
			}
		}
		services = append(services, s)
	}
	f.Chain.Services = services
}

// AtProxy reports whether a finding is about a proxy or the service behind it, and not about who calls it.
func (f *File) AtProxy(finding chain.Finding) bool {
	for _, p := range f.Proxies {
		if finding.Service == p.Service+hop || finding.Service == p.Service && finding.Call < 0 {
			return true
		}
	}
	return false
}

// Route is the pattern of the requests for which a proxy makes the call that leads to a hop of the chain, "" if it is for all
// others or another call.
func (f *File) Route(h chain.Hop) string {
	if p := f.proxyOf(h.From); p != nil {
		if i := p.route(h.Call); i >= 0 {
			return p.Routes[i].Match
		}
	}
	return ""
}

// FindingPlace finds where the figure is written that a finding is about.
func (f *File) FindingPlace(finding chain.Finding) Place {
	path := []string{"services", finding.Service}
	fields := strings.Split(finding.Field, ".")
	if p := f.proxyOf(finding.Service); p != nil {
		path[1] = p.Service
		switch route := p.route(finding.Call); {
		case fields[0] == "lease" || fields[0] == "retention":
		case fields[0] == "keyed" || fields[0] == "idempotent":
			path, fields = append(path, "proxy"), []string{"upstreamKeys"}
		case route >= 0:
			path = append(path, "proxy", "routes", index(route))
		default:
			path = append(path, "proxy")
		}
	} else if finding.Call >= 0 {
		path = append(path, "calls", index(finding.Call))
	}
	if finding.Field != "" {
		path = append(path, fields...)
	}
	return f.Place(path...)
}

// proxyOf is the proxy that a service of the chain is, nil if it is none.
func (f *File) proxyOf(service string) *Proxy {
	name, ok := strings.CutSuffix(service, hop)
	for i := range f.Proxies {
		if ok && f.Proxies[i].Service == name {
			return &f.Proxies[i]
		}
	}
	return nil
}
