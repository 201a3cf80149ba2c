package rules

import "strings"

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

// checkCase notes names of the request's JSON that differ only in case from what
// the expression reads.
func (s *scope) checkCase(e *expr) {
	for _, r := range e.refs {
		if r.root != "json" || len(r.steps) == 0 {
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
