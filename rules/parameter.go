package rules

import (
	"bytes"
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"go.yaml.in/yaml/v4"
)

// Parameter is a named value that a connector's file reads and its user may set.
type Parameter struct {
	Name string `json:"name"`
	// Type is text, number, boolean, or list for a list of texts.
	Type        string `json:"type"`
	Description string `json:"description,omitzero"`
	// Default is nil for one that must be set, Set for one that isn't set.
	Default *Given `json:"default"`
	Set     *Given `json:"set"`
}

// Given is a value as it is written: one text, or a list of them.
type Given struct {
	List  bool
	Texts []string
}

// MarshalText writes what String does.
func (g *Given) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// String writes the value as YAML, on one line.
func (g *Given) String() string {
	if g == nil {
		return ""
	}
	var texts []string
	for _, s := range g.Texts {
		texts = append(texts, strconv.Quote(s))
	}
	if g.List {
		return "[" + strings.Join(texts, ", ") + "]"
	}
	return strings.Join(texts, "")
}

// as is the value of a parameter of this type. Anything else is a problem, and how to mend it.
func (g *Given) as(of string) (v jsonValue, problem, fix string) {
	text := strings.Join(g.Texts, "")
	switch {
	case of == "list":
		v.kind = jsonArray
		for _, s := range g.Texts {
			v.items = append(v.items, stringValue(s))
		}
		return v, "", ""
	case g.List:
		return v, "is a list, and no " + of, "write one value"
	case of == "boolean" && (text == "true" || text == "false"):
		return boolValue(text == "true"), "", ""
	case of == "boolean":
		return v, "is neither true nor false", "write true or false"
	case of == "number":
		n, err := parseJSON([]byte(text))
		if err != nil || n.kind != jsonNumber || len(text) > 18 || !exactNumbers(n) {
			return v, "is no number", "write it in decimal, such as 5 or 0.25, with at most 18 digits"
		}
		return *n, "", ""
	}
	return stringValue(text), "", ""
}

// parameterValues are the values in force, by name. Nil is a file without parameters.
type parameterValues map[string]jsonValue

// parameters reads what a user may set, and takes what the user set.
func (d *decoder) parameters(v value, c *Connector, l *loading) {
	set, d2 := l.set, parameterValues{}
	if s := l.settingsFor(c.Name); set == nil && !l.pinned && s != nil {
		set = s.Parameters
	}
	read := func(name string, _, member value) {
		m, ok := d.Map(member, levelParameter)
		p := Parameter{Name: name, Type: word(d, m.At("type"), "text", "text", "number", "boolean", "list")}
		p.Description, _ = d.text(m.At("description"))
		var problem, fix string
		if p.Default = d.given(m.At("default")); p.Default != nil {
			if d2[name], problem, fix = p.Default.as(p.Type); problem != "" {
				d.Fail("value", m.At("default"), problem, fix)
			}
		}
		if given, ok := set[name]; ok {
			p.Set = &given
			if d2[name], problem, fix = given.as(p.Type); problem != "" {
				l.setting(c.Name+".parameters."+name, quoted(strings.Join(given.Texts, ", "))+" "+problem, fix)
			}
		} else if p.Default == nil {
			d2[name] = jsonValue{}
			d.mistaken("parameter", m, "the connector needs this "+p.Type+", and it isn't set: "+cmp.Or(p.Description, name),
				"set it in the configuration: connectors.settings: [{connector: "+c.Name+", parameters: {"+name+": …}}]")
		}
		if !ok || !isName(name) {
			d.Fail("value", member, quoted(name)+" is no parameter", "write NAME: {type: …, default: …, description: …}; a name has letters, digits and _")
		}
		c.Parameters = append(c.Parameters, p)
	}
	if d.Plain(v) {
		d.Members(v, read)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if _, known := d2[name]; !known {
			of := d2.unknown(name)
			l.setting(c.Name+".parameters."+name, of.problem, of.fix)
		}
	}
	d.params, c.values = d2, d2
}

// given reads a value as it is written; nil for none.
func (d *decoder) given(v value) *Given {
	if !v.Given() {
		return nil
	}
	g := &Given{List: v.Is(yaml.SequenceNode)}
	for _, item := range d.OneOrMore(v) {
		s, _ := d.Scalar(item)
		g.Texts = append(g.Texts, s)
	}
	return g
}

// givens reads values by name.
func (d *decoder) givens(v value) map[string]Given {
	out := map[string]Given{}
	if d.Plain(v) {
		d.Members(v, func(name string, _, member value) { out[name] = *d.given(member) })
	}
	return out
}

// setMark begins the document that says what was set, after the file that it was set for.
const setMark = "\n--- # set\n"

