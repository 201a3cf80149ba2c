package rules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// expr reads and compiles an expression; nil when it can't be.
func (d *decoder) expr(n *yaml.Node, key string, at position) *expr {
	if n != nil && (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) {
		d.fail("type", key, n, "must be an expression", "put an expression that holds [ or { into quotes, or on a line of its own")
		return nil
	}
	s, ok := d.text(n, key)
	if !ok {
		return nil
	}
	e, err := compileExpr(s, d.position(at))
	if err != nil {
		if meant := mended(s); meant != s {
			if _, other := compileExpr(meant, d.position(at)); other == nil {
				d.fail("expression", key, n, "does not compile: it is written like a text", "no braces here: write "+yamlPlain(meant))
				return nil
			}
		}
		d.compileProblem(n, key, err)
		return nil
	}
	d.compiled(n, key, e)
	return e
}

// condition reads an expression that must be true or false.
func (d *decoder) condition(n *yaml.Node, key string, at position) *expr {
	e := d.expr(n, key, at)
	if e != nil && e.neverBool {
		d.mistaken("expression", key, n, "is no condition: it is never true or false", "compare it, such as response.status == 200")
	}
	return e
}

// compiled remembers where an expression stands, and reports what compiles and can't be
// meant.
func (d *decoder) compiled(n *yaml.Node, key string, exprs ...*expr) {
	if d.at == nil {
		d.at = map[*expr]location{}
	}
	for _, e := range exprs {
		d.at[e] = location{n, key}
		for _, m := range e.mistakes {
			d.mistaken("expression", key, n, m.problem, m.fix)
		}
	}
}

// position is where an expression stands: below compensate the object is there too.
func (d *decoder) position(at position) position {
	switch {
	case !d.undoing:
		return at
	case at == inAnswer || at == inFound:
		return inUndone
	}
	return inUndo
}

// compileProblem records why an expression or a text does not compile.
func (d *decoder) compileProblem(n *yaml.Node, key string, err error) {
	if _, later := errors.AsType[errNotYet](err); later {
		d.fail("not-yet", key, n, err.Error(), "leave it out; this version refuses it rather than ignore it")
		return
	}
	d.fail("expression", key, n, "does not compile: "+err.Error(), fixFor(err))
}

// fixFor says what to do about the usual mistakes.
func fixFor(err error) string {
	msg := err.Error()
	switch {
	case strings.Contains(msg, "undeclared reference"):
		return "use the variables that exist at this place, see docs/connectors.md; a constant text is written \"'text'\""
	case strings.Contains(msg, "token recognition error at: '= "), strings.Contains(msg, "token recognition error at: '=j"):
		return "write == to compare"
	case strings.Contains(msg, "token recognition error at: '$"):
		return "write json.name for a place in the body; there is no $"
	case strings.Contains(msg, "input '?'"):
		return "write json.?name.orValue('') for what may be missing"
	case strings.Contains(msg, "'and'"), strings.Contains(msg, "'or'"), strings.Contains(msg, "'not'"):
		return "write &&, || and ! for and, or and not"
	case strings.Contains(msg, "brace"):
		return "close each {insertion}; braces that are meant are doubled"
	}
	return "correct the expression; docs/connectors.md lists what there is"
}

// standing is where an expression stands; n and key are for one that stands nowhere.
func (d *decoder) standing(e *expr, n *yaml.Node, key string) location {
	if at, ok := d.at[e]; ok {
		return at
	}
	return location{n, key}
}

// textWith reads a text with insertions; nil when it can't be compiled.
func (d *decoder) textWith(n *yaml.Node, key string, at position) *text {
	s, ok := d.text(n, key)
	if !ok {
		return nil
	}
	t, err := compileText(s, d.position(at))
	if err != nil {
		d.compileProblem(n, key, err)
		return nil
	}
	d.compiled(n, key, t.exprs()...)
	return t
}

// pathText reads the path of a request that the proxy sends.
func (d *decoder) pathText(n *yaml.Node, key string, at position) *text {
	t := d.textWith(n, key, at)
	if t == nil {
		return nil
	}
	var literal strings.Builder
	for _, p := range t.parts {
		if p.expr != nil {
			literal.WriteByte('x')
		} else {
			literal.WriteString(p.literal)
		}
	}
	if strings.ContainsAny(literal.String(), "?#") {
		d.fail("path", key, n, "a path holds no query", "put parameters under query:")
		return nil
	}
	if p, refusal := normalPath("GET", literal.String()); refusal != nil || !strings.HasPrefix(literal.String(), "/") || p.wire != literal.String() {
		d.fail("path", key, n, "is no path in its plain form", "begin it with /, without empty or dot segments and needless escapes")
		return nil
	}
	return t
}

