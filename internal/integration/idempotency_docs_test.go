package integration

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The type of each problem leads to a heading of docs/idempotency.md; that the table's links do is seen by the test of links.
func TestDocsListTheProblemsOfTheMiddleware(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), "idempotency", "problem.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	want := "| problem | status | `retry_same_key` | `safe_new_key` |\n|---|--:|---|---|\n"
	found := 0
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
		found++
		want += fmt.Sprintf("| [%[1]s](#%[1]s) | %s | %s | %s |\n", fields["Type"], fields["Status"],
			cmp.Or(fields["RetrySameKey"], "no"), cmp.Or(fields["SafeNewKey"], "no"))
		return true
	})
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "idempotency.md"))
	if err != nil {
		t.Fatal(err)
	}
	if found < 2 || !strings.Contains(string(text), "\n"+want+"\n") {
		t.Errorf("docs/idempotency.md: its table of problems is not that of the %d in idempotency/problem.go:\n%s", found, want)
	}
}
