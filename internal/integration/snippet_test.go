package integration

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packages are those that a snippet may use without an import, by the name it uses.
var packages = map[string]string{
	"bytes": "bytes", "cmp": "cmp", "context": "context", "errors": "errors", "fmt": "fmt", "io": "io", "json": "encoding/json",
	"log": "log", "maps": "maps", "math": "math", "net": "net", "os": "os", "slices": "slices",
	"slog": "log/slog", "sql": "database/sql", "strconv": "strconv", "strings": "strings", "sync": "sync",
	"synctest": "testing/synctest", "testing": "testing", "time": "time",
	"http": "net/http", "httptest": "net/http/httptest", "httputil": "net/http/httputil", "url": "net/url",
	"audit":       "github.com/riprap-go/riprap/audit",
	"chain":       "github.com/riprap-go/riprap/chain",
	"deadline":    "github.com/riprap-go/riprap/deadline",
	"idempotency": "github.com/riprap-go/riprap/idempotency",
	"sqlstore":    "github.com/riprap-go/riprap/idempotency/sqlstore",
	"storetest":   "github.com/riprap-go/riprap/idempotency/storetest",
	"riprap":      "github.com/riprap-go/riprap",
	"riphttp":     "github.com/riprap-go/riprap/riphttp",
	"ripotel":     "github.com/riprap-go/riprap/ripotel",
	// Two packages bear the name; a snippet that wants a secret says rand.Text.
	"rand": "math/rand/v2", "rand.Text": "crypto/rand",
}

// givens are the variables that a snippet may use without declaring them. What else it needs stands in its block's given.
var givens = map[string]string{
	"ctx": "context.Context", "err": "error",
	"client": "*http.Client", "req": "*http.Request",
	"db": "*sql.DB", "policy": "*riprap.Policy",
	"w": "http.ResponseWriter", "r": "*http.Request", "handler": "http.Handler",
}

// complete makes a Go file of a snippet. A snippet with a package line is one already; declarations stand by themselves;
// statements become the body of a function, whose results are as many as the snippet returns. Compilers report the
// snippet's own file and line.
func complete(b block) (string, error) {
	at := fmt.Sprintf("//line %s:%d\n", b.file, b.line)
	fset := token.NewFileSet()
	const mode = parser.ParseComments | parser.SkipObjectResolution
	if file, err := parser.ParseFile(fset, "", at+b.text, parser.PackageClauseOnly); err == nil && file.Name != nil {
		_, err := parser.ParseFile(fset, "", at+b.text, mode)
		return at + b.text, err
	}

	// Its own imports stay on top in either case, so that the rest may be statements.
	imports, rest, err := splitImports(b, mode)
	if err != nil {
		return "", err
	}
	if file, err := parser.ParseFile(fset, "", "package snippet\n"+rest+b.given, mode); err == nil {
		return "package snippet\n" + imports + needs(file, imports) + rest + b.given, nil
	}
	file, err := parser.ParseFile(fset, "", "package snippet\nfunc _() {\n"+rest+"\n}\n"+b.given, mode)
	if err != nil {
		return "", err
	}
	body := file.Decls[0].(*ast.FuncDecl).Body
	result := [...]string{"", "error", "(any, error)"}[min(results(body), 2)]
	return "package snippet\n" + imports + needs(file, imports) + "func _() " + result + " {\n" + rest +
		"\n" + uses(body) + "panic(0)\n}\n" + b.given, nil
}

// splitImports parts the import declarations at the top of a snippet from the rest, each with the line it came from.
func splitImports(b block, mode parser.Mode) (imports, rest string, err error) {
	at := fmt.Sprintf("//line %s:%d\n", b.file, b.line)
	const clause = "package snippet\n"
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", clause+b.text, parser.ImportsOnly|mode)
	if err != nil || len(file.Decls) == 0 {
		return "", at + b.text, nil // what is wrong, if anything is, shows when the whole is parsed
	}
	end := fset.PositionFor(file.Decls[len(file.Decls)-1].End(), false)
	split := end.Offset - len(clause)
	line := b.line + end.Line - 2
	return at + b.text[:split] + "\n", fmt.Sprintf("//line %s:%d\n", b.file, line) + b.text[split:], nil
}

// needs declares the packages and givens that a file uses. The givens stand outside the snippet's function, so that its own
// variables may have their names.
func needs(file *ast.File, imports string) string {
	used, declared, outside := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			outside[decl.Name.Name] = decl.Recv == nil
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range spec.Names {
						outside[name.Name] = true
					}
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			used[n.Name] = true
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok {
				used[pkg.Name+"."+n.Sel.Name] = true
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					declared[id.Name] = true
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				declared[name.Name] = true
			}
		case *ast.Field:
			for _, name := range n.Names {
				declared[name.Name] = true
			}
		}
		return true
	})

	var lines []string
	for _, name := range slices.Sorted(maps.Keys(givens)) {
		if used[name] && !outside[name] {
			lines = append(lines, fmt.Sprintf("var %s %s\n", name, givens[name]))
			pkg, _, _ := strings.Cut(strings.TrimPrefix(givens[name], "*"), ".")
			used[pkg] = used[pkg] || pkg != "error"
		}
	}
	used["rand"] = used["rand"] && !used["rand.Text"]
	for _, use := range slices.Sorted(maps.Keys(packages)) {
		name, _, _ := strings.Cut(use, ".")
		if used[use] && !declared[name] && !strings.Contains(imports, strconv.Quote(packages[use])) {
			lines = slices.Insert(lines, 0, fmt.Sprintf("import %s %q\n", name, packages[use]))
		}
	}
	return strings.Join(lines, "")
}

