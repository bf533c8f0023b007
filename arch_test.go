package riprap_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/riprap-go/riprap"

// arrows says which packages of this project a library package may import; the root package is ".". A package that is not
// listed imports none of them, and a new one is listed here together with the page that says why it exists.
var arrows = map[string][]string{
	".":                      nil,
	"deadline":               nil,
	"idempotency":            nil,
	"idempotency/storetest":  {"idempotency"},
	"idempotency/sqlstore":   {"idempotency"},
	"idempotency/redisstore": {"idempotency"},
	"riphttp":                {".", "deadline"},
	"chain":                  {"."},
	"ripgrpc":                {".", "deadline"},
	"ripotel":                {"."},
	"internal/memhttp":       nil,
}

// A rule is something that holds for the whole source tree. Its check returns what breaks it; arch_broken_test.go proves
// that it does.
type rule struct {
	name   string
	reason string
	check  func(*tree) []string
}

var rules = []rule{
	{"the root module requires nothing",
		"whoever adds riprap to a service adds no one else's code with it, and has no one else's releases to follow",
		rootRequiresNothing},
	{"every dependency is explained",
		"docs/decisions/dependencies.md is where somebody looks who has to answer for what a build contains",
		dependenciesAreExplained},
	{"every module is for the same Go",
		"the modules are built, tested and released together, in one workspace",
		sameGoEverywhere},
	{"the workspace lists every module",
		"make test sees what go.work lists, and nothing else",
		workspaceIsComplete},
	{"the core imports the standard library only",
		"the engine is where correctness is judged: it can be read from the first line to the last without leaving it",
		coreImportsStandardLibrary},
	{"edges import the core, never each other",
		"who needs the HTTP edge must not get the gRPC edge with it, and a change of one cannot break another",
		importsFollowArrows},
	{"no package is named after what it lacks",
		"a package is what one types before the dot: options.Do and util.Key say nothing about retries",
		packagesHaveNames},
	{"the library is at most two levels deep",
		"an import path is learned by heart",
		libraryIsFlat},
	{"every package has a package comment",
		"it is the first thing that go doc prints, and where the rules of use stand",
		packagesAreIntroduced},
	{"every exported name is documented",
		"the doc comment is the contract: what zero means, which errors come back, who may call it at once",
		exportsAreDocumented},
	{"no file is over 400 lines",
		"a file is one concept; two concepts are two files",
		filesAreShort},
	{"randomness comes from math/rand/v2",
		"the generator of the first version is behind a lock that all goroutines share",
		randIsV2},
	{"tests do not sleep in real time",
		"a sleep is too short on a slow machine and too long on every other; testing/synctest sleeps in no time",
		testsDoNotSleep},
	{"no path of a developer's machine",
		"what works in one person's folder works for no one else",
		noPrivatePaths},
	{"a changelog fragment begins with its kind",
		"scripts/changelog sorts the section of a version by it, and would fail on the day of the release",
		fragmentsHaveKinds},
}

func TestArchitecture(t *testing.T) {
	tree, err := parseTree(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, finding := range r.check(tree) {
				t.Errorf("%s\n\t%s, because %s", finding, r.name, r.reason)
			}
		})
	}
}

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

func rootRequiresNothing(t *tree) (findings []string) {
	for _, d := range directives(t.text["go.mod"]) {
		if verb, _, _ := strings.Cut(d, " "); verb != "module" && verb != "go" {
			findings = append(findings, "go.mod: "+d)
		}
	}
	return findings
}

func dependenciesAreExplained(t *tree) (findings []string) {
	for _, name := range t.moduleFiles() {
		for _, d := range directives(t.text[name]) {
			dependency, required := strings.CutPrefix(d, "require ")
			dependency, _, _ = strings.Cut(dependency, " ")
			if required && dependency != modulePath && !strings.HasPrefix(dependency, modulePath+"/") &&
				!strings.Contains(t.text["docs/decisions/dependencies.md"], dependency) {
				findings = append(findings, fmt.Sprintf("%s requires %s", name, dependency))
			}
		}
	}
	return findings
}

