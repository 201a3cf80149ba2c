package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mask is a tree of places in a JSON value. A nil mask holds none.
type mask struct {
	// drop says that the value itself is a place, ways how it is collated where that is said.
	drop    bool
	ways    collation
	members map[string]*mask
	indexes map[int]*mask
	all     *mask
}

// placed is a set of places, by root. The zero value is empty.
type placed struct {
	// json are places in JSON; in a rule of GraphQL they are below the variable graphql.
	json *mask
	// names are by root: form, query, path, host, header.
	names map[string]map[string]bool
	// texts are places in JSON texts, below root and name.
	texts *mask
}

// add puts a place in. The root json may have any depth, the others one name.
func (p *placed) add(at place) {
	if at.root == "json" || at.root == "graphql" {
		if p.json == nil {
			p.json = &mask{}
		}
		p.json.at(at.steps).drop = true
		return
	}
	name, ok := at.name()
	if !ok {
		return
	}
	if p.names == nil {
		p.names = map[string]map[string]bool{}
	}
	if p.names[at.root] == nil {
		p.names[at.root] = map[string]bool{}
	}
	p.names[at.root][name] = true
}

// addText puts a place in that is in the JSON text of a form's field, or of a name of the query.
func (p *placed) addText(at place) {
	p.texts = p.texts.with(&mask{})
	p.texts.child(placeStep{name: at.root}).at(at.steps).drop = true
}

// texted is a query or a form as it is compared: JSON texts of which a place is in are canonical, without it.
func (p *placed) texted(root string, list *pairs) *pairs {
	if p == nil || p.texts == nil || p.texts.members[root] == nil || list.problem != nil {
		return list
	}
	out := *list
	out.list = slices.Clone(list.list)
	for i, one := range out.list {
		m := p.texts.members[root].members[one.name]
		if v, err := parseJSON([]byte(one.value)); m != nil && err == nil {
			out.list[i].value = string(appendCanonical(nil, v, m))
		}
	}
	return &out
}

// has reports whether the place root.name is in.
func (p *placed) has(root, name string) bool { return p != nil && p.names[root][name] }

// holds reports whether a place is in, or below one that is.
func (p *placed) holds(at place) bool {
	if at.root != "json" && at.root != "graphql" {
		name, _ := at.name()
		return p.has(at.root, name)
	}
	m := p.tree()
	for i := 0; m != nil && !m.drop && i < len(at.steps); i++ {
		m = m.members[at.steps[i].name]
	}
	return m != nil && m.drop
}

// with is the union of two sets.
func (p *placed) with(other *placed) *placed {
	out := &placed{json: p.json.with(other.json), names: map[string]map[string]bool{}, texts: p.texts.with(other.texts)}
	for _, set := range []*placed{p, other} {
		for root, names := range set.names {
			if out.names[root] == nil {
				out.names[root] = map[string]bool{}
			}
			maps.Copy(out.names[root], names)
		}
	}
	return out
}

// tree are the places in JSON.
func (p *placed) tree() *mask {
	if p == nil {
		return nil
	}
	return p.json
}

// at is the branch of a place, made when it is missing.
func (m *mask) at(steps []placeStep) *mask {
	for _, step := range steps {
		m = m.child(step)
	}
	return m
}

// child returns the branch of a step, made when it is missing.
func (m *mask) child(step placeStep) *mask {
	switch step.kind {
	case stepAll:
		if m.all == nil {
			m.all = &mask{}
		}
		return m.all
	case stepIndex:
		if m.indexes == nil {
			m.indexes = map[int]*mask{}
		}
		if m.indexes[step.index] == nil {
			m.indexes[step.index] = &mask{}
		}
		return m.indexes[step.index]
	case stepName:
	}
	if m.members == nil {
		m.members = map[string]*mask{}
	}
	if m.members[step.name] == nil {
		m.members[step.name] = &mask{}
	}
	return m.members[step.name]
}

// member is the mask for a member, and whether the member goes altogether.
func (m *mask) member(name string, v *jsonValue) (*mask, bool) {
	if m == nil {
		return nil, false
	}
	sub := m.members[name]
	return sub, sub.takes(v)
}

// element is the mask for an element, and whether the element goes altogether.
// An index is more precise than [*].
func (m *mask) element(i int, v *jsonValue) (*mask, bool) {
	if m == nil {
		return nil, false
	}
	sub := m.all
	if at := m.indexes[i]; at != nil {
		sub = at.with(m.all)
	}
	return sub, sub.takes(v)
}

// meeting is the mask for a value that is to be hidden, and whether all of it is. All is hidden at a place itself, and
// where the kind isn't what the steps to a place expect. What is meant can't be found in the latter. What holds nothing
// hides nothing.
func (m *mask) meeting(v *jsonValue) (*mask, bool) {
	switch {
	case m == nil || m.drop:
		return m, m != nil
	case v.kind == jsonNull || (v.kind == jsonArray || v.kind == jsonObject) && len(v.items) == 0:
		return nil, false
	case v.kind == jsonArray && len(m.members) == 0, v.kind == jsonObject && m.all == nil && len(m.indexes) == 0:
		return m, false
	case v.kind == jsonArray && m.all != nil:
		// The rule knows both kinds; what it looks for in an object may be in each element.
		return &mask{all: m.all.with(&mask{members: m.members}), indexes: m.indexes}, false
	case v.kind == jsonObject && len(m.members) > 0:
		one := (&mask{members: m.members}).with(m.all)
		for _, sub := range m.indexes {
			one = one.with(sub)
		}
		return one, one.drop
	}
	return m, true
}

