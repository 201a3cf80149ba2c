package rules

import (
	"slices"
	"strings"
)

// leftOut stands for what an answer of the API said, where a request is shown: it may
// be a secret of the API's own.
const leftOut = "…"

// shown is the target of the probe's request as people may see it. What the rule and
// the record say is whole, since a probe reads no secret place; what an answer said is
// left out.
func (p *Probe) shown(s *scope, query []pair) string {
	target, err := p.path.pathWithout(s, (*expr).readsAnswer)
	if err != nil {
		return ""
	}
	for i, one := range query {
		value := escapeSegment(one.value)
		if p.query.answered(one.name) {
			value = leftOut
		}
		sep := "&"
		if i == 0 {
			sep = "?"
		}
		target += sep + escapeSegment(one.name) + "=" + value
	}
	return printable(strings.ToValidUTF8(target, leftOut))
}

// readsAnswer reports whether the value can depend on an answer of the API.
func (e *expr) readsAnswer() bool { return e.readsAny("response", "steps", "found") }

// answered reports whether the value of a name can depend on an answer.
func (t *template) answered(name string) bool {
	if t.expr != nil {
		return t.expr.readsAnswer()
	}
	for i, n := range t.names {
		if n == name && slices.ContainsFunc(t.items[i].exprs(), (*expr).readsAnswer) {
			return true
		}
	}
	return false
}
