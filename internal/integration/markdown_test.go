package integration

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A document is a Markdown file taken apart.
type document struct {
	file    string
	blocks  []block
	links   []link
	anchors []string // one for each heading, as GitHub makes them
}

// A block is a fenced block.
type block struct {
	file    string
	line    int    // of its first line of text
	lang    string // the first word after the fence
	heading string // the nearest one above
	given   string // declarations for it, in a comment above that begins with "<!-- go" and that readers do not see
	text    string
}

type link struct {
	line   int
	target string
}

var (
	headingPattern = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	codePattern    = regexp.MustCompile("`[^`]*`")
	linkPattern    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: +"[^"]*")?\)|^\s*\[[^\]]+\]: +<?([^\s>]+)|(?:href|src|srcset)="([^"]+)"`)
	schemePattern  = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// parse takes a Markdown file apart. It knows headings, fences, links and code in a line; all else is text.
func parse(file, text string) document {
	doc := document{file: file}
	var open *block
	var fence, indent, heading, given string
	hidden := false
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case open != nil && strings.HasPrefix(trimmed, fence):
			doc.blocks = append(doc.blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case !hidden && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			info := strings.TrimLeft(trimmed, trimmed[:1])
			fence = trimmed[:len(trimmed)-len(info)]
			indent = line[:len(line)-len(trimmed)]
			lang, _, _ := strings.Cut(strings.TrimSpace(info), " ")
			open = &block{file: file, line: number + 1, lang: lang, heading: heading, given: given}
			given = ""
		case hidden:
			hidden = trimmed != "-->"
			given += strings.TrimSuffix(trimmed, "-->") + "\n"
		case trimmed == "<!-- go":
			hidden = true
		default:
			if m := headingPattern.FindStringSubmatch(line); m != nil {
				heading = m[1]
				doc.anchors = append(doc.anchors, anchor(heading, doc.anchors))
			}
			for _, m := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(line, "code"), -1) {
				doc.links = append(doc.links, link{number, m[1] + m[2] + m[3]})
			}
		}
	}
	return doc
}

// anchor returns the name by which a link finds a heading: lower case, blanks as hyphens, no punctuation, and a number if an
// earlier heading has the name.
func anchor(heading string, earlier []string) string {
	name := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
	unique := name
	for n := 1; slices.Contains(earlier, unique); n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	return unique
}

// documents reads every Markdown file below fsys, in the order of their paths.
func documents(fsys fs.FS) ([]document, error) {
	var docs []document
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || name == "dist" || d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		docs = append(docs, parse(name, string(text)))
		return err
	})
	return docs, err
}

// deadLinks returns the links that lead to no file and no heading below fsys. Addresses of other hosts are not looked up.
func deadLinks(fsys fs.FS, docs []document) []string {
	anchors := map[string][]string{}
	for _, doc := range docs {
		anchors[doc.file] = doc.anchors
	}
	var dead []string
	for _, doc := range docs {
		for _, l := range doc.links {
			if schemePattern.MatchString(l.target) || strings.HasPrefix(l.target, "//") {
				continue
			}
			file, fragment, _ := strings.Cut(l.target, "#")
			target := doc.file
			if file != "" {
				target = path.Join(path.Dir(doc.file), file)
			}
			if _, err := fs.Stat(fsys, target); err != nil {
				dead = append(dead, fmt.Sprintf("%s:%d: %s: no such file", doc.file, l.line, l.target))
			} else if fragment != "" && path.Ext(target) == ".md" && !slices.Contains(anchors[target], fragment) {
				dead = append(dead, fmt.Sprintf("%s:%d: %s: no such heading", doc.file, l.line, l.target))
			}
		}
	}
	return dead
}

func TestDeadLinksAreFound(t *testing.T) {
	fsys := fstest.MapFS{
		"README.md": {Data: []byte("# Riprap: `Do` it\n\nSee [guide](docs/guide.md#two-words), [self](#riprap-do-it), [`x`](docs/),\n" +
			"[gone](docs/gone.md), [no heading](docs/guide.md#three) and [out](../other/a.md).\n" +
			"<img src=\"docs/wave.svg\"> `[code](not/a/link)` [site](https://example.com/x)\n\n```sh\n[in code](not/a/link)\n```\n")},
		"docs/guide.md": {Data: []byte("## Two words\n\n[up](../README.md)\n\n## Two words\n\n[second](#two-words-1)\n\n[ref]: nowhere.md\n")},
	}
	docs, err := documents(fsys)
	if err != nil {
		t.Fatal(err)
	}
	got := deadLinks(fsys, docs)
	want := []string{
		"README.md:4: docs/gone.md: no such file",
		"README.md:4: docs/guide.md#three: no such heading",
		"README.md:4: ../other/a.md: no such file",
		"README.md:5: docs/wave.svg: no such file",
		"docs/guide.md:9: nowhere.md: no such file",
	}
	if !slices.Equal(got, want) {
		t.Errorf("deadLinks:\n got %q\nwant %q", got, want)
	}
}
