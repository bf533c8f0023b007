package riprap_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sound is a little project that keeps every rule; each entry of broken changes some of its files so that one rule does not hold.
var sound = map[string]string{
	"go.mod":  "module github.com/riprap-go/riprap\n\ngo 1.26.0\n",
	"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./cmd/riprap // the command\n)\n",
	"riprap.go": `// Package riprap tries again.
package riprap

import "context"

// Limits of a Policy.
const (
	Least = 1
	Most  = 2
)

// A Policy says when.
type Policy struct {
	// Wait is in seconds.
	Wait int
	Max  int // in seconds
	rest int
}

// A StatusError is a failure.
type StatusError struct{ Code int }

// Do does it.
func Do(ctx context.Context, p *Policy) {}

// Left tells what is left.
func (p *Policy) Left() int { return p.left() }

func (p *Policy) left() int { return p.rest }

type hidden struct{}

func (hidden) Method() {}
`,
	"example_test.go":                "package riprap_test\n\nfunc ExampleDo_twice() {}\n",
	"riphttp/riphttp.go":             "// Package riphttp is the HTTP edge.\npackage riphttp\n\nimport _ \"github.com/riprap-go/riprap\"\n",
	"riphttp/riphttp_test.go":        "package riphttp\n\nimport (\n\t\"testing/synctest\"\n\t\"time\"\n)\n\nvar _, _ = synctest.Wait, time.Sleep\n",
	"riphttp/poll_test.go":           "package riphttp\n\nimport \"time\"\n\nfunc poll(ok func() bool) {\n\tfor !ok() {\n\t\ttime.Sleep(1)\n\t}\n}\n",
	"cmd/riprap/go.mod":              "module github.com/riprap-go/riprap/cmd/riprap\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/riprap-go/riprap v0.0.0\n\tgolang.org/x/term v0.1.0\n)\n",
	"docs/decisions/dependencies.md": "golang.org/x/term\n",
	"cmd/riprap/main.go":             "// Riprap is the command.\npackage main\n\nimport _ \"github.com/riprap-go/riprap/riphttp\"\n\nfunc main() {}\n",
	"cmd/riprap/testdata/x.go":       "not Go",
	"internal/peers/go.mod":          "module b\n\ngo 1.26.0\n",
	"docs/paths.md":                  "See https://example.com/home/ and internal/work/.\n",
	"changelog/unreleased/a.md":      "Fixed: it.\n",
}

