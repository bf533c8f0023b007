// Package manifest reads riprap.yaml, the file that says which services there are, who calls whom and with which policy.
// What it finds is a [chain.Chain] and, for each figure in it, the place where it is written.
//
// The file is taken for untrusted: its size and what its aliases may stand for are bounded.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/riprap-go/riprap/chain"
)

// Name is what the file is called where nobody says otherwise.
const Name = "riprap.yaml"

// Largest is the size of a file that is read, in bytes. A thousand services fit into a fifth of it.
const Largest = 1 << 20

// A File is what was read from a riprap.yaml.
type File struct {
	Name  string      // as it was given; - is "stdin"
	Chain chain.Chain // with each proxy as a service of its own, before the one that it stands in front of

	Proxies  []Proxy // in the order of their services
	Proxying Proxying

	source source
	places map[string]*yaml.Node // by path; marked only when somebody asks
}

// Read reads the file of the given name, or stdin if it is "-". If there is no chain in it, the error is an [Errors] with
// all that is wrong; if it cannot be read, it is another one.
func Read(name string, stdin io.Reader) (*File, error) {
	from, called := stdin, "stdin"
	if name != "-" {
		called = name
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", Printable(name), bare(err))
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, Largest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", Printable(called), bare(err))
	case len(text) > Largest:
		return nil, fmt.Errorf("%s: over %d KiB, which no description of services is", Printable(called), Largest>>10)
	}
	return Parse(called, text)
}

// bare is an error without the name of its file, as in "read NAME: is a directory".
func bare(err error) error {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err
	}
	return err
}

// Parse reads the text of a file. An error is an [Errors] with all that is wrong in it, and with the first that is wrong if
// it is not YAML.
func Parse(name string, text []byte) (*File, error) {
	r := read(name, text)
	if len(r.errs) > 0 {
		return nil, r.errs.sorted()
	}
	return r.File, nil
}

func read(name string, text []byte) *reader {
	r := &reader{
		File: &File{Name: name, source: split(name, string(text)), places: map[string]*yaml.Node{}},
		said: map[Error]bool{},
	}
	if root := r.parse(text); root != nil {
		r.chain(root)
	}
	return r
}

// parse returns the one document that there should be in the text, nil after an error.
func (r *reader) parse(text []byte) *yaml.Node {
	if where, what := unreadable(string(text)); what != "" {
		r.fail(end(string(text[:where])), what)
		return nil
	}
	first := Place{1, 1, 1}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	var document, second yaml.Node
	if err == nil {
		err = loader.Load(&document)
	}
	if err == io.EOF || err == nil && empty(&document) {
		r.fail(first, "there is nothing in it: want services and their calls")
		return nil
	}
	if err == nil {
		err = loader.Load(&second)
	}
	switch {
	case err == io.EOF:
		return document.Content[0]
	case err == nil:
		r.fail(r.source.mark(&second), "a second document: want one in a file")
	default:
		r.fail(r.syntax(err))
	}
	return nil
}

// empty reports whether a document has nothing in it: no line, or only comments, or a null.
func empty(document *yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null"
}

// syntax says in plain words what the parser found, and where.
func (r *reader) syntax(err error) (Place, string) {
	wrong, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return Place{1, 1, 1}, err.Error()
	}
	mark := wrong.Mark
	at := Place{mark.Line, mark.Column, 1}
	if r.source.over(at) && wrong.ContextMark.Line > 0 { // it is the beginning that helps to find what was never ended
		at.Line, at.Column = wrong.ContextMark.Line, wrong.ContextMark.Column
	}
	at.Line, at.Column = max(at.Line, 1), max(at.Column, 1)
	if r.source.over(at) {
		at = r.source.last()
	}
	what := wrong.Message
	if wrong.ContextMsg != "" {
		what = wrong.ContextMsg + ": " + what
	}
	switch {
	case r.source.rest(at) != "" && r.source.rest(at)[0] == '\t':
		what = "a tab, with which YAML does not indent: want blanks"
	case strings.HasPrefix(wrong.Message, "mapping values are not allowed"):
		what = `a ":" out of place: the line is indented too far, or has text with a ":" that wants quotes`
	case wrong.Message == "found character that cannot start any token":
		what = "no value can begin like this: want quotes around it"
	}
	return at, "not YAML: " + what
}

// A Place is where something is written: a part of a line. Lines and columns count from 1, columns are characters.
type Place struct {
	Line, Column, Width int
}

// Place finds where the value at a path of keys is written, such as "services", "gateway", "calls", "0", "policy",
// "timeout". If it is left out in the file, the place is that of the nearest thing around it.
func (f *File) Place(path ...string) Place {
	for n := len(path); n >= 0; n-- {
		if node, ok := f.places[key(path[:n])]; ok {
			return f.source.mark(node)
		}
	}
	return Place{1, 1, 1}
}

// Excerpt is the line of a place and, below it, a line that marks the place. They are cut to so many columns, and end in a
// newline.
func (f *File) Excerpt(at Place, columns int) string { return f.source.excerpt(at, columns) }

func key(path []string) string { return strings.Join(path, "\x00") }
