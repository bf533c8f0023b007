package riprap_test

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

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

// functionsHaveExamples looks at functions, not at methods: their type's example shows those.
func functionsHaveExamples(t *tree) (findings []string) {
	shown := map[string]bool{} // folder and name
	for _, s := range t.sources {
		for _, decl := range s.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && s.test && f.Recv == nil {
				name, _, _ := strings.Cut(f.Name.Name, "_")
				shown[s.dir()+" "+name] = true
			}
		}
	}
	for s := range t.shipped {
		for _, decl := range s.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && s.library() && f.Recv == nil && f.Name.IsExported() && !shown[s.dir()+" Example"+f.Name.Name] {
				findings = append(findings, fmt.Sprintf("%s:%d: %s has no example", s.path, t.line(f), f.Name.Name))
			}
		}
	}
	return findings
}
