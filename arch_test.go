package riprap_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/riprap-go/riprap"

// arrows says which packages of this project a package may import; the root package is ".". A library package that is not
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
	"audit":                  {"flaky", "internal/selfsigned"},
	"ripgrpc":                {"."},
	"ripotel":                {".", "riphttp"}, // reasons to give up are also riphttp's, and need no further module
	"flaky":                  {"internal/suggest"},
	"internal/memhttp":       nil,
	"internal/pgtest":        nil,

	// What the library and the command both need, and no user of the library by itself. They know neither.
	"internal/selfsigned": nil,
	"internal/suggest":    nil,

	// Of the command, those that must know nothing of what they are used for: what is simulated is riprap itself, not what it
	// is compared with, and pictures are of any numbers.
	"cmd/riprap/internal/lab/sim":   {"."},
	"cmd/riprap/internal/lab/rival": nil,
	"cmd/riprap/internal/lab/chart": nil,
	"cmd/riprap/internal/terminal":  nil,
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
		"make test sees what go.work lists, and nothing else; the clients of other projects under internal/peers are to stay out of it",
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
	{"every exported function has an example",
		"a reader copies before reading on, and an example that is run does not rot",
		functionsHaveExamples},
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

func rootRequiresNothing(t *tree) (findings []string) {
	for _, d := range directives(t.text["go.mod"]) {
		if verb, _, _ := strings.Cut(d, " "); verb != "module" && verb != "go" {
			findings = append(findings, "go.mod: "+d)
		}
	}
	return findings
}

var brought = regexp.MustCompile(`.*// indirect\n`)

// dependenciesAreExplained does not ask what the module brings along in which Caddy is built to be measured: it requires some 150
// modules, none of which is in anything of ours.
func dependenciesAreExplained(t *tree) (findings []string) {
	for _, name := range t.moduleFiles() {
		text := t.text[name]
		if name == "internal/peers/caddy/go.mod" {
			text = brought.ReplaceAllString(text, "")
		}
		for _, d := range directives(text) {
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

// workspaceIsComplete lets no module under internal/peers into the workspace: there make test would build libraries of other
// projects, and their requirements would decide about the versions that the command and the tests are built with.
func workspaceIsComplete(t *tree) (findings []string) {
	listed := directives(t.text["go.work"])
	for _, name := range t.moduleFiles() {
		use := "./" + path.Dir(name)
		if name == "go.mod" {
			use = "."
		}
		switch isListed := slices.Contains(listed, "use "+use); {
		case strings.HasPrefix(name, "internal/peers/"):
			if isListed {
				findings = append(findings, "go.work: use "+use)
			}
		case !isListed:
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

func filesAreShort(t *tree) (findings []string) {
	for _, s := range t.sources {
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
