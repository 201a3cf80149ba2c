package rules

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is words with {expression} in them.
type text struct {
	source string
	parts  []textPart
}

// textPart is a literal, or an expression with rest for {x...}.
type textPart struct {
	literal string
	expr    *expr
	rest    bool
}

// Insertions into texts for people are cut to this many characters.
const maxShown = 200

// secretShown stands for a secret value wherever one would be shown.
const secretShown = "<secret>"

// compileText compiles the insertions of a text for a position.
func compileText(source string, at position, params ...parameterValues) (*text, error) {
	pieces, err := splitText(source)
	if err != nil {
		return nil, err
	}
	t := &text{source: source}
	for _, p := range pieces {
		if !p.insertion {
			t.parts = append(t.parts, textPart{literal: p.text})
			continue
		}
		body, rest := strings.CutSuffix(p.text, "...")
		e, err := compileExpr(body, at, params...)
		if err != nil {
			return nil, fmt.Errorf("in {%s}: %w", p.text, err)
		}
		t.parts = append(t.parts, textPart{expr: e, rest: rest})
	}
	return t, nil
}

// piece is a part of a text before it is compiled.
type piece struct {
	text      string
	insertion bool
}

// splitText splits at insertions; {{ and }} are braces. Braces and quotes inside
// an expression are its own.
func splitText(source string) ([]piece, error) {
	var out []piece
	var literal strings.Builder
	for i := 0; i < len(source); {
		switch {
		case strings.HasPrefix(source[i:], "{{") || strings.HasPrefix(source[i:], "}}"):
			literal.WriteByte(source[i])
			i += 2
		case source[i] == '}':
			return nil, errors.New("a closing brace without an opening one; write }} for a brace")
		case source[i] == '{':
			end := insertionEnd(source, i+1)
			if end < 0 {
				return nil, errors.New("an opening brace without a closing one; write {{ for a brace")
			}
			if literal.Len() > 0 {
				out = append(out, piece{text: literal.String()})
				literal.Reset()
			}
			out = append(out, piece{text: source[i+1 : end], insertion: true})
			i = end + 1
		default:
			literal.WriteByte(source[i])
			i++
		}
	}
	if literal.Len() > 0 {
		out = append(out, piece{text: literal.String()})
	}
	return out, nil
}

// insertionEnd finds the brace that closes the insertion beginning at i.
func insertionEnd(source string, i int) int {
	depth := 0
	var quote byte
	for ; i < len(source); i++ {
		c := source[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}':
			return i
		}
	}
	return -1
}

// show renders the text for a person: "?" for what is missing, <secret> for what
// is hidden. It refuses nothing.
func (t *text) show(s *scope, hidden func(*expr) bool) string {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.expr == nil:
			b.WriteString(p.literal)
		case hidden(p.expr):
			b.WriteString(secretShown)
		default:
			b.WriteString(shown(p.expr, s))
		}
	}
	return b.String()
}

// shown renders one insertion for a person.
func shown(e *expr, s *scope) string {
	v, present, err := e.value(s)
	if s.take() != nil || err != nil || !present {
		return "?"
	}
	return printable(scalarText(&v))
}

// scalarText is a string as it is, anything else as JSON.
func scalarText(v *jsonValue) string {
	if v.kind == jsonString {
		return v.text
	}
	return string(canonicalValue(v))
}

// printable keeps values from the outside from steering a terminal or a page: no
// control characters, a bounded length.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown-1]) + "…"
}

// exact renders the text as it is sent, such as a marker; a missing value is an
// error.
func (t *text) exact(s *scope) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.literal)
			continue
		}
		v, err := single(p.expr, s)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

// required evaluates what must be there.
func required(e *expr, s *scope) (jsonValue, error) {
	v, present, err := e.eval(s)
	if r := s.take(); r != nil {
		return jsonValue{}, r
	}
	if err != nil {
		return jsonValue{}, fmt.Errorf("{%s}: %w", e.source, err)
	}
	if !present {
		return jsonValue{}, fmt.Errorf("{%s}: %w", e.source, errMissing)
	}
	return v, nil
}

// single evaluates what must be there, and no list or map.
func single(e *expr, s *scope) (string, error) {
	v, err := required(e, s)
	if err != nil {
		return "", err
	}
	if v.kind == jsonArray || v.kind == jsonObject || v.kind == jsonNull {
		return "", fmt.Errorf("{%s} is no single value", e.source)
	}
	return scalarText(&v), nil
}

// path renders the text as a path. Each insertion is escaped as one segment, or as several where it says {x...}.
func (t *text) path(s *scope) (string, error) {
	return t.pathWithout(s, func(*expr) bool { return false })
}

