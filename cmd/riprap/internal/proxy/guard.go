package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/riprap-go/riprap/cmd/riprap/internal/manifest"
)

// A table finds what the configuration says of a request, by patterns of http.ServeMux.
type table[T any] struct {
	mux   *http.ServeMux
	empty bool
}

func newTable[T any]() *table[T] { return &table[T]{mux: http.NewServeMux(), empty: true} }

// add enters a pattern. The error is for people.
func (t *table[T]) add(pattern string, value *T) (err error) {
	defer func() {
		if wrong := recover(); wrong != nil { // which is how a ServeMux refuses one
			err = fmt.Errorf("pattern %q: %v", pattern, wrong)
		}
	}()
	t.mux.Handle(pattern, entry[T]{value})
	t.empty = false
	return nil
}

// seal ends the adding. What matches no pattern is then found to match this one: a ServeMux without a match looks for the methods
// that would have matched, and that takes longer than all the rest.
func (t *table[T]) seal() {
	defer func() { recover() }() // there is one for everything already
	t.mux.Handle("/", entry[T]{})
}

// find returns what is entered for a request, nil if there is nothing.
func (t *table[T]) find(r *http.Request) *T {
	if t.empty {
		return nil
	}
	h, _ := t.mux.Handler(r)
	e, _ := h.(entry[T]) // what the mux makes up, such as a redirect to a clean path, is none
	return e.value
}

type entry[T any] struct{ value *T }

func (entry[T]) ServeHTTP(http.ResponseWriter, *http.Request) {}

// A guarded pattern is one of requests whose keys the proxy keeps.
type guarded struct {
	pattern  string
	required bool
}

// A guard knows the requests that are run once. Those that a service may take for one of them, while this proxy does not, it
// finds too: if they passed, they would go around the keys.
type guard struct {
	exact   *table[guarded]
	loose   *table[guarded] // of patterns and paths as the laxest service reads them
	methods map[string]bool // of the patterns
}

// newGuard makes the guard of a service.
func newGuard(p *manifest.Proxy) (*guard, error) {
	g := &guard{newTable[guarded](), newTable[guarded](), map[string]bool{}}
	for _, list := range []struct {
		name     string
		patterns []string
		required bool
	}{{"require", p.RequireKey, true}, {"accept", p.AcceptKey, false}} {
		for _, pattern := range list.patterns {
			method, rest, found := strings.Cut(pattern, " ")
			if !found {
				method, rest = "", pattern
			}
			rest = strings.TrimLeft(rest, " \t")
			if !strings.HasPrefix(rest, "/") {
				return nil, fmt.Errorf("pattern %q: want METHOD /PATH", pattern)
			}
			if manifest.Keyless(method) {
				return nil, fmt.Errorf("pattern %q: a %s needs no key", pattern, method)
			}
			methods := []string{method}
			if method == "" {
				methods = manifest.UnsafeMethods
			}
			for _, m := range methods {
				g.methods[m] = true
				value := &guarded{pattern, list.required}
				if err := g.exact.add(m+" "+rest, value); err != nil {
					return nil, err
				}
				g.loose.add(m+" "+loosePattern(rest), value) // that two are alike when read laxly does not matter
			}
		}
	}
	g.exact.seal()
	g.loose.seal()
	return g, nil
}

// overrides are fields by which some services let a request have another method than it has.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// find returns the pattern that a request matches, nil if it matches none. Doubt says in plain words why it cannot be told
// what the request means.
func (g *guard) find(r *http.Request) (found *guarded, doubt string) {
	if g.exact.empty {
		return nil, ""
	}
	for _, name := range overrides {
		for as := range strings.SplitSeq(strings.Join(r.Header[name], ","), ",") { // of several a service may read any
			if as = strings.TrimSpace(as); as != "" && g.looks(strings.ToUpper(as), r) {
				return nil, name + " makes it a request that needs a key"
			}
		}
	}
	if upper := strings.ToUpper(r.Method); upper != r.Method && g.looks(upper, r) {
		return nil, "the method is not written in upper case"
	}
	if !g.methods[r.Method] {
		return nil, ""
	}
	if found := g.exact.find(r); found != nil {
		if spelled.MatchString(r.URL.EscapedPath()) { // a key belongs to the path as it is written
			return nil, "its path has letters or digits that are percent-encoded"
		}
		return found, ""
	}
	if g.looks(r.Method, r) {
		return nil, "the path is another spelling of one that needs a key"
	}
	return nil, ""
}

// looks reports whether a lax service may take the request, with this method, for one that is guarded.
func (g *guard) looks(method string, r *http.Request) bool {
	loose := loosePath(r.URL.EscapedPath())
	for _, p := range []string{loose, loose + "/", strings.TrimSuffix(extension.ReplaceAllString(loose, ""), "/")} {
		if p != "" && g.loose.find(&http.Request{Method: method, URL: &url.URL{Path: p}}) != nil {
			return true
		}
	}
	return false
}

var (
	extension = regexp.MustCompile(`\.[^/]*$`) // a format, for some frameworks whatever it is
	parameter = regexp.MustCompile(`;[^/]*`)
	spelled   = regexp.MustCompile(`%(2[deDE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF]|7[eE])`) // unreserved (RFC 3986 section 2.3)
	alike     = strings.NewReplacer(`\`, "/", "?", ";", "#", ";")
)

// loosePath is how the laxest service reads a path: decoded as long as there is something to decode, in lower case, without
// parameters, doubled slashes, dots and what stands at its end.
func loosePath(p string) string {
	for range 4 {
		decoded, err := url.PathUnescape(p)
		if err != nil || decoded == p {
			break
		}
		p = decoded
	}
	p, _, _ = strings.Cut(p, "\x00")
	p = alike.Replace(strings.ToLower(p))
	p = parameter.ReplaceAllString(p, "")
	var segments []string
	for segment := range strings.SplitSeq(p, "/") {
		if segment = strings.TrimSpace(segment); segment != "" {
			segments = append(segments, segment)
		}
	}
	return path.Clean("/" + strings.Join(segments, "/"))
}

// loosePattern is a path pattern in lower case, but for the names of its wildcards, which mean nothing.
func loosePattern(p string) string { return strings.ToLower(p) }
