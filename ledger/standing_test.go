package ledger

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// stop is the nth mutation of a workflow; those after it are younger, but for every third.
func stop(n int, state State) *Mutation {
	var k Key
	binary.BigEndian.PutUint64(k[:], uint64(n))
	return &Mutation{
		CreatedAt: time.Unix(0, int64(10+n-5*(n%3/2))),
		Intent:    Intent{Key: k, ID: k.ID(), Scope: Scope{Workflow: "w", Item: fmt.Sprint("item-", n%7)}},
		Payload:   Payload{Policy: Policy{BlockScope: BlockItem}},
		Outcome:   Outcome{State: state},
	}
}

func TestWhatBlocksIsAsTheChangesLeaveIt(t *testing.T) {
	t.Parallel()
	const seed, keys, steps = 7, 200, 2000
	random := rand.New(rand.NewPCG(seed, seed))
	var b Blockers
	model := map[Key]*Mutation{}
	expected := func(also ...*Mutation) []Blocker {
		all := slices.Clone(also)
		for _, m := range model {
			all = append(all, m)
		}
		all = slices.DeleteFunc(all, func(m *Mutation) bool { return !m.Unresolved() })
		slices.SortFunc(all, func(a, b *Mutation) int { return byAge(blockedBy(a), blockedBy(b)) })
		var list []Blocker
		for _, m := range all {
			list = append(list, blockerOf(m))
		}
		return list
	}
	var given, copies [][]Blocker
	for step := range steps {
		states := []State{NeedsReconcile, Indeterminate, Applied}
		m := stop(random.IntN(keys), states[random.IntN(3)])
		was := model[m.Key]
		blocked := was != nil && was.Unresolved()
		changes := blocked != m.Unresolved() || blocked && was.State != m.State
		model[m.Key] = m
		if got := b.Put(m); got != changes {
			t.Fatalf("step %d: told of a change: %t, want %t", step, got, changes)
		}
		if step%50 > 2 {
			continue
		}
		want := expected()
		if got := b.Of("w"); !slices.Equal(got, want) {
			t.Fatalf("step %d: %d block, want %d, or in another order", step, len(got), len(want))
		}
		given, copies = append(given, b.Of("w")), append(copies, slices.Clone(want))
		later, settled := stop(keys+1, Indeterminate), stop(int(binary.BigEndian.Uint64(m.Key[:])), Applied)
		model[m.Key] = settled
		want = expected(later)
		if got := b.With("w", later, settled); !slices.Equal(got, want) {
			t.Fatalf("step %d: %d block with what is pending, want %d, or in another order", step, len(got), len(want))
		}
		model[m.Key] = m
	}
	for i := range given {
		if !slices.Equal(given[i], copies[i]) {
			t.Fatalf("list %d of %d was changed after it was given away", i, len(given))
		}
	}
	for n := range keys {
		b.Put(stop(n, Applied))
	}
	if len(b.of) != 0 || b.Of("w") != nil || b.With("w") != nil {
		t.Errorf("something is kept of a workflow in which nothing blocks: %v", b.of)
	}
}

// A record that was read is one text, of which its names are parts.
func TestNoWholeRecordIsKept(t *testing.T) {
	t.Parallel()
	for _, state := range []State{Indeterminate, Applied} {
		parts := []string{"m-1", "w", "item", "run-1", string(state), string(BlockItem), "api"}
		text := strings.Join(parts, "|")
		for i, at := 0, 0; i < len(parts); i++ {
			parts[i], at = text[at:at+len(parts[i])], at+len(parts[i])+1
		}
		m := &Mutation{
			Intent:  Intent{ID: parts[0], Scope: Scope{Workflow: parts[1], Item: parts[2], Run: parts[3]}, Connector: parts[6]},
			Payload: Payload{Policy: Policy{BlockScope: BlockScope(parts[5])}},
			Outcome: Outcome{State: State(parts[4])},
		}
		s := &standing{connectors: map[Key]string{}}
		s.apply(Changes{Mutations: []*Mutation{m}})
		names := []string{s.ConnectorOf(m.Key)}
		for workflow := range s.blockers.of {
			names = append(names, workflow)
		}
		for _, b := range s.blockers.Of("w") {
			names = append(names, b.ID, b.Workflow, b.Item, b.Run, string(b.State), string(b.Scope))
		}
		if m.Unresolved() != (len(names) > 1) {
			t.Errorf("%s: %q", state, names)
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
