package arch

import (
	"go/ast"
	"path"
)

// checkSleep refuses time.Sleep in tests, which is either too short on a busy
// machine or slow on an idle one. Inside a function given to synctest.Test it
// is the way to move fake time, and takes none.
func checkSleep(s source) []Finding {
	clock, imported := localName(s, "time")
	if !s.test || !imported {
		return nil
	}
	bubble, hasBubbles := localName(s, "testing/synctest")
	var findings []Finding
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && hasBubbles && isSelector(call.Fun, bubble, "Test") {
			return false
		}
		if e, ok := n.(ast.Expr); ok && isSelector(e, clock, "Sleep") {
			findings = append(findings, s.at(e.Pos(), "time.Sleep in a test: wait for a signal, or use testing/synctest"))
		}
		return true
	})
	return findings
}

// localName returns the name by which a file refers to a package.
func localName(s source, lib string) (string, bool) {
	for _, spec := range s.ast.Imports {
		if importPath(spec) != lib {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name, true
		}
		return path.Base(lib), true
	}
	return "", false
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
