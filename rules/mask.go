package rules

import "maps"

// mask is a tree of places in a JSON value. A nil mask holds none.
type mask struct {
	// drop says that the value itself is a place.
	drop    bool
	members map[string]*mask
	indexes map[int]*mask
	all     *mask
}

// placed is a set of places, by root. The zero value is empty.
type placed struct {
	json *mask
	// names are by root: form, query, path, host, header.
	names map[string]map[string]bool
}

// add puts a place in. The root json may have any depth, the others one name.
func (p *placed) add(at place) {
	if at.root == "json" {
		if p.json == nil {
			p.json = &mask{}
		}
		p.json.add(at.steps)
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

// has reports whether the place root.name is in.
func (p *placed) has(root, name string) bool { return p != nil && p.names[root][name] }

// with is the union of two sets.
func (p *placed) with(other *placed) *placed {
	out := &placed{json: p.json.with(other.json), names: map[string]map[string]bool{}}
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

// add grows the tree by one place.
func (m *mask) add(steps []placeStep) {
	for _, step := range steps {
		m = m.child(step)
	}
	m.drop = true
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

// meeting is the mask for a value that is to be hidden, and whether all of that is: it is a
// place itself, or of another kind than the steps to one expect, so that what is meant can't
// be found in it. What holds nothing hides nothing.
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
