// Package integration holds the tests that need more than Go's standard library and one package: the documents, the
// scripts, other people's servers and clients.
package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root returns the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDocsLinksResolve(t *testing.T) {
	fsys := os.DirFS(root(t))
	docs, err := documents(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, dead := range deadLinks(fsys, docs) {
		t.Error(dead)
	}
}

func TestDocsIndexListsEveryDecision(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root(t), "docs/decisions/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root(t), "docs/decisions/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if name != "README.md" && !strings.Contains(string(text), "]("+name+")") {
			t.Errorf("docs/decisions/README.md has no row for %s", name)
		}
	}
}

func TestDocsSnippetsCompile(t *testing.T) {
	docs, err := documents(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	var snippets []block
	for _, doc := range docs {
		for _, b := range doc.blocks {
			if b.lang == "go" {
				snippets = append(snippets, b)
			}
		}
	}
	for _, finding := range vet(t, snippets) {
		t.Error(finding)
	}
}

// setUp returns the commands of the sh blocks under the heading Set-up, comments left out and continued lines joined.
func setUp(doc document) (commands []string) {
	for _, b := range doc.blocks {
		if b.lang != "sh" || !strings.EqualFold(b.heading, "set-up") {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				commands = append(commands, line)
			}
		}
	}
	return commands
}

func TestSetUpCommandsAreThoseOfTheirBlocks(t *testing.T) {
	doc := parse("README.md", "## Set-up\n\n```sh\nmake test   # all of it\n# then\ngo run ./cmd/riprap \\\n  demo\n```\n\n"+
		"```go\nnot()\n```\n\n## Use\n\n```sh\nnot this\n```\n")
	want := []string{"make test", "go run ./cmd/riprap    demo"}
	if got := setUp(doc); !slices.Equal(got, want) {
		t.Errorf("setUp: got %q, want %q", got, want)
	}
}

// snippetPath is where vet puts a snippet; the line comments in it name the document.
var snippetPath = regexp.MustCompile(`\S*snippet[0-9]+/`)

// vet completes snippets to packages of a module that sees every module of the workspace, and returns what go vet finds.
func vet(t *testing.T, snippets []block) (findings []string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range snippets {
		text, err := complete(b)
		if err != nil {
			findings = append(findings, err.Error())
			continue
		}
		write(fmt.Sprintf("snippet%d/snippet.go", i), text)
	}
	if len(findings) == len(snippets) {
		return findings // nothing is left for go vet
	}

	modules := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "use {{printf \"%q\" .Dir}}")
	modules.Dir = root(t)
	uses, err := modules.Output()
	if err != nil {
		t.Fatalf("%v: %v", modules, err)
	}
	write("go.mod", "module snippets\n\ngo 1.26.0\n")
	write("go.work", "go 1.26.0\n\nuse .\n"+string(uses))

	// A snippet may stop short: what follows its return is ours.
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-unreachable=false", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return findings
	}
	for line := range strings.Lines(snippetPath.ReplaceAllString(string(out), "")) {
		if !strings.HasPrefix(line, "# ") {
			findings = append(findings, strings.TrimSpace(line))
		}
	}
	return append(findings, fmt.Sprint("go vet of the snippets: ", err))
}
