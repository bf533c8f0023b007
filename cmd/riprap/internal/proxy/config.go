package proxy

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/riprap-go/riprap/chain"
	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// A mistake is an error in the configuration, and not of this machine or of another.
type mistake struct{ error }

func (m mistake) Unwrap() error { return m.error }

// A configuration is what a proxy is to do, read and checked.
type configuration struct {
	manifest.Proxying
	fronts   []front
	warnings []string
}

// A front is one service of a configuration.
type front struct {
	manifest.Proxy
	at          string           // where it is described, with a colon behind it; "" by flags
	certificate *tls.Certificate // nil without TLS
	sum         string           // the same for two fronts whose handlers are alike
}

// load reads what the request says. It changes nothing.
func (q *request) load() (*configuration, error) {
	c, err := q.read()
	if err != nil {
		return nil, err
	}
	for i := range c.fronts {
		f := &c.fronts[i]
		if err := f.open(); err != nil {
			return nil, mistake{fmt.Errorf("%s%w", f.at, err)}
		}
	}
	if err := c.check(); err != nil {
		return nil, mistake{err}
	}
	return c, nil
}

// read reads the flags, or the file that they name.
func (q *request) read() (*configuration, error) {
	if q.file == "" {
		c := &configuration{Proxying: fill(q.own, manifest.Proxying{}), fronts: []front{{Proxy: q.proxy}}}
		alone := &chain.Chain{Services: []chain.Service{manifest.Hop(&q.proxy), {Name: q.proxy.Service}}}
		findings := chain.Check(alone)
		for i := range findings {
			findings[i].Text, findings[i].Fix = q.asFlags(findings[i].Text), q.asFlags(findings[i].Fix)
		}
		return c, c.judge(findings, func(chain.Finding) bool { return true }, func(chain.Finding) string { return "" })
	}
	file, err := manifest.Read(q.file, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist) && q.file == manifest.Name:
		return nil, mistake{fmt.Errorf("no %s in this folder: go where it is, or name the file, or say --listen and --to", manifest.Name)}
	case err != nil:
		return nil, mistake{err}
	case len(file.Proxies) == 0:
		return nil, mistake{fmt.Errorf(`%s: no service in it has a "proxy": want one, with "listen" and "to"`, manifest.Printable(q.file))}
	}
	c := &configuration{Proxying: fill(q.own, file.Proxying)}
	if c.Admin, err = address("admin", c.Admin, none); err != nil {
		return nil, mistake{err}
	}
	where := func(at manifest.Place) string {
		return fmt.Sprintf("%s:%d:%d: ", manifest.Printable(file.Name), at.Line, at.Column)
	}
	for _, p := range file.Proxies {
		if p.Listen, err = address("listen", p.Listen); err != nil {
			return nil, mistake{err}
		}
		c.fronts = append(c.fronts, front{Proxy: p, at: where(file.Place("services", p.Service, "proxy"))})
	}
	return c, c.judge(chain.Check(&file.Chain), file.AtProxy, func(f chain.Finding) string { return where(file.FindingPlace(f)) })
}

// asFlags is what riprap check says, in the words of the command line.
func (q *request) asFlags(text string) string {
	hop := manifest.Hop(&q.proxy).Name
	return strings.NewReplacer(
		"policy.timeout", "--timeout", "policy.attemptTimeout", "--attempt-timeout", "policy.maxAttempts", "--attempts",
		" of "+hop+" → "+q.proxy.Service, "", hop, "the proxy",
	).Replace(text)
}

