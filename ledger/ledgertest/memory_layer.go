package ledgertest

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"keep-proxy/ledger"
)

type itemName struct{ workflow, item string }

type object struct{ connector, account, name string }

type delivery struct {
	run string
	key ledger.Key
}

// layer is a set of changes over the layers below it. Its maps are made by the first change
// that they take: most commands change one or two of them.
type layer struct {
	mutations  map[ledger.Key]*ledger.Mutation
	runs       map[string]*ledger.Run
	items      map[itemName]*ledger.Item
	evidence   map[object]ledger.Key
	deliveries map[delivery]ledger.Delivery
	connectors map[string][]byte
	bodies     map[string][]byte
	events     []ledger.Event
	gaps       []ledger.Gap
	// order lists the keys of new mutations, oldest first, each once: a dropped one, which is
	// nil, keeps its place.
	order []ledger.Key
	// sorted are the mutations as they are listed, nil if nobody asked since they changed.
	sorted []*ledger.Mutation
}

// add puts the changes of the layer above into l.
func (l *layer) add(above *layer) {
	if len(above.mutations) > 0 {
		l.sorted = nil
	}
	for _, k := range above.order {
		if _, ordered := l.mutations[k]; !ordered {
			l.order = append(l.order, k)
		}
	}
	merge(&l.mutations, above.mutations)
	merge(&l.runs, above.runs)
	merge(&l.items, above.items)
	merge(&l.evidence, above.evidence)
	merge(&l.deliveries, above.deliveries)
	merge(&l.connectors, above.connectors)
	merge(&l.bodies, above.bodies)
	if above.gaps != nil {
		l.gaps = above.gaps
	}
	for _, e := range above.events {
		e.Seq = uint64(len(l.events)) + 1
		l.events = append(l.events, e)
	}
}

// empty reports whether the layer changes nothing.
func (l *layer) empty() bool {
	return len(l.mutations)+len(l.runs)+len(l.items)+len(l.evidence)+len(l.deliveries)+len(l.connectors)+len(l.bodies)+len(l.events) == 0 &&
		l.gaps == nil
}

// changes are what the layer changes of runs and mutations.
func (l *layer) changes() (c ledger.Changes) {
	for _, r := range l.runs {
		c.Runs = append(c.Runs, r)
	}
	for _, m := range l.mutations {
		if m != nil {
			c.Mutations = append(c.Mutations, m)
		}
	}
	return c
}

// clone is a layer of the same changes.
func (l *layer) clone() *layer {
	return &layer{
		mutations: maps.Clone(l.mutations), runs: maps.Clone(l.runs), items: maps.Clone(l.items), evidence: maps.Clone(l.evidence),
		deliveries: maps.Clone(l.deliveries), connectors: maps.Clone(l.connectors), bodies: maps.Clone(l.bodies),
		events: slices.Clone(l.events), gaps: l.gaps, order: slices.Clone(l.order),
	}
}

// change changes one of a layer's maps.
func change[K comparable, V any](in *map[K]V, k K, v V) {
	if *in == nil {
		*in = map[K]V{}
	}
	(*in)[k] = v
}

func merge[K comparable, V any](to *map[K]V, from map[K]V) {
	switch {
	case len(from) == 0:
	case *to == nil:
		*to = maps.Clone(from)
	default:
		maps.Copy(*to, from)
	}
}

// layers are read from the last one, the newest, down.
type layers []*layer

func lookup[K comparable, V any](ls layers, in func(*layer) map[K]V, k K) (V, error) {
	for _, l := range slices.Backward(ls) {
		if v, ok := in(l)[k]; ok {
			return v, nil
		}
	}
	var none V
	return none, ledger.ErrNotFound
}

// each calls fn with the newest of every key, in no order.
func each[K comparable, V any](ls layers, in func(*layer) map[K]V, fn func(V)) {
	for n, l := range ls {
		for k, v := range in(l) {
			if _, err := lookup(ls[n+1:], in, k); err != nil {
				fn(v)
			}
		}
	}
}

func (l *layer) ofMutations() map[ledger.Key]*ledger.Mutation { return l.mutations }
func (l *layer) ofRuns() map[string]*ledger.Run               { return l.runs }
func (l *layer) ofItems() map[itemName]*ledger.Item           { return l.items }

// all lists the mutations, oldest first. The list is the layer's own.
func (ls layers) all() []*ledger.Mutation {
	changed := func(l *layer) bool { return len(l.mutations) > 0 }
	bottom := ls[0]
	if slices.ContainsFunc(ls[1:], changed) {
		return ls.list()
	}
	if bottom.sorted == nil {
		bottom.sorted = ls[:1].list()
	}
	return bottom.sorted
}

func (ls layers) list() []*ledger.Mutation {
	var out []*ledger.Mutation
	for n, l := range ls {
		for _, k := range l.order {
			_, err := lookup(ls[:n], (*layer).ofMutations, k)
			listed := err == nil
			if m, err := lookup(ls, (*layer).ofMutations, k); !listed && err == nil && m != nil {
				out = append(out, m)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *ledger.Mutation) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out
}

// runs lists those that ok selects, oldest first.
func (ls layers) runs(ok func(*ledger.Run) bool) []*ledger.Run {
	var out []*ledger.Run
	each(ls, (*layer).ofRuns, func(r *ledger.Run) {
		if ok(r) {
			out = append(out, r)
		}
	})
	slices.SortFunc(out, func(a, b *ledger.Run) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// items lists those that ok selects, oldest first.
func (ls layers) items(ok func(*ledger.Item) bool) []*ledger.Item {
	var out []*ledger.Item
	each(ls, (*layer).ofItems, func(i *ledger.Item) {
		if i != nil && ok(i) {
			out = append(out, i)
		}
	})
	slices.SortFunc(out, func(a, b *ledger.Item) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// keys lists the keys of the mutations that ok selects, oldest first.
func (ls layers) keys(ok func(*ledger.Mutation) bool) []ledger.Key {
	var out []ledger.Key
	for _, m := range ls.all() {
		if ok(m) {
			out = append(out, m.Key)
		}
	}
	return out
}

// blockers lists the unresolved mutations of a workflow.
func (ls layers) blockers(workflow string) []ledger.Blocker {
	var out []ledger.Blocker
	for _, m := range ls.all() {
		if m.Workflow == workflow && m.Unresolved() {
			out = append(out, ledger.Blocker{
				Key: m.Key, ID: m.ID, Workflow: m.Workflow, Item: m.Item, Run: m.Run,
				Scope: m.Policy.BlockScope, State: m.State,
			})
		}
	}
	return out
}

// compareKeys orders keys by their bytes.
func compareKeys(a, b ledger.Key) int { return bytes.Compare(a[:], b[:]) }