var broken = []struct {
	rule    string
	files   map[string]string
	finding string
}{
	{"the root module requires nothing", map[string]string{
		"go.mod": sound["go.mod"] + "\nrequire (\n\tgolang.org/x/net v0.1.0\n)\n"}, "go.mod: require golang.org/x/net v0.1.0"},
	{"the root module requires nothing", map[string]string{
		"go.mod": sound["go.mod"] + "\ntool example.com/a\n"}, "go.mod: tool example.com/a"},
	{"every dependency is explained", map[string]string{
		"cmd/riprap/go.mod": sound["cmd/riprap/go.mod"] + "\nrequire golang.org/x/net v0.1.0\n"}, "cmd/riprap/go.mod requires golang.org/x/net"},
	{"every module is for the same Go", map[string]string{
		"cmd/riprap/go.mod": "module a\n\ngo 1.25.0\n"}, "cmd/riprap/go.mod: no line go 1.26.0"},
	{"every module is for the same Go", map[string]string{
		"go.work": sound["go.work"] + "toolchain go1.26.1\n"}, "go.work: toolchain go1.26.1"},
	{"the workspace lists every module", map[string]string{
		"ripgrpc/go.mod": "module a\n\ngo 1.26.0\n"}, "go.work: no use ./ripgrpc"},
	{"the workspace lists every module", map[string]string{
		"go.work": sound["go.work"] + "use ./internal/peers\n"}, "go.work: use ./internal/peers"},
	{"the core imports the standard library only", map[string]string{
		"deadline/deadline.go": "// Package deadline is.\npackage deadline\n\nimport _ \"golang.org/x/net/http2\"\n"},
		"deadline/deadline.go imports golang.org/x/net/http2"},
	{"edges import the core, never each other", map[string]string{
		"deadline/deadline.go": "// Package deadline is.\npackage deadline\n\nimport _ \"github.com/riprap-go/riprap\"\n"},
		"deadline/deadline.go imports github.com/riprap-go/riprap"},
	{"edges import the core, never each other", map[string]string{
		"ripgrpc/grpc.go": "// Package ripgrpc is.\npackage ripgrpc\n\nimport _ \"github.com/riprap-go/riprap/riphttp\"\n"},
		"ripgrpc/grpc.go imports github.com/riprap-go/riprap/riphttp"},
	{"edges import the core, never each other", map[string]string{
		"cmd/riprap/internal/lab/sim/sim.go": "// Package sim is.\npackage sim\n\nimport _ \"github.com/riprap-go/riprap/cmd/riprap/internal/lab/rival\"\n"},
		"cmd/riprap/internal/lab/sim/sim.go imports github.com/riprap-go/riprap/cmd/riprap/internal/lab/rival"},
	{"edges import the core, never each other", map[string]string{
		"ripsoap/soap.go": "// Package ripsoap is.\npackage ripsoap\n"}, "ripsoap/soap.go: package ripsoap is not in the table"},
	{"no package is named after what it lacks", map[string]string{
		"cmd/riprap/internal/util/util.go": "// Package util is.\npackage util\n"}, "cmd/riprap/internal/util/util.go: package util"},
	{"the library is at most two levels deep", map[string]string{
		"riphttp/hint/date/date.go": "// Package date is.\npackage date\n"}, "riphttp/hint/date/date.go: a third level"},
	{"every package has a package comment", map[string]string{
		"cmd/riprap/main.go": "package main\n\nfunc main() {}\n"}, "cmd/riprap: no file has a comment"},
	{"every exported name is documented", map[string]string{
		"a.go": "package riprap\n\nfunc After() {}\n"}, "a.go:3: After has no doc comment"},
	{"every exported name is documented", map[string]string{
		"a.go": "package riprap\n\nfunc (p *Policy) Right() {}\n"}, "a.go:3: Policy.Right has no doc comment"},
	{"every exported name is documented", map[string]string{
		"a.go": "package riprap\n\n// A T is.\ntype T[K, V any] struct{}\n\nfunc (t *T[K, V]) Of() {}\n"}, "a.go:6: T.Of has no doc comment"},
	{"every exported name is documented", map[string]string{
		"a.go": "package riprap\n\nvar ErrBudget error\n"}, "a.go:3: ErrBudget has no doc comment"},
	{"every exported name is documented", map[string]string{
		"a.go": "package riprap\n\n// Types.\ntype (\n\tA int\n)\n"}, "a.go:5: A has no doc comment"},
	{"every exported name is documented", map[string]string{
		"a.go": "package riprap\n\n// A T is.\ntype T struct {\n\tA, b int\n}\n"}, "a.go:5: T.A has no doc comment"},
	{"every exported name is documented", map[string]string{
		"a.go": "package riprap\n\n// An I is.\ntype I interface {\n\tDo()\n}\n"}, "a.go:5: I.Do has no doc comment"},
	{"every exported function has an example", map[string]string{
		"a.go": "package riprap\n\n// Redo does it.\nfunc Redo() {}\n"}, "a.go:4: Redo has no example"},
	{"every exported function has an example", map[string]string{
		"riphttp/a.go": "package riphttp\n\n// Do is of another package than the one that has an example.\nfunc Do() {}\n"}, "riphttp/a.go:4: Do has no example"},
	{"no file is over 400 lines", map[string]string{
		"a.go": "package riprap\n" + strings.Repeat("\n", 400)}, "a.go has 401 lines"},
	{"no file is over 400 lines", map[string]string{
		"a_test.go": "package riprap\n" + strings.Repeat("\n", 400)}, "a_test.go has 401 lines"},
	{"randomness comes from math/rand/v2", map[string]string{
		"a_test.go": "package riprap\n\nimport _ \"math/rand\"\n"}, "a_test.go imports math/rand"},
	{"tests do not sleep in real time", map[string]string{
		"a_test.go": "package riprap\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"}, "a_test.go:5: time.Sleep"},
	{"tests do not sleep in real time", map[string]string{
		"a_test.go": "package riprap\n\nimport \"time\"\n\nfunc f() {\n\tfor i := 0; i < 9; i++ {\n\t\ttime.Sleep(1)\n\t}\n}\n"},
		"a_test.go:7: time.Sleep"},
	{"no path of a developer's machine", map[string]string{
		"docs/a.md": "Text.\n\nOpen `/" + "home/me/riprap`.\n"}, "docs/a.md:3: /" + "home/"},
	{"no path of a developer's machine", map[string]string{
		"scripts/a": "/" + "root/go/bin/benchstat\n"}, "scripts/a:1: /" + "root/"},
	{"a changelog fragment begins with its kind", map[string]string{
		"changelog/unreleased/b.md": "Mended: it.\n"}, "changelog/unreleased/b.md: want"},
}

func TestRulesPassASoundProject(t *testing.T) {
	for _, r := range rules {
		if findings := r.check(little(t, nil)); len(findings) > 0 {
			t.Errorf("%s: found %q, want nothing", r.name, findings)
		}
	}
}

func TestEveryRuleFindsWhatBreaksIt(t *testing.T) {
	proven := map[string]bool{}
	for _, b := range broken {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.name == b.rule })
		if i < 0 {
			t.Errorf("there is no rule %q", b.rule)
			continue
		}
		proven[b.rule] = true
		findings := rules[i].check(little(t, b.files))
		if len(findings) != 1 || !strings.Contains(findings[0], b.finding) {
			t.Errorf("%s: found %q, want only %q", b.rule, findings, b.finding)
		}
	}
	for _, r := range rules {
		if !proven[r.name] {
			t.Errorf("nothing breaks the rule %q", r.name)
		}
	}
}

// little returns the sound project with some files changed or added.
func little(t *testing.T, changes map[string]string) *tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, files := range []map[string]string{sound, changes} {
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	tree, err := parseTree(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
