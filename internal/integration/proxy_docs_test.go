package integration

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The type of each problem leads to a heading of docs/proxy.md; that the table's links do is seen by the test of links.
func TestDocsListTheProblemsOfTheProxy(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), "cmd/riprap/internal/proxy/problem.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	statuses, final := map[string]string{}, map[string]string{}
	ast.Inspect(source, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if name, ok := literal.Type.(*ast.Ident); !ok || name.Name != "problem" {
			return true
		}
		fields := map[string]string{}
		for _, element := range literal.Elts {
			if field, ok := element.(*ast.KeyValueExpr); ok {
				switch value := field.Value.(type) {
				case *ast.BasicLit:
					fields[fmt.Sprint(field.Key)] = strings.Trim(value.Value, `"`)
				case *ast.Ident:
					fields[fmt.Sprint(field.Key)] = strings.Replace(value.Name, "true", "yes", 1)
				}
			}
		}
		name := fields["Type"]
		if statuses[name] == "" {
			types = append(types, name)
			statuses[name] = fields["Status"]
		} else {
			statuses[name] += ", " + fields["Status"]
		}
		final[name] = fields["final"]
		return true
	})
	want := "| problem | status | `X-Should-Retry: false` |\n|---|--:|---|\n"
	for _, name := range types {
		want += strings.ReplaceAll(fmt.Sprintf("| [%[1]s](#%[1]s) | %s | %s |\n", name, statuses[name], final[name]), "|  |", "| |")
	}
	text, err := os.ReadFile(filepath.Join(root(t), "docs/proxy.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(types) < 2 || !strings.Contains(string(text), "\n"+want+"\n") {
		t.Errorf("docs/proxy.md: its table of problems is not that of the %d in problem.go:\n%s", len(types), want)
	}
}

// What a reader copies into a file of his own is the file that is checked and started.
func TestDocsShowTheFileOfTheProxy(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs/proxy.md"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(root(t), "deploy/riprap.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n```yaml\n"+string(file)+"```\n") {
		t.Errorf("docs/proxy.md does not show deploy/riprap.yaml, which is\n%s", file)
	}
}

func TestDocsAlertOnMetricsThatThereAre(t *testing.T) {
	read := func(page string) string {
		text, err := os.ReadFile(filepath.Join(root(t), "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	metrics, page := read("metrics.md"), read("proxy.md")
	named := regexp.MustCompile(`(riprap_[a-z_]+)(?:\{(\w+)=~?"([^"]*)")?`).FindAllStringSubmatch(page, -1)
	if len(named) < 5 {
		t.Fatalf("docs/proxy.md names %d metrics, want those to be alerted on", len(named))
	}
	for _, m := range named {
		row := regexp.MustCompile("(?m)^\\| `" + m[1] + "` .*$").FindString(metrics)
		if row == "" || m[2] != "" && !regexp.MustCompile(`[ |]`+m[2]+`[ ,]`).MatchString(row) {
			t.Errorf("docs/proxy.md has an alert on %s, which is not in docs/metrics.md, or not by %q", m[1], m[2])
		}
		for value := range strings.SplitSeq(m[3], `\|`) {
			if value != "" && !strings.Contains(metrics, "`"+value+"`") && !strings.Contains(page, "\n### "+value+"\n") {
				t.Errorf("docs/proxy.md has an alert on %s by %s %q, which no page knows", m[1], m[2], value)
			}
		}
	}
}
