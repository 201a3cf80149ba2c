package rules

import (
	"slices"
	"strings"
	"unicode"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// Parsers differ on case: encoding/json of Go and most of .NET take "Amount" for "amount", almost all others don't.
// Where a rule reads or writes a name, another name beside it that differs only in case is refused. That holds whether
// the name itself is there or not. Names that no rule names may be as they like.

// isVariant reports whether name differs from the one that is meant only in case,
// as Unicode folds it.
func isVariant(name, meant string) bool { return name != meant && strings.EqualFold(name, meant) }

// refuseVariant is the refusal for a name in another case.
func refuseVariant(what, name string) *Refusal {
	return refuse(ProblemAmbiguous, "the "+what+" holds a name that differs only in case from one that the rule names ("+name+
		"), and servers differ on whether that is the same; send one spelling")
}

// variantIn follows the steps from v. It finds the first name on the way that has a neighbour which differs only in
// case.
func variantIn(v *jsonValue, steps []placeStep) (name string, found bool) {
	for i, step := range steps {
		if v == nil {
			return "", false
		}
		switch step.kind {
		case stepAll:
			for j := range v.items {
				if name, found := variantIn(&v.items[j], steps[i+1:]); found && v.kind == jsonArray {
					return name, true
				}
			}
			return "", false
		case stepName:
			for _, other := range v.names {
				if isVariant(other, step.name) {
					return step.name, true
				}
			}
		case stepIndex:
		}
		v, _ = v.step(step)
	}
	return "", false
}

// variantsBelow finds two names of one object, at v or below it, that differ only in case. It also finds one that
// differs so from what is read there.
func variantsBelow(v *jsonValue, read []string) (name string, found bool) {
	if v == nil {
		return "", false
	}
	if v.kind == jsonObject {
		if name, found := variantAmong(v.names, read); found {
			return name, true
		}
	}
	for i := range v.items {
		if name, found := variantsBelow(&v.items[i], read); found {
			return name, true
		}
	}
	return "", false
}

// variantAmong finds two names that differ only in case, or one that differs so from what is read.
func variantAmong(names, read []string) (name string, found bool) {
	var seen map[string]bool
	if len(names) > 1 {
		seen = make(map[string]bool, len(names))
	}
	for _, name := range names {
		for _, meant := range read {
			if isVariant(name, meant) {
				return meant, true
			}
		}
		if seen == nil {
			continue
		}
		folded := fold(name)
		if seen[folded] {
			return name, true
		}
		seen[folded] = true
	}
	return "", false
}

// fold brings the letters of a text to one case, as strings.EqualFold compares them.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, s)
}

// variables are what an expression may begin with; any other name there is a macro's own.
var variables = []string{
	"method", "authority", "host", "path", "query", "form", "header", "query_all", "form_all", "json", "body_sha256", "body_md5",
	"multipart", "graphql", "jsonrpc", "mail", "aws",
	"account", "mutation", "steps", "response", "found", "object", "stored",
}

// roaming reports whether an expression reads names that no chain from a variable tells. They are of the elements or
// members that it goes through, of a function's result, or under a computed index. Those of them that are written out
// are names.
func roaming(e ast.Expr) (roams bool, names []string) {
	note := func(step ast.Expr) {
		if s, literal := literalStep(step); literal && s.kind == stepName {
			names = append(names, s.name)
		}
	}
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		root, _, chain := accessOf(e)
		chain = chain && slices.Contains(variables, root)
		switch {
		case chain:
		case e.Kind() == ast.ComprehensionKind:
			roams = true
		case e.Kind() == ast.SelectKind:
			roams, names = true, append(names, e.AsSelect().FieldName())
		case e.Kind() == ast.CallKind:
			c := e.AsCall()
			switch c.FunctionName() {
			case operators.Index, operators.OptIndex, operators.OptSelect:
				roams = true
				note(c.Args()[1])
			case operators.In:
				roams = true
				note(c.Args()[0])
			}
		}
	}))
	return roams, names
}

// checkCase notes names that differ only in case from what the expression reads. It looks in the request's body, and in
// what query_all and form_all list. Where it roams it may read any name.
func (s *scope) checkCase(e *expr) {
	for _, r := range e.refs {
		switch r.root {
		case "json", "multipart", "aws":
			if name, found := s.variantOf(e, r); found {
				s.note(refuseVariant(map[string]string{"json": "JSON body", "multipart": "multipart body", "aws": "body"}[r.root], name))
				return
			}
		case "query_all", "form_all":
			what, list := "query", s.queryPairs
			if r.root == "form_all" {
				what, list = "form", s.form
			}
			read, names := e.roamed, pairNames(list())
			if len(r.steps) > 0 {
				read, names = []string{r.steps[0].name}, slices.DeleteFunc(names, func(name string) bool { return !isVariant(name, r.steps[0].name) })
			}
			if name, found := variantAmong(names, read); found {
				s.note(refuseVariant(what, name))
				return
			}
		}
	}
}

// variantOf finds the name in the request's body that differs only in case from what an expression reads. It follows
// the steps of one value, and goes beyond them where the expression roams.
func (s *scope) variantOf(e *expr, r place) (name string, found bool) {
	v := s.tree(r.root)
	if e.roams {
		at := v
		for i := 0; at != nil && i < len(r.steps); i++ {
			at, _ = at.step(r.steps[i])
		}
		if name, found := variantsBelow(at, e.roamed); found {
			return name, true
		}
	}
	return variantIn(v, r.steps)
}

// checkSecrets refuses a secret place that is spelt in another case: it would be
// stored in clear.
func (op *Operation) checkSecrets(s *scope) *Refusal {
	for _, p := range op.secret {
		switch p.root {
		case "json":
			if name, found := variantIn(s.req.read().json, p.steps); found {
				return refuseVariant("JSON body", name)
			}
		case "form", "query":
			list := s.req.read().form
			if p.root == "query" {
				list = s.payloadQuery()
			}
			if name, _ := p.name(); list != nil && list.variant(name) {
				return refuseVariant(p.root, name)
			}
		}
	}
	return nil
}
