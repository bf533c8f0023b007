package proxy

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// A configuration is what a proxy is to do, read and checked.
type configuration struct {
	manifest.Proxying
	fronts   []front
	warnings []string
}

// A front is one service of a configuration.
type front struct {
	manifest.Proxy
	certificate *tls.Certificate // nil without TLS
	sum         string           // the same for two fronts whose handlers are alike
}

// load reads what the request says. It changes nothing.
func (q *request) load() (*configuration, error) {
	c := &configuration{Proxying: fill(q.own, manifest.Proxying{})}
	for _, p := range []manifest.Proxy{q.proxy} {
		f, err := newFront(p)
		if err != nil {
			return nil, err
		}
		c.fronts = append(c.fronts, f)
	}
	return c, nil
}

// newFront reads the files that a proxy names.
func newFront(p manifest.Proxy) (f front, err error) {
	f.Proxy = p
	if p.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(p.TLSCert, p.TLSKey)
		if err != nil {
			return f, fmt.Errorf("the certificate and its key: %w", err)
		}
		f.certificate = &pair
	}
	// What only concerns the address makes no other handler: its budgets and what it has learned are kept.
	p.Listen, p.TLSCert, p.TLSKey, p.MaxHeader, p.MaxConnections = "", "", "", 0, 0
	text, err := json.Marshal(p)
	if err != nil {
		return f, err
	}
	if p.CA != "" {
		roots, err := os.ReadFile(p.CA)
		if err != nil {
			return f, fmt.Errorf("the roots: %w", err)
		}
		text = append(text, roots...)
	}
	f.sum = fmt.Sprintf("%x", sha256.Sum256(text))
	return f, nil
}

// site is where the front is.
func (f *front) site() site {
	return site{
		service: f.Service, listen: f.Listen, tls: f.certificate != nil,
		maxHeader:      int(cmp.Or(max(f.MaxHeader, 0), defaultMaxHeader)),
		maxConnections: max(cmp.Or(f.MaxConnections, defaultMaxConnections), 0),
	}
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

// plural is a number with its word.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}
