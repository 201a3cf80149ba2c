package rules

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/strictyaml"
)

// expr reads and compiles an expression; nil when it can't be.
func (d *decoder) expr(v value, at position) *expr {
	if v.Is(yaml.MappingNode) || v.Is(yaml.SequenceNode) {
		d.Fail("type", v, "must be an expression", "put an expression that holds [ or { into quotes, or on a line of its own")
		return nil
	}
	s, ok := d.text(v)
	if !ok {
		return nil
	}
	e, err := compileExpr(s, d.position(at), d.params)
	if err != nil {
		if meant := mended(s); meant != s {
			if _, other := compileExpr(meant, d.position(at), d.params); other == nil {
				d.Fail("expression", v, "does not compile: it is written like a text", "no braces here: write "+yamlPlain(meant))
				return nil
			}
		}
		d.compileProblem(v, err)
		return nil
	}
	d.compiled(v, e)
	return e
}

// condition reads an expression that must be true or false.
func (d *decoder) condition(v value, at position) *expr {
	e := d.expr(v, at)
	if e != nil && e.neverBool {
		d.mistaken("expression", v, "is no condition: it is never true or false", "compare it, such as response.status == 200")
	}
	return e
}

// judging reads a condition on an answer.
func (d *decoder) judging(v value) *expr {
	e := d.condition(v, inAnswer)
	d.answered(e, "response")
	return e
}

