package rules

import (
	"strings"
	"unicode"

	"cel.dev/cel-go/common/ast"
)

// Parsers differ on case: encoding/json of Go and most of .NET take "Amount" for
// "amount", almost all others don't. Where a rule reads or writes a name, another
// name beside it that differs only in case is therefore refused, whether the name
// itself is there or not. Names that no rule names may be as they like.

// isVariant reports whether name differs from the one that is meant only in case,
// as Unicode folds it.
func isVariant(name, meant string) bool { return name != meant && strings.EqualFold(name, meant) }

// refuseVariant is the refusal for a name in another case.
func refuseVariant(what, name string) *Refusal {
	return refuse(ProblemAmbiguous, "the "+what+" holds a name that differs only in case from one that the rule names ("+name+
		"), and servers differ on whether that is the same; send one spelling")
}

// variantIn follows the steps from v and finds the first name on the way that has
// a neighbour which differs only in case.
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

// variantsBelow finds two names of one object, at v or below it, that differ only in case.
func variantsBelow(v *jsonValue) (name string, found bool) {
	if v == nil {
		return "", false
	}
	if v.kind == jsonObject && len(v.names) > 1 {
		seen := make(map[string]bool, len(v.names))
		for _, name := range v.names {
			folded := fold(name)
			if seen[folded] {
				return name, true
			}
			seen[folded] = true
		}
	}
	for i := range v.items {
		if name, found := variantsBelow(&v.items[i]); found {
			return name, true
		}
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

// hasLoop reports whether an expression goes through a list or a map.
func hasLoop(e ast.Expr) bool {
	found := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) { found = found || e.Kind() == ast.ComprehensionKind }))
	return found
}

// checkCase notes names of the request's JSON that differ only in case from what
// the expression reads. Of what it goes through it may read any name.
func (s *scope) checkCase(e *expr) {
	for _, r := range e.refs {
		if r.root != "json" {
			continue
		}
		if e.loops {
			v := s.json()
			for i := 0; v != nil && i < len(r.steps); i++ {
				next, there := v.step(r.steps[i])
				if !there {
					break
				}
				v = next
			}
			if name, found := variantsBelow(v); found {
				s.note(refuseVariant("JSON body", name))
				return
			}
		}
		if len(r.steps) == 0 {
			continue
		}
		if name, found := variantIn(s.json(), r.steps); found {
			s.note(refuseVariant("JSON body", name))
			return
		}
	}
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
