package manifest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap/internal/suggest"
)

// UnsafeMethods are those that a pattern for keys stands for if it names none.
var UnsafeMethods = []string{"POST", "PATCH"}

// usualMethods are those that a slip in another one is likely to have been.
var usualMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}

// mostPatterns is how many the lists of one proxy may have, routes and those with keys each for themselves. To find out which
// conflict takes a while with very many.
const mostPatterns = 1000

// pattern reads one of http.ServeMux that goes together with others.
func (r *reader) pattern(to *[]string, others *patterns, n *yaml.Node, path []string) {
	text, ok := r.scalar(n, path, "a pattern such as POST /charge")
	if !ok {
		return
	}
	if err := CheckPattern(text); err != nil {
		r.failf(follow(n), "%v", err)
		return
	}
	if err := others.add(text); err != nil {
		r.failf(follow(n), "%v", err)
		return
	}
	*to = append(*to, text)
}

// keyPattern reads the pattern of requests that have keys.
func (r *reader) keyPattern(to *[]string, others *patterns, n *yaml.Node, path []string) {
	if method, _, _ := strings.Cut(follow(n).Value, " "); Keyless(method) {
		r.failf(follow(n), "a %s needs no key: it may be sent again as it is", method)
		return
	}
	r.pattern(to, others, n, path)
}

// Keyless reports whether requests with a method need no key.
func Keyless(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// CheckPattern reports whether a pattern is one that a proxy can look for: [METHOD ]/PATH as in http.ServeMux, without a host.
func CheckPattern(pattern string) error {
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		method, path = "", pattern
	}
	path = strings.TrimLeft(path, " \t")
	upper := strings.ToUpper(method)
	switch near := suggest.Near(upper, usualMethods); {
	case !strings.HasPrefix(path, "/") || strings.ContainsFunc(pattern, func(c rune) bool { return !unicode.IsPrint(c) }):
		return fmt.Errorf("no pattern: want METHOD /PATH, such as POST /charge, got %q", short(pattern))
	case method == "" || slices.Contains(usualMethods, method):
	case near != "": // a pattern for a method that nobody sends would match nothing, and guard nothing
		return fmt.Errorf("pattern %q: did you mean the method %s?", short(pattern), near)
	case method != upper:
		return fmt.Errorf("pattern %q: methods are written in upper case, want %s", short(pattern), short(upper))
	}
	if !newPatterns(nil).takes(pattern) {
		return fmt.Errorf("no pattern that can be looked for: %q; wildcards are whole segments, such as /charge/{id}", short(pattern))
	}
	return nil
}

// CheckTogether reports whether at most one of some patterns is the right one for any request. A pattern without a method
// stands for the methods; nil means any.
func CheckTogether(methods, all []string) error {
	p := newPatterns(methods)
	for _, pattern := range all {
		if err := p.add(pattern); err != nil {
			return err
		}
	}
	return nil
}

// patterns are some of which at most one may be the right one for a request.
type patterns struct {
	mux     *http.ServeMux
	all     []string
	methods []string // of a pattern without one; nil means any
}

func newPatterns(methods []string) *patterns {
	return &patterns{mux: http.NewServeMux(), methods: methods}
}

// add enters one more. The error is for people.
func (p *patterns) add(pattern string) error {
	switch {
	case len(p.all) == mostPatterns:
		return fmt.Errorf("over %d patterns, which is too much for one proxy", mostPatterns)
	case slices.Contains(p.all, pattern):
		return fmt.Errorf("pattern %q is there twice", short(pattern))
	case p.takes(pattern):
		p.all = append(p.all, pattern)
		return nil
	}
	for _, other := range p.all {
		if two := newPatterns(p.methods); two.takes(other) && !two.takes(pattern) {
			return fmt.Errorf("pattern %q conflicts with %q: some requests match both, and neither is the more specific one", short(pattern), short(other))
		}
	}
	return fmt.Errorf("pattern %q can match nothing: want a path without //, . and .. in it", short(pattern))
}

// takes reports whether a pattern goes together with those that are there, and enters it.
func (p *patterns) takes(pattern string) (ok bool) {
	defer func() {
		if recover() != nil { // which is how a ServeMux refuses one
			ok = false
		}
	}()
	if p.methods == nil || strings.Contains(pattern, " ") {
		p.mux.Handle(pattern, http.NotFoundHandler())
		return true
	}
	for _, method := range p.methods {
		p.mux.Handle(method+" "+pattern, http.NotFoundHandler())
	}
	return true
}