// settled is the document of what was set, which belongs to what a record is pinned to; empty for nothing.
func (c *Connector) settled() string {
	var out []string
	for _, p := range c.Parameters {
		if p.Set != nil {
			out = append(out, p.Name+": "+p.Set.String()+"\n")
		}
	}
	if len(out) == 0 {
		return ""
	}
	slices.Sort(out)
	return setMark + strings.Join(out, "")
}

// unsettled divides what a record is pinned to into the file and what was set.
func (d *decoder) unsettled(content []byte) ([]byte, map[string]Given) {
	file, set, found := bytes.Cut(content, []byte(setMark))
	if !found {
		return content, nil
	}
	doc, _ := d.Document(set)
	return file, d.givens(doc)
}

// parameterError is a use of param that means nothing.
type parameterError struct{ problem, fix string }

func (e *parameterError) Error() string { return e.problem }

// unknown says that there is no such parameter.
func (p parameterValues) unknown(name string) *parameterError {
	if len(p) == 0 {
		return &parameterError{"the file has no parameters", "leave it out, or declare it under parameters:"}
	}
	return &parameterError{"there is no parameter " + printable(name), meant(name, "parameters", slices.Sorted(maps.Keys(p)))}
}

// fill puts the values in the place of param.NAME. They are constants then: what a rule reads doesn't depend on them.
func (p parameterValues) fill(tree *ast.AST) error {
	own, factory, id := false, ast.NewExprFactory(), ast.MaxID(tree)
	var wrong *parameterError
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		own = own || x.Kind() == ast.ComprehensionKind && (x.AsComprehension().IterVar() == "param" || x.AsComprehension().IterVar2() == "param")
		root, steps, ok := accessOf(x)
		if own || wrong != nil || !ok || root != "param" || len(steps) > 1 {
			return // Where an element of a list has the name, param is that.
		}
		if len(steps) == 0 || steps[0].kind != stepName || !isPlain(x) {
			wrong = &parameterError{"param can't be read so", "write param.NAME; it is always there"}
		} else if v, known := p[steps[0].name]; known {
			x.SetKindCase(v.constant(factory, &id))
		} else {
			wrong = p.unknown(steps[0].name)
		}
	}))
	if wrong != nil {
		return wrong
	}
	return nil
}

// constant is the value as an expression, with ids after id.
func (v *jsonValue) constant(factory ast.ExprFactory, id *int64) ast.Expr {
	*id++
	switch v.kind {
	case jsonFalse, jsonTrue:
		return factory.NewLiteral(*id, types.Bool(v.kind == jsonTrue))
	case jsonNumber:
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return factory.NewLiteral(*id, types.Int(n))
		}
		f, _ := strconv.ParseFloat(v.text, 64) // Loading took it for a number already.
		return factory.NewLiteral(*id, types.Double(f))
	case jsonArray:
		list := *id
		var items []ast.Expr
		for i := range v.items {
			items = append(items, v.items[i].constant(factory, id))
		}
		return factory.NewList(list, items, nil)
	case jsonNull, jsonString, jsonObject:
	}
	return factory.NewLiteral(*id, types.String(v.text))
}

// insertedParameter is a parameter in a text that holds no expressions.
var insertedParameter = regexp.MustCompile(`\{param\.([A-Za-z_]\w*)\}`)

// inserted puts parameters into a text that holds no expressions. It says whether one is empty, or can't be used.
func (d *decoder) inserted(v value, s string) (out string, empty bool) {
	out = insertedParameter.ReplaceAllStringFunc(s, func(insertion string) string {
		name := insertedParameter.FindStringSubmatch(insertion)[1]
		p, known := d.params[name]
		text := scalarText(&p)
		if !known {
			d.compileProblem(v, d.params.unknown(name))
		} else if p.kind == jsonArray || strings.ContainsAny(text, "'\"[]") {
			d.Fail("parameter", v, "the parameter "+name+" holds quotes or brackets, which can't stand here", "set it to a plain text")
			known = false
		}
		empty = empty || !known || text == ""
		return text
	})
	return out, empty
}

// filled is text with parameters in it. It is false where one is empty: the place is left out.
func (d *decoder) filled(v value) (string, bool) {
	s, ok := d.text(v)
	s, empty := d.inserted(v, s)
	return s, ok && !empty
}

// forCase is the connector as a case is written for it: with the case's parameters, and defaults for the others. What
// has no default stays as the user set it.
func (c *Connector) forCase(set map[string]Given) (*Connector, Findings) {
	users := slices.ContainsFunc(c.Parameters, func(p Parameter) bool { return p.Set != nil })
	if c.with == nil || len(set) == 0 && !users {
		return c, nil
	}
	for _, p := range c.Parameters {
		if _, given := set[p.Name]; !given && p.Default == nil && p.Set != nil {
			set[p.Name] = *p.Set
		}
	}
	return c.with(set)
}