func sameGoEverywhere(t *tree) (findings []string) {
	for _, name := range append(t.moduleFiles(), "go.work") {
		list := directives(t.text[name])
		if !slices.Contains(list, "go 1.26.0") {
			findings = append(findings, name+": no line go 1.26.0")
		}
		for _, d := range list {
			if strings.HasPrefix(d, "toolchain ") {
				findings = append(findings, name+": "+d)
			}
		}
	}
	return findings
}

func workspaceIsComplete(t *tree) (findings []string) {
	listed := directives(t.text["go.work"])
	for _, name := range t.moduleFiles() {
		use := "./" + path.Dir(name)
		if name == "go.mod" {
			use = "."
		}
		if !slices.Contains(listed, "use "+use) {
			findings = append(findings, "go.work: no use "+use)
		}
	}
	return findings
}

func coreImportsStandardLibrary(t *tree) (findings []string) {
	core := []string{".", "deadline", "idempotency"}
	for s := range t.shipped {
		all, _ := s.imported()
		for _, name := range all {
			first, _, _ := strings.Cut(name, "/")
			if slices.Contains(core, s.dir()) && (strings.Contains(first, ".") || name == "C") {
				findings = append(findings, fmt.Sprintf("%s imports %s", s.path, name))
			}
		}
	}
	return findings
}

func importsFollowArrows(t *tree) (findings []string) {
	for s := range t.shipped {
		allowed, listed := arrows[s.dir()]
		if !s.library() && !listed {
			continue // commands, examples and tests may import anything
		}
		if !listed {
			findings = append(findings, fmt.Sprintf("%s: package %s is not in the table of arrows", s.path, s.Name.Name))
		}
		_, ours := s.imported()
		for _, dir := range ours {
			if !slices.Contains(allowed, dir) {
				findings = append(findings, fmt.Sprintf("%s imports %s", s.path, path.Join(modulePath, dir)))
			}
		}
	}
	return findings
}

func packagesHaveNames(t *tree) (findings []string) {
	forbidden := []string{"common", "helper", "helpers", "misc", "option", "options", "shared", "types", "util", "utils"}
	for _, s := range t.sources {
		if name := strings.TrimSuffix(s.Name.Name, "_test"); slices.Contains(forbidden, name) ||
			slices.Contains(forbidden, path.Base(s.dir())) {
			findings = append(findings, fmt.Sprintf("%s: package %s", s.path, s.Name.Name))
		}
	}
	return findings
}

func libraryIsFlat(t *tree) (findings []string) {
	for s := range t.shipped {
		if s.library() && strings.Count(s.dir(), "/") > 1 {
			findings = append(findings, s.path+": a third level")
		}
	}
	return findings
}

func packagesAreIntroduced(t *tree) (findings []string) {
	introduced := map[string]bool{}
	for s := range t.shipped {
		introduced[s.dir()] = introduced[s.dir()] || s.Doc.Text() != ""
	}
	for _, dir := range slices.Sorted(maps.Keys(introduced)) {
		if !introduced[dir] {
			findings = append(findings, dir+": no file has a comment above its package line")
		}
	}
	return findings
}

func exportsAreDocumented(t *tree) (findings []string) {
	for s := range t.shipped {
		if !s.library() {
			continue
		}
		for name, node := range undocumented(t, s) {
			findings = append(findings, fmt.Sprintf("%s:%d: %s has no doc comment", s.path, t.line(node), name))
		}
	}
	slices.Sort(findings)
	return findings
}

