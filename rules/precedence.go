package rules

import (
	"slices"
	"strings"
)

// precedence refuses operations that both fit a request unless one names the
// other in before, and puts the operations into the order in which they are
// tried.
func (d *decoder) precedence(c *Connector) {
	for i, op := range c.Operations {
		for _, name := range op.before {
			if other := c.Operation(name); other == nil || other == op {
				d.Fail("before", op.at.Under("before"), quoted(name)+" is no other operation of this connector", "name an operation that comes after this one")
			}
		}
		for _, other := range c.Operations[:i] {
			if !op.goesBefore(other) && !other.goesBefore(op) && op.overlaps(other) {
				d.Fail("overlap", op.at.Under("match"), "a request can fit both "+op.Name+" and "+other.Name,
					"narrow one of them, or say before: ["+other.Name+"] in the one that goes first")
			}
		}
	}
	ordered, ok := orderOperations(c.Operations)
	if !ok {
		d.Fail("before", Where{Key: "operations"}, "the operations' before form a circle", "remove one of them")
		return
	}
	c.Operations = ordered
	for _, op := range ordered {
		if other := op.Hidden(); other != nil && other.Effect.passes() && !op.Effect.passes() {
			d.mistaken("unreached", op.at.Under("match"), "nothing ever gets to "+op.Name+": all that fits it fits "+other.Name+
				", which goes first, and lets it pass unrecorded", "say before: ["+other.Name+"] in "+op.Name+" and not the other way round, or narrow "+other.Name)
		}
	}
}

// Hidden is the operation that takes every request that fits this one, and goes first; nil for none.
func (op *Operation) Hidden() *Operation {
	for _, other := range op.Connector.Operations {
		switch {
		case other == op:
			return nil
		case other.goesBefore(op) && other.takesAll(op):
			return other
		}
	}
	return nil
}

// passes reports whether what has the effect is sent unrecorded.
func (e Effect) passes() bool { return e == EffectRead || e == EffectIgnore }

// takesAll reports whether every request that fits the other operation surely fits this one.
func (op *Operation) takesAll(other *Operation) bool {
	return len(other.matches) > 0 && !slices.ContainsFunc(other.matches, func(b *matcher) bool {
		return !slices.ContainsFunc(op.matches, func(a *matcher) bool { return a.covers(b) })
	})
}

// covers reports whether every request that fits the other surely fits this.
func (m *matcher) covers(other *matcher) bool {
	if len(m.methods) > 0 && (len(other.methods) == 0 || slices.ContainsFunc(other.methods, func(s string) bool { return !slices.Contains(m.methods, s) })) {
		return false
	}
	if m.path != nil && (other.path == nil || !m.path.covers(other.path)) {
		return false
	}
	return m.when == nil || other.when != nil && strings.TrimSpace(m.when.source) == strings.TrimSpace(other.when.source)
}

// orderOperations sorts so that each comes before those it names, and otherwise
// keeps the order of the file; false for a circle.
func orderOperations(ops []*Operation) ([]*Operation, bool) {
	var out []*Operation
	rest := slices.Clone(ops)
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(op *Operation) bool {
			return !slices.ContainsFunc(rest, func(other *Operation) bool {
				return other != op && slices.Contains(other.before, op.Name)
			})
		})
		if i < 0 {
			return nil, false
		}
		out = append(out, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return out, true
}

// overlaps reports whether a request could fit both operations.
func (op *Operation) overlaps(other *Operation) bool {
	return slices.ContainsFunc(op.matches, func(a *matcher) bool { return slices.ContainsFunc(other.matches, a.overlaps) })
}

// overlaps reports whether a request could fit both. Conditions only tell two
// apart when their texts show that they exclude each other.
func (m *matcher) overlaps(other *matcher) bool {
	if len(m.methods) > 0 && len(other.methods) > 0 &&
		!slices.ContainsFunc(m.methods, func(s string) bool { return slices.Contains(other.methods, s) }) {
		return false
	}
	if m.path != nil && other.path != nil && !m.path.overlaps(other.path) {
		return false
	}
	return m.when == nil || other.when == nil || !exclusive(m.when.source, other.when.source)
}

// exclusive recognises two conditions of which at most one is true: X and !X or
// !(X), and the comparison of one value with two different constants.
func exclusive(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if negates(a, b) || negates(b, a) {
		return true
	}
	leftA, constantA, okA := comparison(a)
	leftB, constantB, okB := comparison(b)
	return okA && okB && leftA == leftB && constantA != constantB
}

// negates reports whether a is the negation of b, as texts.
func negates(a, b string) bool {
	inner, ok := strings.CutPrefix(a, "!")
	if !ok {
		return false
	}
	// Without brackets ! binds to the first operand only.
	return inner == "("+b+")" || inner == b && !strings.ContainsAny(b, " &|=<>?+-*/%!")
}

// comparison takes VALUE == 'constant' apart, where that is the whole condition.
func comparison(s string) (left, constant string, ok bool) {
	left, right, found := strings.Cut(s, "==")
	if !found || strings.ContainsAny(left, "&|?!=<>'\"") {
		return "", "", false
	}
	right = strings.TrimSpace(right)
	if len(right) < 2 || right[0] != '\'' && right[0] != '"' || strings.ContainsAny(right, "\\&|?!=<>+") {
		return "", "", false
	}
	inner := right[1 : len(right)-1]
	if right[len(right)-1] != right[0] || strings.ContainsAny(inner, `'"`) {
		return "", "", false
	}
	return strings.TrimSpace(left), inner, true
}
