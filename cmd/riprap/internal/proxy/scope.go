package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// newScope makes the function that says whose key a request has.
func newScope(p *manifest.Proxy) (func(*http.Request) string, error) {
	name, isField := strings.CutPrefix(p.Scope, "header:")
	service := p.Service + "/" // riprap keys --scope payments/42
	switch {
	case strings.Contains(p.Service, "/") && p.Scope != "":
		return nil, fmt.Errorf("service %q: the name of one that has keys is a part of their scope, and has no / in it", p.Service)
	case p.Scope == "single-tenant":
		return func(*http.Request) string { return service }, nil
	case isField && http.CanonicalHeaderKey(name) == "Host":
		return func(r *http.Request) string { return service + strings.ToLower(r.Host) }, nil
	case isField && http.CanonicalHeaderKey(name) != "" && !strings.ContainsFunc(name, manifest.NotInToken):
		name = http.CanonicalHeaderKey(name)
		return func(r *http.Request) string {
			values := r.Header[name]
			if len(values) != 1 || values[0] == "" || isHopByHop(r, name) { // of several a service may read another one
				return ""
			}
			return service + values[0]
		}, nil
	case p.Scope == "" && len(p.RequireKey)+len(p.AcceptKey) == 0:
		return nil, nil
	case p.Scope == "":
		return nil, errors.New("scope is missing: say whose keys they are, by header:NAME, or single-tenant if everybody may see every answer")
	}
	return nil, fmt.Errorf("scope %q: want header:NAME or single-tenant", p.Scope)
}

// isHopByHop reports whether a request says that one of its fields is for us alone and not for the service.
func isHopByHop(r *http.Request, name string) bool {
	for _, list := range r.Header["Connection"] {
		for token := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(token), name) {
				return true
			}
		}
	}
	return false
}