// undocumented yields what a file exports without a comment. A comment above a group of constants or variables, and one above
// a struct that fits a line, speaks for its members.
func undocumented(t *tree, s source) map[string]ast.Node {
	found := map[string]ast.Node{}
	note := func(prefix string, names []*ast.Ident, comments ...*ast.CommentGroup) {
		for _, name := range names {
			if name.IsExported() && !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" }) {
				found[prefix+name.Name] = name
			}
		}
	}
	for _, decl := range s.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			receiver := receiverName(decl)
			if receiver == "" || ast.IsExported(receiver) {
				prefix := strings.TrimPrefix(receiver+".", ".")
				note(prefix, []*ast.Ident{decl.Name}, decl.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					note("", spec.Names, decl.Doc, spec.Doc, spec.Comment)
				case *ast.TypeSpec:
					own := decl.Doc
					if decl.Lparen.IsValid() {
						own = nil
					}
					note("", []*ast.Ident{spec.Name}, own, spec.Doc, spec.Comment)
					oneLine := t.fset.Position(spec.Pos()).Line == t.fset.Position(spec.End()).Line
					if spec.Name.IsExported() && !oneLine {
						for _, field := range members(spec.Type) {
							note(spec.Name.Name+".", field.Names, field.Doc, field.Comment)
						}
					}
				}
			}
		}
	}
	return found
}

// receiverName returns the name of the type whose method f is, empty for a function.
func receiverName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// members returns the fields of a struct type or the methods of an interface type.
func members(expr ast.Expr) []*ast.Field {
	switch e := expr.(type) {
	case *ast.StructType:
		return e.Fields.List
	case *ast.InterfaceType:
		return e.Methods.List
	}
	return nil
}

func filesAreShort(t *tree) (findings []string) {
	for s := range t.shipped {
		if n := strings.Count(t.text[s.path], "\n"); n > 400 {
			findings = append(findings, fmt.Sprintf("%s has %d lines", s.path, n))
		}
	}
	return findings
}

func randIsV2(t *tree) (findings []string) {
	for _, s := range t.sources {
		if all, _ := s.imported(); slices.Contains(all, "math/rand") {
			findings = append(findings, s.path+" imports math/rand")
		}
	}
	return findings
}

// testsDoNotSleep lets time.Sleep pass where it costs no time and where it decides nothing: in a file that imports
// testing/synctest, and in a loop that polls for a condition.
func testsDoNotSleep(t *tree) (findings []string) {
	for _, s := range t.sources {
		if all, _ := s.imported(); !s.test || slices.Contains(all, "testing/synctest") {
			continue
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			if loop, ok := n.(*ast.ForStmt); ok && loop.Post == nil {
				return false
			}
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "time" {
					findings = append(findings, fmt.Sprintf("%s:%d: time.Sleep", s.path, t.line(sel)))
				}
			}
			return true
		})
	}
	return findings
}

func noPrivatePaths(t *tree) (findings []string) {
	for _, name := range slices.Sorted(maps.Keys(t.text)) {
		number := 0
		for line := range strings.Lines(t.text[name]) {
			number++
			for _, dir := range []string{"root", "home", "Users", "work"} {
				// Not a part of a longer path or address, such as https://example.com/home/.
				before, _, found := strings.Cut(line, "/"+dir+"/")
				last := before[max(0, len(before)-1):]
				if found && !strings.ContainsAny(cmp.Or(last, " "), "abcdefghijklmnopqrstuvwxyz0123456789./_-*})") {
					findings = append(findings, fmt.Sprintf("%s:%d: /%s/", name, number, dir))
				}
			}
		}
	}
	return findings
}

func fragmentsHaveKinds(t *tree) (findings []string) {
	kinds := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	for _, name := range slices.Sorted(maps.Keys(t.text)) {
		if path.Dir(name) != "changelog/unreleased" {
			continue
		}
		kind, _, _ := strings.Cut(t.text[name], ": ")
		if path.Ext(name) != ".md" || !slices.Contains(kinds, kind) {
			findings = append(findings, name+": want a .md file whose first line begins with a kind, such as Fixed:")
		}
	}
	return findings
}
