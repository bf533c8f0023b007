package riprap_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A tree is the source of the project, its files in the order of their paths.
type tree struct {
	text    map[string]string // every text file, by path
	sources []source          // every Go file outside testdata
	fset    *token.FileSet
}

type source struct {
	path string
	test bool
	*ast.File
}

func parseTree(fsys fs.FS) (*tree, error) {
	t := &tree{text: map[string]string{}, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// What git ignores and what it keeps for itself.
			if name == "bin" || name == "dist" || d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // a file in a linked worktree
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if text := string(data); !strings.Contains(text, "\x00") {
			t.text[name] = text
		}
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			return nil
		}
		file, err := parser.ParseFile(t.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		t.sources = append(t.sources, source{name, strings.HasSuffix(name, "_test.go"), file})
		return nil
	})
	return t, err
}

func (t *tree) line(n ast.Node) int { return t.fset.Position(n.Pos()).Line }

// shipped yields the Go files that are not tests.
func (t *tree) shipped(yield func(source) bool) {
	for _, s := range t.sources {
		if !s.test && !yield(s) {
			return
		}
	}
}

func (s source) dir() string { return path.Dir(s.path) }

// library tells whether users can import the file's package.
func (s source) library() bool {
	first, _, _ := strings.Cut(s.dir(), "/")
	return s.Name.Name != "main" && first != "cmd" && first != "examples" &&
		!slices.Contains(strings.Split(s.dir(), "/"), "internal")
}

// imported returns the import paths of a file; one of this project is shortened to its folder.
func (s source) imported() (all, ours []string) {
	for _, spec := range s.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		all = append(all, name)
		if name == modulePath {
			ours = append(ours, ".")
		} else if dir, ok := strings.CutPrefix(name, modulePath+"/"); ok {
			ours = append(ours, dir)
		}
	}
	return all, ours
}

// directives returns the directives of a go.mod or go.work file, those in parentheses written out: "require a v1".
func directives(text string) []string {
	var list []string
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == ")":
			block = ""
		case len(fields) == 2 && fields[1] == "(":
			block = fields[0] + " "
		default:
			list = append(list, block+strings.Join(fields, " "))
		}
	}
	return list
}

// moduleFiles returns the paths of all go.mod files, sorted.
func (t *tree) moduleFiles() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.text)), func(name string) bool {
		return path.Base(name) != "go.mod" || strings.Contains(name, "testdata/")
	})
}