// takes reports whether the mask takes the whole value out. A list whose every
// element goes is gone too, so that an empty list and no list are the same.
func (m *mask) takes(v *jsonValue) bool {
	if m == nil {
		return false
	}
	return m.drop || m.all != nil && m.all.drop && v.kind == jsonArray
}

// with merges two masks for one value.
func (m *mask) with(other *mask) *mask {
	if m == nil {
		return other
	}
	if other == nil {
		return m
	}
	return &mask{
		drop:    m.drop || other.drop,
		members: mergeMasks(m.members, other.members),
		indexes: mergeMasks(m.indexes, other.indexes),
		all:     m.all.with(other.all),
	}
}

// mergeMasks merges two branches by key.
func mergeMasks[K comparable](a, b map[K]*mask) map[K]*mask {
	if len(a) == 0 {
		return b
	}
	out := maps.Clone(a)
	for key, sub := range b {
		out[key] = out[key].with(sub)
	}
	return out
}

// place is a selector: a root such as json or form, and steps below it. It names
// what is written, ignored or secret; it is never evaluated as an expression.
type place struct {
	source string
	root   string
	steps  []placeStep
	// veiled says that the value of an expression doesn't show what it reads. The value only says whether that is
	// there, or is a digest of it.
	veiled bool
}

// placeStep is one step: a name, an index, or every element.
type placeStep struct {
	name  string
	index int
	kind  stepKind
}

type stepKind uint8

const (
	stepName stepKind = iota
	stepIndex
	stepAll
)

// parsePlace reads a selector such as json.items[*].id or form['a[b]'].
func parsePlace(source string) (place, error) {
	end := strings.IndexAny(source, ".[")
	if end < 0 {
		end = len(source)
	}
	p := place{source: source, root: source[:end]}
	if !isName(p.root) {
		return place{}, fmt.Errorf("a place begins with a name such as json, not %q", p.root)
	}
	steps, err := parseSteps(source[end:])
	if err != nil {
		return place{}, err
	}
	p.steps = steps
	return p, nil
}

// parseSteps reads ".name", "[3]", "[*]" and "['name']".
func parseSteps(rest string) ([]placeStep, error) {
	var steps []placeStep
	for rest != "" {
		step, tail, err := parseStep(rest)
		if err != nil {
			return nil, err
		}
		steps, rest = append(steps, step), tail
	}
	return steps, nil
}

// parseStep reads the first step of rest.
func parseStep(rest string) (placeStep, string, error) {
	if name, ok := strings.CutPrefix(rest, "."); ok {
		end := strings.IndexAny(name, ".[")
		if end < 0 {
			end = len(name)
		}
		if !isName(name[:end]) {
			return placeStep{}, "", fmt.Errorf("%q is no plain name; write it as ['%s']", name[:end], name[:end])
		}
		return placeStep{name: name[:end]}, name[end:], nil
	}
	inner, ok := strings.CutPrefix(rest, "[")
	if !ok || inner == "" {
		return placeStep{}, "", fmt.Errorf("%q is no step; write .name, [*], [0] or ['name']", rest)
	}
	if inner[0] == '\'' || inner[0] == '"' {
		name, tail, found := strings.Cut(inner[1:], inner[:1]+"]")
		if !found {
			return placeStep{}, "", fmt.Errorf("the bracket in %q is not closed", rest)
		}
		return placeStep{name: name}, tail, nil
	}
	text, tail, found := strings.Cut(inner, "]")
	if !found {
		return placeStep{}, "", fmt.Errorf("the bracket in %q is not closed", rest)
	}
	if text == "*" {
		return placeStep{kind: stepAll}, tail, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return placeStep{}, "", fmt.Errorf("[%s] is neither [*], an index nor a quoted name", text)
	}
	return placeStep{kind: stepIndex, index: n}, tail, nil
}

// isName reports whether s is a plain name as an expression has it.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// covers reports whether the place and the steps of an expression can name a common value. Then one is the beginning of
// the other.
func (p place) covers(root string, steps []placeStep) bool {
	if p.root != root {
		return false
	}
	for i := 0; i < len(p.steps) && i < len(steps); i++ {
		a, b := p.steps[i], steps[i]
		if a.kind == stepAll || b.kind == stepAll {
			continue
		}
		if a != b {
			return false
		}
	}
	return true
}

// name is the single name of a place such as form.x; false for any other shape.
func (p place) name() (string, bool) {
	if viewPlaces[p.root] != nil && len(p.steps) > 0 {
		return p.viewName()
	}
	if len(p.steps) != 1 || p.steps[0].kind != stepName {
		return "", false
	}
	return p.steps[0].name, true
}
