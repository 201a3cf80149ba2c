package rules

import (
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// onceMap shows CEL the query, the form or the header as a map with exactly one
// value per name. Reading a repeated name is noted as an ambiguity in the scope,
// where no default can hide it.
type onceMap struct {
	lazyMap
	scope *scope
	root  string
}

func (s *scope) onceMap(root string) *onceMap {
	return &onceMap{lazyMap{nil, func(name string) (ref.Val, bool) {
		if v, ok := s.named(root, name); ok {
			return types.String(v), true
		}
		return nil, false
	}}, s, root}
}

var _ types.AggregateSizeVisitor = (*onceMap)(nil)

// whole is the map as a value of its own, for everything that isn't a lookup.
func (m *onceMap) whole() traits.Mapper {
	out := map[string]string{}
	switch m.root {
	case "query":
		m.scope.singles(m.scope.queryPairs(), m.root, out)
	case "form":
		m.scope.singles(m.scope.form(), m.root, out)
	default:
		for name := range m.scope.req.Header {
			name = strings.ToLower(name)
			if v, ok := m.scope.header(name); ok {
				out[name] = v
			}
		}
	}
	return types.NewStringStringMap(types.DefaultTypeAdapter, out)
}

// longList is from how many fields on names are looked for in an index. An expression may go through all of them and
// ask for each, and a form may have very many.
const longList = 64

// pairIndex is where the values of each name are.
type pairIndex struct {
	values map[string][]string
	// spellings counts the names that are one but for their case.
	spellings map[string]int
	size      uint32
}

// indexOf makes the index, the first time that it is asked for.
func (s *scope) indexOf(p *pairs) *pairIndex {
	if i := s.indexes[p]; i != nil {
		return i
	}
	i := &pairIndex{values: allValues(p), spellings: map[string]int{}, size: pairsSize(p)}
	for name := range i.values {
		i.spellings[fold(name)]++
	}
	if s.indexes == nil {
		s.indexes = map[*pairs]*pairIndex{}
	}
	s.indexes[p] = i
	return i
}

// single is the single value of a name, as pair has it.
func (s *scope) single(i *pairIndex, what, name string) (string, bool) {
	values := i.values[name]
	if others := i.spellings[fold(name)]; others > 1 || others == 1 && len(values) == 0 {
		s.note(refuseVariant(what, name))
	}
	return s.one(values, what, name)
}

// singles gives every name its one value.
func (s *scope) singles(p *pairs, what string, out map[string]string) {
	i := s.indexOf(p)
	for _, name := range pairNames(p) {
		if v, ok := s.single(i, what, name); ok {
			out[name] = v
		}
	}
}

// AggregateSize implements types.AggregateSizeVisitor. CEL asks for it wherever the map stands by itself, as in 'a' in
// query. That reads no more than the one name.
func (m *onceMap) AggregateSize(types.AggregateSizer) uint32 {
	size := uint32(1)
	switch m.root {
	case "query":
		size += m.scope.sizeOf(m.scope.queryPairs())
	case "form":
		size += m.scope.sizeOf(m.scope.form())
	default:
		for name, values := range m.scope.req.Header {
			size += textSize(name)
			for _, v := range values {
				size += textSize(v)
			}
		}
	}
	return size
}

// sizeOf is pairsSize, which is counted once where there is much to count.
func (s *scope) sizeOf(p *pairs) uint32 {
	if len(p.list) > longList {
		return s.indexOf(p).size
	}
	return pairsSize(p)
}

func pairsSize(p *pairs) (size uint32) {
	for _, one := range p.list {
		size += textSize(one.name) + textSize(one.value)
	}
	return size
}

// Iterator implements traits.Iterable.
func (m *onceMap) Iterator() traits.Iterator { return m.whole().Iterator() }

// Size implements traits.Sizer.
func (m *onceMap) Size() ref.Val { return m.whole().Size() }

// Equal implements ref.Val.
func (m *onceMap) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*onceMap); ok {
		other = o.whole()
	}
	return m.whole().Equal(other)
}

// ConvertToNative implements ref.Val.
func (m *onceMap) ConvertToNative(t reflect.Type) (any, error) {
	v, err := m.whole().ConvertToNative(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.root, err)
	}
	return v, nil
}

// ConvertToType implements ref.Val.
func (m *onceMap) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return m
	}
	return m.whole().ConvertToType(t)
}

// Type implements ref.Val.
func (m *onceMap) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (m *onceMap) Value() any { return m.whole().Value() }
