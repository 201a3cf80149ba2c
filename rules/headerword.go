package rules

import (
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"go.yaml.in/yaml/v4"
)

// headerWord is a value that a condition compares a header field of the request with; open says
// that several fit.
type headerWord struct {
	name, value string
	open        bool
}

// noteWord notes what a call makes of a header field.
func (e *expr) noteWord(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.Equals, operators.NotEquals:
		for i, arg := range args {
			if name, ok := headerIn(arg); ok {
				e.word(name, args[1-i], c.FunctionName() == operators.NotEquals)
			}
		}
	case operators.In:
		name, ok := headerIn(args[0])
		if !ok {
			return
		}
		if args[1].Kind() != ast.ListKind {
			e.words = append(e.words, headerWord{name: name, open: true})
			return
		}
		for _, item := range args[1].AsList().Elements() {
			e.word(name, item, false)
		}
	case "startsWith", "endsWith", "contains", "matches":
		if name, ok := headerIn(c.Target()); ok {
			e.words = append(e.words, headerWord{name: name, open: true})
		}
	default:
	}
}

// word notes one value; that a field isn't empty says nothing of what it holds.
func (e *expr) word(name string, with ast.Expr, not bool) {
	w := headerWord{name: name, open: not}
	if with.Kind() == ast.LiteralKind {
		text, ok := with.AsLiteral().(types.String)
		if not && ok && text == "" {
			return
		}
		w.value, w.open = string(text), not || !ok
	} else {
		w.open = true
	}
	e.words = append(e.words, w)
}

// headerIn is the field of the request whose value this is, whatever its spelling and default.
func headerIn(x ast.Expr) (name string, ok bool) {
	for x.Kind() == ast.CallKind && x.AsCall().IsMemberFunction() &&
		slices.Contains([]string{"orValue", "value", "lowerAscii", "upperAscii", "trim"}, x.AsCall().FunctionName()) {
		x = x.AsCall().Target()
	}
	root, steps, ok := accessOf(x)
	if !ok || root != "header" || len(steps) != 1 || steps[0].kind != stepName {
		return "", false
	}
	return steps[0].name, true
}

// excluding finds a condition that is true of everything but what it names.
var excluding = regexp.MustCompile(`!=\s*(?:'[^']+'|"[^"]+")|(?:'[^']+'|"[^"]+")\s*!=|!\s*\([^()]*(?:\([^()]*\)[^()]*)*(?:==|\bin\b\s*\[)`)

// allBut warns of calls that pass unrecorded because they are none of those that are named: what
// the API has besides, or will have, changes something without a record.
func (d *decoder) allBut(n *yaml.Node, key string, op *Operation) {
	if !op.Effect.passes() {
		return
	}
	for _, m := range op.matches {
		if m.when == nil || !slices.ContainsFunc(m.methods, func(s string) bool { return !isSafe(s) }) || !excluding.MatchString(m.when.source) {
			continue
		}
		at := d.standing(m.when, n, key)
		d.warn("all-but", at.key, at.node, "lets every call pass unrecorded that isn't among those that it excludes",
			"name the calls that only read, such as json.method in ['get', 'list']; what no operation takes is denied")
		return
	}
}

// contentFields say how a body is written, or how an answer is wanted, and not what is changed.
var contentFields = []string{"content-type", "content-encoding", "accept", "user-agent"}

// toldByHeader warns of an operation that takes requests of several kinds, told apart by a header
// field that is part of neither key nor payload, as AWS's X-Amz-Target is.
func (d *decoder) toldByHeader(n *yaml.Node, key string, op *Operation) {
	first := map[string]string{}
	for _, m := range op.matches {
		if m.when == nil {
			continue
		}
		for _, w := range m.when.words {
			value, seen := first[w.name]
			if !w.open && (!seen || value == w.value) {
				first[w.name] = w.value
				continue
			}
			if slices.Contains(contentFields, w.name) || op.isCredential(w.name) || op.tellsHeader(w.name) {
				continue
			}
			at := d.standing(m.when, n, key)
			d.warn("spelling", at.key, at.node, "takes requests with several values of the header field "+w.name+
				", which is no part of identity or payload: a request with one is answered with what a request with another did, and not sent",
				"make an operation for each, or add it to identity, or to payload.headers")
			return
		}
	}
}

// tellsHeader reports whether key or payload depend on the field.
func (op *Operation) tellsHeader(name string) bool {
	reads := func(e *expr) bool { return e != nil && e.readsName("header", name) }
	return slices.ContainsFunc(op.headers, func(s string) bool { return strings.EqualFold(s, name) }) || reads(op.subkey) ||
		slices.ContainsFunc(op.identity, func(e namedExpr) bool { return reads(e.expr) })
}