// judge makes an error of findings that are about a proxy or the service behind it, and warnings of the others.
func (c *configuration) judge(findings []chain.Finding, ours func(chain.Finding) bool, where func(chain.Finding) string) error {
	var refused []string
	for _, f := range findings {
		text := fmt.Sprintf("%s%s: %s %s", where(f), f.Rule, f.Text, f.Fix)
		if ours(f) {
			refused = append(refused, text)
		} else {
			c.warnings = append(c.warnings, text)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("this cannot work, by the rules of riprap check:\n%s", strings.Join(refused, "\n"))
}

// open reads the files that a front names.
func (f *front) open() error {
	p := f.Proxy
	if p.MaxHeader < 0 {
		return errors.New("a header without a limit fills the memory: want a size such as 64KiB")
	}
	if p.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(p.TLSCert, p.TLSKey)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: want the certificate and its key in PEM form", err)
		case err != nil:
			return fmt.Errorf("the certificate %s with the key %s: %w", p.TLSCert, p.TLSKey, err)
		}
		f.certificate = &pair
	}
	// What only concerns the address makes no other handler: its budgets and what it has learned are kept.
	p.Listen, p.TLSCert, p.TLSKey, p.MaxHeader, p.MaxConnections = "", "", "", 0, 0
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if p.CA != "" {
		roots, err := os.ReadFile(p.CA)
		if err != nil {
			return fmt.Errorf("the roots of the service's certificate: %w", err)
		}
		text = append(text, roots...)
	}
	f.sum = fmt.Sprintf("%x", sha256.Sum256(text))
	return nil
}

// check looks at what no single setting tells.
func (c *configuration) check() error {
	taken := map[string]string{}
	if c.Admin != none {
		taken[site{listen: c.Admin}.address()] = "the admin listener"
	}
	for _, f := range c.fronts {
		if _, err := target(f.To); err != nil { // first: what follows would show a password in it
			return fmt.Errorf("%s%s: %w", f.at, f.Service, err)
		}
		if leadsTo(f.To, f.Listen) {
			return fmt.Errorf("%s%s: it listens on %s and sends to %s, which is itself: want the address of the service", f.at, f.Service, f.Listen, f.To)
		}
		where := f.site().address()
		if other := taken[where]; other != "" {
			return fmt.Errorf("%s%s and %s both listen on %s: want an address for each", f.at, other, f.Service, f.Listen)
		}
		taken[where] = f.Service
	}
	return nil
}

// leadsTo reports whether a URL is that of a listener, as far as it can be told without asking anybody.
func leadsTo(to, listen string) bool {
	u, err := url.Parse(to)
	if err != nil {
		return false
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return false
	}
	usual := map[string]string{"http": "80", "h2c": "80", "https": "443"}[u.Scheme]
	if cmp.Or(u.Port(), usual) != port {
		return false
	}
	here, there := ipOf(host), ipOf(u.Hostname())
	switch {
	case strings.EqualFold(host, u.Hostname()), here.IsValid() && here == there:
		return true
	case here.IsUnspecified():
		return there.IsLoopback() || there.IsUnspecified() || isOurs(there)
	}
	return here.IsLoopback() && there.IsUnspecified()
}

// ipOf is the address that a name stands for, if it needs no question.
func ipOf(host string) netip.Addr {
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	ip, _ := netip.ParseAddr(host)
	return ip.Unmap()
}

// isOurs reports whether an address is one of this machine's.
func isOurs(ip netip.Addr) bool {
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && ip.IsValid() && n.IP.Equal(net.IP(ip.AsSlice())) {
			return true
		}
	}
	return false
}

// site is where the front is.
func (f *front) site() site {
	return site{
		service: f.Service, listen: f.Listen, tls: f.certificate != nil,
		maxHeader:      int(cmp.Or(max(f.MaxHeader, 0), defaultMaxHeader)),
		maxConnections: max(cmp.Or(f.MaxConnections, defaultMaxConnections), 0),
		silence:        max(cmp.Or(f.Silence, defaultSilence), 0),
	}
}

// sites are all that the configuration needs.
func (c *configuration) sites() (list []site) {
	for _, f := range c.fronts {
		list = append(list, f.site())
	}
	if c.Admin != none {
		list = append(list, site{listen: c.Admin, maxHeader: adminHeader, maxConnections: adminConnections, silence: defaultSilence})
	}
	return list
}

// certificate is that of a service, nil if there is none.
func (c *configuration) certificate(service string) *tls.Certificate {
	for _, f := range c.fronts {
		if f.Service == service {
			return f.certificate
		}
	}
	return nil
}

// needsKeys reports whether a pattern of the configuration does.
func (c *configuration) needsKeys() bool {
	for _, f := range c.fronts {
		if len(f.RequireKey)+len(f.AcceptKey) > 0 {
			return true
		}
	}
	return false
}