// pathWithout is path with a mark in the place of the insertions that are left out.
func (t *text) pathWithout(s *scope, out func(*expr) bool) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.expr == nil:
			b.WriteString(p.literal)
			continue
		case out(p.expr):
			b.WriteString(leftOut)
			continue
		}
		v, err := single(p.expr, s)
		if err != nil {
			return "", err
		}
		escaped, err := escapeInsertion(v, p.rest, s.keepsEmpty())
		if err != nil {
			return "", fmt.Errorf("{%s}: %w", p.expr.source, err)
		}
		b.WriteString(escaped)
	}
	return b.String(), nil
}

// escapeInsertion escapes a value for a path and refuses what would change the
// path's shape. With empty, the rest of a path may have empty segments.
func escapeInsertion(value string, rest, empty bool) (string, error) {
	segments := []string{value}
	if rest {
		segments = strings.Split(value, "/")
	}
	for i, segment := range segments {
		if segment == "" && empty && len(segments) > 1 {
			continue
		}
		if _, refusal := checkSegment(segment); refusal != nil {
			return "", errors.New("the value can't be part of a path")
		}
		segments[i] = escapeSegment(segment)
	}
	return strings.Join(segments, "/"), nil
}

// whole reports whether the text is one insertion and nothing else.
func (t *text) whole() bool { return len(t.parts) == 1 && t.parts[0].expr != nil && !t.parts[0].rest }

// exprs are the expressions of the text.
func (t *text) exprs() []*expr {
	if t == nil {
		return nil
	}
	var out []*expr
	for _, p := range t.parts {
		if p.expr != nil {
			out = append(out, p.expr)
		}
	}
	return out
}

// Describe is the rule's describe with values filled in, as in [Derived].Target;
// the operation's name when the rule has none.
func (op *Operation) Describe(env Env) string { return op.target(op.scope(env)) }

// ManualCheckText is the rule's manual check with values filled in; empty when the rule has none. What is missing is
// "?", and what is secret is "<secret>".
func (op *Operation) ManualCheckText(env Env) string {
	if op.manualCheck == nil {
		return ""
	}
	return op.manualCheck.show(op.scope(env), op.hides)
}

// scope is what expressions about a stored record may read.
func (op *Operation) scope(env Env) *scope {
	s := op.bind(env.Request)
	s.account, s.mutation = env.Account, &env.Mutation
	return s
}

// template is a YAML value that is literal but for maps with the one key cel.
type template struct {
	// expr is set for {cel: EXPRESSION}.
	expr *expr
	// value is a literal scalar.
	value jsonValue
	// names and items are the members of a map, items alone those of a list.
	names []string
	items []*template
}

// build computes the value; present is false for an absent optional, whose key or
// element is left out.
func (t *template) build(s *scope) (v jsonValue, present bool, err error) {
	if t.expr != nil {
		v, present, err = t.expr.eval(s)
		if r := s.take(); r != nil {
			return jsonValue{}, false, r
		}
		if err != nil {
			return jsonValue{}, false, fmt.Errorf("{cel: %s}: %w", t.expr.source, err)
		}
		if v.odd > 0 && !s.copies {
			return jsonValue{}, false, refusedOdd
		}
		return v, present, nil
	}
	if t.value.kind != jsonArray && t.value.kind != jsonObject {
		return t.value, true, nil
	}
	out := jsonValue{kind: t.value.kind}
	for i, item := range t.items {
		v, present, err := item.build(s)
		if err != nil {
			return jsonValue{}, false, err
		}
		if !present {
			continue
		}
		if t.value.kind == jsonObject {
			out.names = append(out.names, t.names[i])
		}
		out.items = append(out.items, v)
	}
	return out, true, nil
}

// exprs are the expressions of the template.
func (t *template) exprs() []*expr {
	if t == nil {
		return nil
	}
	if t.expr != nil {
		return []*expr{t.expr}
	}
	var out []*expr
	for _, item := range t.items {
		out = append(out, item.exprs()...)
	}
	return out
}

// namedValues computes a map of names to text values, for a query, a form or a
// header. A list repeats its name.
func (t *template) namedValues(s *scope) ([]pair, error) {
	if t == nil {
		return nil, nil
	}
	v, _, err := t.build(s)
	if err != nil {
		return nil, err
	}
	if v.kind != jsonObject {
		return nil, fmt.Errorf("the result is no map of names to values")
	}
	var out []pair
	for i, name := range v.names {
		items := []jsonValue{v.items[i]}
		if v.items[i].kind == jsonArray {
			items = v.items[i].items
		}
		for j := range items {
			switch items[j].kind {
			case jsonNull, jsonArray, jsonObject:
				return nil, fmt.Errorf("the value of %s is no text, number or boolean", name)
			case jsonFalse, jsonTrue, jsonNumber, jsonString:
			}
			out = append(out, pair{name: name, value: scalarText(&items[j])})
		}
	}
	return out, nil
}