// place reads a selector with one of the allowed roots.
func (d *decoder) place(n *yaml.Node, key string, roots ...string) (place, bool) {
	s, ok := d.text(n, key)
	if !ok {
		return place{}, false
	}
	p, err := parsePlace(s)
	if err != nil {
		d.fail("place", key, n, err.Error(), "write a place such as json.items[*].id, form['a[b]'] or query.page")
		return place{}, false
	}
	for _, root := range roots {
		if p.root != root {
			continue
		}
		if _, single := p.name(); root == "json" && len(p.steps) > 0 || root == "response" || single {
			d.headerPlace(n, key, p)
			return p, true
		}
		d.fail("place", key, n, "names no single place below "+root, "write "+root+".name")
		return place{}, false
	}
	d.fail("place", key, n, printable(p.root)+" can't be used here", "begin the place with "+strings.Join(roots, ", "))
	return place{}, false
}

// headerPlace refuses a header field whose name isn't in lower case: it is compared with
// what expressions read, and there it never is.
func (d *decoder) headerPlace(n *yaml.Node, key string, p place) {
	if p.root != "response" {
		p = place{root: "response", steps: append([]placeStep{{name: p.root}}, p.steps...)}
	}
	var e expr
	if len(p.steps) > 1 && p.steps[0].name == "header" {
		e.misspelt(p)
	}
	for _, m := range e.mistakes {
		d.mistaken("place", key, n, m.problem, m.fix)
	}
}

// writable reads where something is written: a name below form or query, or a
// path of names below json.
func (d *decoder) writable(n *yaml.Node, key, root string) (place, bool) {
	s, ok := d.text(n, key)
	if !ok {
		return place{}, false
	}
	if strings.HasPrefix(s, root+".") || strings.HasPrefix(s, root+"[") {
		// Taken as it stands it would be written where nobody looks for it, and what is
		// then not found would count as absent.
		d.fail("place", key, n, "begins with "+root+", which "+root+": says already", "write the names alone, such as "+plainPlace(root))
		return place{}, false
	}
	if root != "json" {
		return place{source: s, root: root, steps: []placeStep{{name: s}}}, true
	}
	source := "json." + s
	if strings.HasPrefix(s, "[") {
		source = "json" + s
	}
	p, err := parsePlace(source)
	if err != nil {
		d.fail("place", key, n, err.Error(), "write names joined by dots, such as metadata.keep_id")
		return place{}, false
	}
	for _, step := range p.steps {
		if step.kind != stepName {
			d.fail("place", key, n, "a value is written to one place, not to a list", "write names joined by dots, such as metadata.keep_id")
			return place{}, false
		}
	}
	return p, true
}

// plainPlace is an example of a place without its root.
func plainPlace(root string) string {
	if root == "json" {
		return "metadata.keep_id"
	}
	return "metadata[keep_id]"
}

// template reads YAML values: literal, but {cel: EXPRESSION}.
func (d *decoder) template(n *yaml.Node, key string, at position) *template {
	if n == nil || !d.plain(n, key) {
		return nil
	}
	switch n.Kind {
	case yaml.ScalarNode:
		d.literalText(n, key, at)
		return d.scalar(n, key)
	case yaml.SequenceNode:
		t := &template{value: jsonValue{kind: jsonArray}}
		for i, item := range n.Content {
			if sub := d.template(item, index(key, i), at); sub != nil {
				t.items = append(t.items, sub)
			}
		}
		return t
	case yaml.MappingNode:
		if len(n.Content) == 2 && n.Content[0].Value == "cel" {
			if e := d.expr(n.Content[1], join(key, "cel"), at); e != nil {
				return &template{expr: e}
			}
			return nil
		}
		t := &template{value: jsonValue{kind: jsonObject}}
		d.members(n, key, "a value", func(name string, _, v *yaml.Node) {
			if sub := d.template(v, join(key, name), at); sub != nil {
				t.names = append(t.names, name)
				t.items = append(t.items, sub)
			}
		})
		return t
	case yaml.DocumentNode, yaml.AliasNode, yaml.StreamNode:
	}
	d.fail("type", key, n, "is no value", "write text, a number, true, false, null, a list or a map")
	return nil
}

// scalar reads a literal value as JSON has it.
func (d *decoder) scalar(n *yaml.Node, key string) *template {
	switch n.Tag {
	case "!!null":
		return &template{}
	case "!!bool":
		return &template{value: boolValue(strings.EqualFold(n.Value, "true"))}
	case "!!int", "!!float":
		v, err := parseJSON([]byte(n.Value))
		if err != nil || v.kind != jsonNumber {
			d.fail("value", key, n, "is no number as JSON writes it", "write it in decimal, or quote it if it is text")
			return nil
		}
		return &template{value: *v}
	}
	return &template{value: stringValue(n.Value)}
}

// mapOf reads values that must be a map of names, for a query or a header.
func (d *decoder) mapOf(n *yaml.Node, key string, at position) *template {
	t := d.template(n, key, at)
	if t == nil {
		return nil
	}
	if t.expr != nil || t.value.kind != jsonObject {
		d.fail("type", key, n, "must be a map of names to values", "write name: value lines below it")
		return nil
	}
	return t
}

// quoted quotes a short value for a sentence.
func quoted(s string) string { return strconv.Quote(printable(s)) }

// plural is for sentences that count.
func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
