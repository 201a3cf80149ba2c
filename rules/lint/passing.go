package lint

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"keep-proxy/rules"
)

// passing looks at an operation whose requests are sent unrecorded.
func (l *linter) passing(f rules.Facts) {
	for _, m := range f.Matches {
		if m.When == nil {
			continue
		}
		if excluding.MatchString(m.When.Source()) && slices.ContainsFunc(m.Methods, changes) {
			l.warn("all-but", m.When.At(), "lets every call pass unrecorded that isn't among those that it excludes",
				"name the calls that only read, such as json.method in ['get', 'list']; what no operation takes is denied")
		}
	}
}

// changes reports whether requests with the method may change something (RFC 9110 §9.2.1).
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// excluding finds a condition that is true of everything but what it names.
var excluding = regexp.MustCompile(`!=\s*(?:'[^']+'|"[^"]+")|(?:'[^']+'|"[^"]+")\s*!=|!\s*\([^()]*(?:\([^()]*\)[^()]*)*(?:==|\bin\b\s*\[)`)

// graphQL warns of a condition that looks at the text of a document of GraphQL. It may hold several operations and fields,
// and comments, fragments and escapes hide what they do.
func (l *linter) graphQL(when *rules.Expr) {
	ast.PreOrderVisit(when.Tree(), ast.NewExprVisitor(func(x ast.Expr) {
		if x.Kind() != ast.CallKind || !slices.Contains(looking, x.AsCall().FunctionName()) {
			return
		}
		if r, ok := rules.RefOf(unspelt(x.AsCall().Target())); ok && r.Root == "json" && slices.Equal(r.Names, []string{"query"}) {
			l.warn("graphql", when.At(), "looks for words in a document of GraphQL, which may do something else as well",
				"write match.graphql: {operation: query}, or {operation: mutation, field: NAME}")
		}
	}))
}

// looking are functions that look for a part of a text.
var looking = []string{"startsWith", "endsWith", "contains", "matches"}

// contentFields say how a body is written, or how an answer is wanted, and not what is changed.
var contentFields = []string{"content-type", "content-encoding", "accept", "user-agent"}

// toldByHeader warns of an operation whose kinds of requests differ by a header field, as AWS's X-Amz-Target is. The
// field is part of neither key nor payload.
func (l *linter) toldByHeader(op *rules.Operation, f rules.Facts) {
	first := map[string]string{}
	for _, m := range f.Matches {
		for _, w := range headerWords(m.When) {
			value, seen := first[w.name]
			if !w.open && (!seen || value == w.value) {
				first[w.name] = w.value
				continue
			}
			if slices.Contains(contentFields, w.name) || op.IsCredential(w.name) || tellsHeader(f, w.name) {
				continue
			}
			l.warn("spelling", m.When.At(), "takes requests with several values of the header field "+w.name+
				", which is no part of identity or payload: a request with one is answered with what a request with another did, and not sent",
				"make an operation for each, or add it to identity, or to payload.headers")
			return
		}
	}
}

// tellsHeader reports whether key or payload depend on the field.
func tellsHeader(f rules.Facts, name string) bool {
	return slices.ContainsFunc(f.Headers, func(s string) bool { return strings.EqualFold(s, name) }) ||
		slices.ContainsFunc(f.Telling, func(e rules.TellingFacts) bool { return e.What != "account" && readsName(e.Expr, "header", name) })
}

// headerWord is a value that a condition compares a header field of the request with; open says
// that several fit.
type headerWord struct {
	name, value string
	open        bool
}

// headerWords are the words that an expression compares header fields of the request with.
func headerWords(e *rules.Expr) words {
	var w words
	if e != nil {
		ast.PreOrderVisit(e.Tree(), ast.NewExprVisitor(func(x ast.Expr) {
			if x.Kind() == ast.CallKind {
				w.note(x.AsCall())
			}
		}))
	}
	return w
}

type words []headerWord

// note notes what a call makes of a header field.
func (w *words) note(c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.Equals, operators.NotEquals:
		for i, arg := range args {
			if name, ok := headerIn(arg); ok {
				w.word(name, args[1-i], c.FunctionName() == operators.NotEquals)
			}
		}
	case operators.In:
		name, ok := headerIn(args[0])
		if !ok {
			return
		}
		if args[1].Kind() != ast.ListKind {
			*w = append(*w, headerWord{name: name, open: true})
			return
		}
		for _, item := range args[1].AsList().Elements() {
			w.word(name, item, false)
		}
	default:
		if slices.Contains(looking, c.FunctionName()) {
			if name, ok := headerIn(c.Target()); ok {
				*w = append(*w, headerWord{name: name, open: true})
			}
		}
	}
}

// word notes one value; that a field isn't empty says nothing of what it holds.
func (w *words) word(name string, with ast.Expr, not bool) {
	one := headerWord{name: name, open: not}
	if with.Kind() == ast.LiteralKind {
		text, ok := with.AsLiteral().(types.String)
		if not && ok && text == "" {
			return
		}
		one.value, one.open = string(text), not || !ok
	} else {
		one.open = true
	}
	*w = append(*w, one)
}

// unspelt leaves out what only spells a text anew.
func unspelt(x ast.Expr) ast.Expr {
	for x.Kind() == ast.CallKind && x.AsCall().IsMemberFunction() &&
		slices.Contains([]string{"orValue", "value", "lowerAscii", "upperAscii", "trim"}, x.AsCall().FunctionName()) {
		x = x.AsCall().Target()
	}
	return x
}

// headerIn is the field of the request whose value this is, whatever its spelling and default.
func headerIn(x ast.Expr) (name string, ok bool) {
	r, ok := rules.RefOf(unspelt(x))
	return r.Name(), ok && r.Root == "header" && len(r.Names) == 1
}
