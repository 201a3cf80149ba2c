package badgerstore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// changeOf is a change of the nth mutation of a workflow; those after it are younger, but
// for every third.
func changeOf(n int, unresolved bool, state ledger.State) blockChange {
	var k ledger.Key
	binary.BigEndian.PutUint64(k[:], uint64(n))
	return blockChange{blockedBy(uint64(10+n-5*(n%3/2)), &ledger.Blocker{
		Key: k, ID: k.ID(), Workflow: "w", Item: fmt.Sprint("item-", n%7), Scope: ledger.BlockItem, State: state,
	}), "api", unresolved}
}

func TestWhatBlocksIsAsTheChangesLeaveIt(t *testing.T) {
	t.Parallel()
	const seed, keys, steps = 7, 300, 4000
	random := rand.New(rand.NewPCG(seed, seed))
	g, model := newGate(), map[ledger.Key]blocked{}
	expected := func() (list []ledger.Blocker) {
		var all []blocked
		for _, b := range model {
			all = append(all, b)
		}
		slices.SortFunc(all, byAge)
		return plain(all)
	}
	var given, copies [][]ledger.Blocker
	for step := range steps {
		states := []ledger.State{ledger.NeedsReconcile, ledger.Indeterminate}
		c := changeOf(random.IntN(keys), random.IntN(3) > 0, states[random.IntN(2)])
		was, blocked := model[c.key]
		changes := blocked != c.unresolved || blocked && was != c.blocked
		if c.unresolved {
			model[c.key] = c.blocked
		} else {
			delete(model, c.key)
		}
		if got := g.put(gateDelta{mutations: []blockChange{c}}, time.Time{}); got != changes {
			t.Fatalf("step %d: told of a change: %t, want %t", step, got, changes)
		}
		if step%50 > 2 {
			continue
		}
		want := expected()
		if got := g.blockersOf("w"); !slices.Equal(got, want) {
			t.Fatalf("step %d: %d block, want %d, or in another order", step, len(got), len(want))
		}
		given, copies = append(given, g.blockersOf("w")), append(copies, slices.Clone(want))
		delta := gateDelta{mutations: []blockChange{changeOf(keys+1, true, ledger.Indeterminate), {blocked: c.blocked}}}
		want = slices.DeleteFunc(want, func(b ledger.Blocker) bool { return b.Key == c.key })
		if got := g.pending("w", &delta); !slices.Equal(got, append(want, delta.mutations[0].blocker())) {
			t.Fatalf("step %d: %d block with what is pending, want %d, or in another order", step, len(got), len(want)+1)
		}
	}
	for i := range given {
		if !slices.Equal(given[i], copies[i]) {
			t.Fatalf("list %d of %d was changed after it was given away", i, len(given))
		}
	}
	for k := range model {
		n := int(binary.BigEndian.Uint64(k[:]))
		g.put(gateDelta{mutations: []blockChange{changeOf(n, false, ledger.Applied)}}, time.Time{})
	}
	if len(g.stopped) != 0 || g.blockersOf("w") != nil || g.pending("w") != nil {
		t.Errorf("something is kept of a workflow in which nothing blocks: %v", g.stopped)
	}
}

// Settling one of many that are unknown must not list the others.
func TestAChangeAmongManyMakesNoList(t *testing.T) {
	t.Parallel()
	const many = 10_000
	g, all := newGate(), gateDelta{}
	for n := range many {
		all.mutations = append(all.mutations, changeOf(n, true, ledger.NeedsReconcile))
	}
	g.put(all, time.Time{})
	if n := len(g.blockersOf("w")); n != many {
		t.Fatalf("%d block, want %d", n, many)
	}
	before := unsafe.SliceData(g.stopped["w"].list)
	for n := range many / 4 {
		g.put(gateDelta{mutations: []blockChange{changeOf(n, false, ledger.Applied)}}, time.Time{})
	}
	if unsafe.SliceData(g.stopped["w"].list) != before {
		t.Error("a change made a list of what blocks, although nobody asked")
	}
	if n := len(g.blockersOf("w")); n != many-many/4 {
		t.Errorf("%d block, want %d", n, many-many/4)
	}
}

// A record that was read is one text, of which the names that the gate keeps are parts.
func TestTheGateKeepsNoWholeRecord(t *testing.T) {
	t.Parallel()
	for _, state := range []ledger.State{ledger.Indeterminate, ledger.Applied} {
		m := ledgertest.SampleMutation("a", state, 0)
		m.Run = "run-1"
		text := strings.Join([]string{m.ID, m.Workflow, m.Item, m.Run, string(m.State), string(m.Policy.BlockScope), m.Connector}, "|")
		parts := strings.Split(text, "|")
		m.ID, m.Workflow, m.Item, m.Run = parts[0], parts[1], parts[2], parts[3]
		m.State, m.Policy.BlockScope, m.Connector = ledger.State(parts[4]), ledger.BlockScope(parts[5]), parts[6]
		var d gateDelta
		d.setMutation(m)
		b := d.mutations[0].blocker()
		if m.Unresolved() && b != blockerOf(m) {
			t.Errorf("it blocks as %+v, want %+v", b, blockerOf(m))
		}
		g := newGate()
		g.put(d, time.Time{})
		names := []string{b.ID, b.Workflow, b.Item, b.Run, string(b.State), string(b.Scope), g.connectorOf(m.Key)}
		for workflow := range g.stopped {
			names = append(names, workflow)
		}
		from := uintptr(unsafe.Pointer(unsafe.StringData(text)))
		for _, s := range names {
			at := uintptr(unsafe.Pointer(unsafe.StringData(s)))
			if s != "" && at >= from && at < from+uintptr(len(text)) {
				t.Errorf("%s: %q is a part of the record", state, s)
			}
		}
	}
}
