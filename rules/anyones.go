package rules

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// anyones warns of a probe that is the same whatever mutation of the operation it is about: what it
// finds, another one may have made, and each would be taken to have taken effect by it. The host is
// told anyway: a probe asks that of the mutation.
func (d *decoder) anyones(n *yaml.Node, key string, op *Operation, p *Probe) {
	differ := slices.IndexFunc(op.identity, func(e namedExpr) bool {
		return slices.ContainsFunc(e.refs, func(r place) bool { return r.root != "host" && r.root != "authority" })
	})
	if p == nil || differ < 0 {
		return
	}
	source := op.identity[differ].source
	for _, read := range append([]*Probe{p}, p.steps...) {
		telling := read.narrowing()
		for _, o := range read.observe {
			telling = append(telling, o.when)
		}
		if slices.ContainsFunc(telling, (*expr).tellsApart) {
			return
		}
	}
	d.warn("anyones", key, n, "asks and judges by nothing of the mutation, and so finds the same for all that differ in "+
		quoted(source)+": one would be taken for done by what another did",
		"ask by what tells them apart, or compare it with the answer, such as found.x == "+source)
}

// tellsApart reports whether the value can differ between two mutations that were claimed at once.
func (e *expr) tellsApart() bool {
	if e == nil {
		return false
	}
	return slices.ContainsFunc(e.refs, func(r place) bool {
		switch r.root {
		case "json", "form", "form_all", "query", "query_all", "path", "host", "header", "body_sha256", "account", "object":
			return true
		case "mutation":
			return len(r.steps) == 0 || !slices.Contains([]string{"claimed_at", "generation"}, r.steps[0].name)
		}
		return false
	})
}
