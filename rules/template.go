package rules

import (
	"fmt"
)

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
// header. A list gives its name several times.
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