// results returns how many values the return statements of a body give, leaving out those of functions inside it.
func results(body *ast.BlockStmt) (n int) {
	ast.Inspect(body, func(node ast.Node) bool {
		if ret, ok := node.(*ast.ReturnStmt); ok {
			n = max(n, len(ret.Results))
		}
		_, inside := node.(*ast.FuncLit)
		return !inside
	})
	return n
}

// uses mentions the variables that the statements of a body declare: a snippet may end before it uses them.
func uses(body *ast.BlockStmt) string {
	var text strings.Builder
	mention := func(expr ast.Expr) {
		if id, ok := expr.(*ast.Ident); ok && id.Name != "_" {
			fmt.Fprintf(&text, "_ = &%s\n", id.Name) // not a copy, which vet may forbid
		}
	}
	for _, stmt := range body.List {
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			if stmt.Tok == token.DEFINE {
				for _, left := range stmt.Lhs {
					mention(left)
				}
			}
		case *ast.DeclStmt:
			if decl, ok := stmt.Decl.(*ast.GenDecl); ok && decl.Tok == token.VAR {
				for _, spec := range decl.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						mention(name)
					}
				}
			}
		}
	}
	return text.String()
}

func TestSnippetsOfEveryShapeCompile(t *testing.T) {
	var snippets []block
	for i, text := range []string{
		"package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n",
		"func pay(ctx context.Context) error {\n\treturn riprap.Do(ctx, nil, func(ctx context.Context) error { return nil })\n}\n",
		"type T struct{ Client *http.Client }\n\nvar policy = riprap.Policy{MaxAttempts: 3}\n",
		"err := riprap.Do(ctx, nil, func(ctx context.Context) error {\n\treturn nil\n})\n",
		"client := &http.Client{Timeout: time.Second}\nresp, err := client.Do(req)\n",
		"resp, err := client.Do(req)\nif err != nil {\n\treturn nil, err\n}\nreturn resp, nil\n",
		"if err := riprap.Do(ctx, nil, nil); errors.Is(err, riprap.ErrBudget) {\n\treturn err\n}\n",
		"import (\n\t\"fmt\"\n\tr2 \"math/rand/v2\"\n)\n\nfmt.Println(r2.Float64(), math.Pi)\n",
		"import \"fmt\"\n\nfunc f() { fmt.Println() }\n",
		"url := \"https://example.com\"\nresp, err := http.Get(url)\n",
		"func ctx() {}\n\nvar handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})\n",
		"key := rand.Text()\n",
		"wait := rand.N(policy.MaxWait)\n",
		"// A comment first.\nvar budget riprap.Budget\npolicy := riprap.Policy{Budget: &budget}\n",
	} {
		snippets = append(snippets, block{file: fmt.Sprintf("shape%d.md", i), line: 10, text: text})
	}
	for _, finding := range vet(t, snippets) {
		t.Error(finding)
	}
}

func TestSnippetThatDoesNotCompileIsNamedByFileAndLine(t *testing.T) {
	faults := []struct {
		text string
		line int // the first of the text is 10
	}{
		{"package main\n\nfunc main() { missing() }\n", 12},
		{"func f() {\n\tmissing()\n}\n", 11},
		{"client := &http.Client{}\nclient.Missing()\n", 11},
		{"import \"fmt\"\n\nfmt.Println()\nfmt.Missing()\n", 13},
		{"client := &http.Client{}\nif {\n}\n", 11},
		{"package main\n\nfunc main() {\n", 12},
		{"err := fmt.Errorf(\"%d\", \"text\")\n", 10},
		{"err := riprap.Do(ctx, nil, func() error { return nil })\n", 10},
		{"resp, err := client.Get(\"x\")\ndefer resp.Body.Close()\n_ = err\n", 11},
	}
	var snippets []block
	for i, f := range faults {
		snippets = append(snippets, block{file: fmt.Sprintf("fault%d.md", i), line: 10, text: f.text})
	}
	findings := vet(t, snippets)
	for i, f := range faults {
		want := fmt.Sprintf("fault%d.md:%d:", i, f.line)
		if !slices.ContainsFunc(findings, func(finding string) bool { return strings.Contains(finding, want) }) {
			t.Errorf("vet finds no fault at %s in\n%s\nbut %q", want, f.text, findings)
		}
	}
}

func TestSnippetMayHaveHiddenDeclarations(t *testing.T) {
	doc := parse("queue.md", "<!-- go\nvar m struct{ Attempts int }\nfunc handle(context.Context) error { return nil }\n-->\n"+
		"```go\nerr := handle(ctx)\nm.Attempts++\n```\n\n```go\nhandle(ctx)\n```\n")
	findings := vet(t, doc.blocks[:1])
	if len(findings) > 0 {
		t.Errorf("with its declarations: vet says %q", findings)
	}
	findings = vet(t, doc.blocks[1:])
	if len(findings) == 0 || !strings.Contains(findings[0], "queue.md:11: undefined: handle") {
		t.Errorf("the next snippet, which has none: vet says %q, want handle to be undefined at queue.md:11", findings)
	}
}
