package manifest

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap/internal/suggest"
)

// A reader makes a chain of the nodes of a document. It goes on after an error, so that all are found at once.
type reader struct {
	*File
	errs Errors
	said map[Error]bool // what stands in an anchor is read as often as it is used, and is wrong once
	keys int            // read so far
}

// most is how many keys and calls a file may have, those that its aliases stand for counted each time.
const most = 100_000

// spent counts what was read, and reports whether that is too much, or wrong so often that nobody would read more of it.
func (r *reader) spent(n *yaml.Node) bool {
	if r.keys++; r.keys == most+1 {
		r.failf(n, "over %d keys and calls, with those that its aliases stand for: that is too much", most)
	}
	return r.keys > most || len(r.errs) == mostErrors
}

// width is that of an error's excerpt.
const width = 80

func (r *reader) fail(at Place, what string) {
	e := Error{Printable(r.source.name), at.Line, at.Column, what, ""}
	if r.said[e] || len(r.errs) == mostErrors {
		return
	}
	r.said[e] = true
	e.Excerpt = r.source.excerpt(at, width)
	r.errs = append(r.errs, &e)
}

// hush tells a mistake without the line that it is in, which may hold a password that is not known by what is around it.
func (r *reader) hush(n *yaml.Node, what string) {
	at, before := r.source.mark(n), len(r.errs)
	if r.fail(at, what); len(r.errs) > before {
		r.errs[before].Excerpt = ""
	}
}

func (r *reader) failf(n *yaml.Node, format string, args ...any) {
	r.fail(r.source.mark(n), fmt.Sprintf(format, args...))
}

// A field is one key that a mapping may have.
type field struct {
	name string
	read func(n *yaml.Node, path []string)
}

// object reads a mapping whose keys are known. It returns false if it is none, or if it has a key that is none of them: what
// seems to be missing may be meant by that.
func (r *reader) object(n *yaml.Node, path []string, what string, fields ...field) bool {
	pairs, ok := r.pairs(n, what)
	for _, p := range pairs {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == p.key.Value })
		if i < 0 {
			r.unknown(p.key, what, fields)
			ok = false
			continue
		}
		r.enter(p, within(path, p.key.Value), fields[i].read)
	}
	return ok
}

// enter remembers the place of a value and reads it.
func (r *reader) enter(p pair, path []string, read func(*yaml.Node, []string)) {
	value := follow(p.value)
	if value.Kind == yaml.ScalarNode {
		r.places[key(path)] = value
	} else {
		r.places[key(path)] = p.key
	}
	if value.Style&yaml.TaggedStyle != 0 {
		r.failf(p.value, "a tag, %q, which means nothing here", short(value.Tag))
		return
	}
	read(value, path)
}

func (r *reader) unknown(name *yaml.Node, what string, fields []field) {
	var names []string
	for _, f := range fields {
		if !strings.HasPrefix(f.name, free) {
			names = append(names, f.name)
		}
	}
	if near := nearest(name.Value, names); near != "" {
		r.failf(name, "%s has no key %q, did you mean %q?", what, short(name.Value), near)
		return
	}
	r.failf(name, "%s has no key %q: want %s", what, short(name.Value), list(names))
}

// nearest takes max_attempts, MaxAttempts and max-attempts for maxAttempts, and what suggest does.
func nearest(name string, names []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	for _, known := range names {
		if plain(name) == plain(known) {
			return known
		}
	}
	return suggest.Near(name, names)
}

// list joins names as people do: a, b or c.
func list(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

type pair struct{ key, value *yaml.Node }

// pairs returns the keys and values of a mapping, its own first, then those that it merges and does not have. It returns
// false if they are not all: it is no mapping, something in it is no key, or it is too much.
func (r *reader) pairs(n *yaml.Node, what string) ([]pair, bool) {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		r.failf(n, "%s: want a mapping, with a key and a value on each line, got %s", what, kind(n))
		return nil, false
	}
	m := &merger{reader: r, what: what, taken: map[string]bool{}, state: map[*yaml.Node]int{}}
	m.add(n)
	return m.pairs, !m.short
}

// A merger collects the pairs of a mapping and of those that it merges.
type merger struct {
	*reader
	what  string
	pairs []pair
	short bool // of pairs, for some could not be read
	taken map[string]bool
	state map[*yaml.Node]int // of mappings: 1 while they are added, 2 after it
}

func (m *merger) add(n *yaml.Node) {
	m.state[n] = 1
	var merges []*yaml.Node
	own := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := follow(n.Content[i]), n.Content[i+1]
		if m.spent(name) {
			m.short = true
			return
		}
		switch before, twice := own[name.Value]; {
		case name.Kind != yaml.ScalarNode || name.Value == "":
			m.failf(name, "%s: want a name for a key, got %s", m.what, kind(name))
			m.short = true
			continue
		case twice:
			m.failf(name, "%s has %q twice, first in line %d", m.what, short(name.Value), before.Line)
			continue
		case name.Value == "<<" && name.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0:
			merges = append(merges, value)
		case !m.taken[name.Value]:
			m.pairs = append(m.pairs, pair{name, value})
		}
		own[name.Value] = name
	}
	for name := range own {
		m.taken[name] = true
	}
	for _, value := range merges {
		m.merge(value)
	}
	m.state[n] = 2
}

// merge adds what stands behind a "<<": a mapping or a list of them, of which the first that has a key wins. What has been
// added before adds nothing.
func (m *merger) merge(value *yaml.Node) {
	sources := []*yaml.Node{value}
	if n := follow(value); n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	for _, s := range sources {
		switch n := follow(s); {
		case n.Kind != yaml.MappingNode:
			m.failf(s, "<<: want a mapping to merge, or a list of them, got %s", kind(n))
			m.short = true
		case m.state[n] == 1:
			m.failf(s, "<<: it would merge a mapping into itself")
			m.short = true
		case m.state[n] == 0:
			m.add(n)
		}
	}
}

// follow returns what an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// kind says what a node is, in the words of somebody who writes YAML.
func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return "nothing"
	default:
		return fmt.Sprintf("%q", short(n.Value))
	}
}

// short cuts what is too long for a message, and hides what may be a password.
func short(s string) string {
	s = masked(s)
	if runes := []rune(s); len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	return s
}
