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

// layer is a set of changes over the layers below it.
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
	// order lists the keys of new mutations, oldest first.
	order []ledger.Key
}

func newLayer() *layer {
	return &layer{
		mutations: map[ledger.Key]*ledger.Mutation{}, runs: map[string]*ledger.Run{}, items: map[itemName]*ledger.Item{},
		evidence: map[object]ledger.Key{}, deliveries: map[delivery]ledger.Delivery{},
		connectors: map[string][]byte{}, bodies: map[string][]byte{},
	}
}

// add puts the changes of the layer above into l.
func (l *layer) add(above *layer) {
	merge(l.mutations, above.mutations)
	merge(l.runs, above.runs)
	merge(l.items, above.items)
	merge(l.evidence, above.evidence)
	merge(l.deliveries, above.deliveries)
	merge(l.connectors, above.connectors)
	merge(l.bodies, above.bodies)
	l.order = append(l.order, above.order...)
	if above.gaps != nil {
		l.gaps = above.gaps
	}
	for _, e := range above.events {
		e.Seq = uint64(len(l.events)) + 1
		l.events = append(l.events, e)
	}
}

func merge[K comparable, V any](to, from map[K]V) {
	maps.Copy(to, from)
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

// all lists the mutations, oldest first.
func (ls layers) all() []*ledger.Mutation {
	var out []*ledger.Mutation
	seen := map[ledger.Key]bool{}
	for _, l := range ls {
		for _, k := range l.order {
			m, err := lookup(ls, func(l *layer) map[ledger.Key]*ledger.Mutation { return l.mutations }, k)
			if err == nil && m != nil && !seen[k] {
				out = append(out, m)
			}
			seen[k] = true
		}
	}
	slices.SortStableFunc(out, func(a, b *ledger.Mutation) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out
}

// allRuns lists the runs, oldest first.
func (ls layers) allRuns() []*ledger.Run {
	newest := map[string]*ledger.Run{}
	for _, l := range ls {
		merge(newest, l.runs)
	}
	out := make([]*ledger.Run, 0, len(newest))
	for _, r := range newest {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *ledger.Run) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// allItems lists the items, oldest first.
func (ls layers) allItems() []*ledger.Item {
	newest := map[itemName]*ledger.Item{}
	for _, l := range ls {
		merge(newest, l.items)
	}
	out := make([]*ledger.Item, 0, len(newest))
	for _, i := range newest {
		if i != nil {
			out = append(out, i)
		}
	}
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