// compiled notes where expressions stand, and reports what compiles and can't be meant.
func (d *decoder) compiled(v value, exprs ...*expr) {
	for _, e := range exprs {
		e.at = v.Place()
		for _, m := range e.mistakes {
			d.mistaken("expression", v, m.problem, m.fix)
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
func (d *decoder) compileProblem(v value, err error) {
	if of, is := errors.AsType[*parameterError](err); is {
		d.Fail("parameter", v, of.problem, of.fix)
		return
	}
	d.Fail("expression", v, "does not compile: "+err.Error(), fixFor(err))
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

// textWith reads a text with insertions; nil when it can't be compiled.
func (d *decoder) textWith(v value, at position) *text {
	s, ok := d.text(v)
	if !ok {
		return nil
	}
	t, err := compileText(s, d.position(at), d.params)
	if err != nil {
		d.compileProblem(v, err)
		return nil
	}
	d.compiled(v, t.exprs()...)
	return t
}

// pathText reads the path of a request that the proxy sends. For a look, an insertion alone is a URL.
func (d *decoder) pathText(v value, at position) *text {
	t := d.textWith(v, at)
	if t == nil || at == inAnswer && t.whole() {
		return t
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
		d.Fail("path", v, "a path holds no query", "put parameters under query:")
		return nil
	}
	plain := literal.String()
	if p, refusal := normalPath("GET", plain); refusal != nil || p.emptySegment || !strings.HasPrefix(plain, "/") || p.wire != plain {
		d.Fail("path", v, "is no path in its plain form", "begin it with /, without empty or dot segments and needless escapes")
		return nil
	}
	return t
}

// place reads a selector with one of the allowed roots.
func (d *decoder) place(v value, roots ...string) (place, bool) {
	s, ok := d.filled(v)
	if !ok {
		return place{}, false
	}
	p, err := parsePlace(s)
	if err != nil {
		d.Fail("place", v, err.Error(), "write a place such as json.items[*].id, form['a[b]'] or query.page")
		return place{}, false
	}
	p = p.asJSON()
	for _, root := range roots {
		if p.root != root {
			continue
		}
		if _, single := p.name(); (root == "json" || root == "graphql") && len(p.steps) > 0 || root == "response" || single {
			d.headerPlace(v, p)
			return p, true
		}
		d.Fail("place", v, "names no single place below "+root, "write "+cmp.Or(map[string]string{
			"multipart": "multipart.fields.x or multipart.files.x", "mail": "mail.subject or mail.headers.x"}[root], root+".name"))
		return place{}, false
	}
	d.Fail("place", v, printable(p.root)+" can't be used here", "begin the place with "+strings.Join(roots, ", "))
	return place{}, false
}

// headerPlace refuses a header field whose name isn't in lower case. It is compared with what expressions read, and
// there names are in lower case.
func (d *decoder) headerPlace(v value, p place) {
	if p.root != "response" {
		p = place{root: "response", steps: append([]placeStep{{name: p.root}}, p.steps...)}
	}
	var e expr
	if len(p.steps) > 1 && p.steps[0].name == "header" {
		e.misspelt(p)
	}
	for _, m := range e.mistakes {
		d.mistaken("place", v, m.problem, m.fix)
	}
}

// writable reads where something is written: a name below form, query or header, or a
// path of names below json.
func (d *decoder) writable(v value, root string) (place, bool) {
	if root == "header" {
		name, ok := d.headerName(v)
		return place{source: name, root: root, steps: []placeStep{{name: name}}}, ok
	}
	s, ok := d.filled(v)
	if !ok {
		return place{}, false
	}
	if strings.HasPrefix(s, root+".") || strings.HasPrefix(s, root+"[") {
		// As it stands, it would be written where nobody looks for it. Not found, it would count as absent.
		d.Fail("place", v, "begins with "+root+", which "+root+": says already", "write the names alone, such as "+plainPlace(root))
		return place{}, false
	}
	if root != "json" && root != "graphql" {
		return place{source: s, root: root, steps: []placeStep{{name: s}}}, true
	}
	source := root + "." + s
	switch {
	case root == "graphql":
		source = "graphql.args." + s
	case strings.HasPrefix(s, "["):
		source = root + s
	}
	p, err := parsePlace(source)
	if err != nil {
		d.Fail("place", v, err.Error(), "write names joined by dots, such as metadata.keep_id")
		return place{}, false
	}
	for _, step := range p.steps {
		if step.kind != stepName {
			d.Fail("place", v, "a value is written to one place, not to a list", "write names joined by dots, such as metadata.keep_id")
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
func (d *decoder) template(v value, at position) *template {
	if !d.Plain(v) {
		return nil
	}
	switch v.Kind {
	case yaml.ScalarNode:
		d.literalText(v, at)
		return d.scalar(v)
	case yaml.SequenceNode:
		t := &template{value: jsonValue{kind: jsonArray}}
		for _, item := range d.list(v) {
			if sub := d.template(item, at); sub != nil {
				t.items = append(t.items, sub)
			}
		}
		return t
	case yaml.MappingNode:
		t := &template{value: jsonValue{kind: jsonObject}}
		d.Members(v, func(name string, _, member value) {
			if len(v.Content) == 2 && name == "cel" {
				t.expr = d.expr(member, at)
			} else if name == "cel" {
				d.Fail("literal", member, "stands beside other members", "write an expression with a comma in quotes: {cel: \"f(a, b)\"}")
			} else if sub := d.template(member, at); sub != nil {
				t.names = append(t.names, name)
				t.items = append(t.items, sub)
			}
		})
		return t
	case yaml.DocumentNode, yaml.AliasNode, yaml.StreamNode:
	}
	d.Fail("type", v, "is no value", "write text, a number, true, false, null, a list or a map")
	return nil
}

// scalar reads a literal value as JSON has it.
func (d *decoder) scalar(v value) *template {
	switch v.Tag {
	case "!!null":
		return &template{}
	case "!!bool":
		return &template{value: boolValue(strings.EqualFold(v.Value, "true"))}
	case "!!int", "!!float":
		n, err := parseJSON([]byte(v.Value))
		if err != nil || n.kind != jsonNumber {
			d.Fail("value", v, "is no number as JSON writes it", "write it in decimal, or quote it if it is text")
			return nil
		}
		return &template{value: *n}
	}
	return &template{value: stringValue(v.Value)}
}

// mapOf reads a map of names to texts, for a query, a form or a header. A list repeats its name. Text is what is
// written, whatever YAML takes it for.
func (d *decoder) mapOf(v value, at position) *template {
	for i := 1; v.Is(yaml.MappingNode) && i < len(v.Content); i += 2 {
		texts := v.Content[i : i+1]
		if texts[0].Kind == yaml.SequenceNode {
			texts = texts[0].Content
		}
		for _, n := range texts {
			switch {
			case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
				n.Tag = "!!str"
			case n.Kind != yaml.MappingNode || len(n.Content) != 2 || n.Content[0].Value != "cel":
				d.mistaken("type", value{Node: n, Key: strictyaml.Join(v.Key, v.Content[i-1].Value)}, "must be text", "write one value, or {cel: EXPRESSION}")
			}
		}
	}
	t := d.template(v, at)
	if t == nil {
		return nil
	}
	if t.expr != nil || t.value.kind != jsonObject {
		d.Fail("type", v, "must be a map of names to values", "write name: value lines below it")
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
