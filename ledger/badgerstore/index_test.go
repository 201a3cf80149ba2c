package badgerstore

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// What is taken over from the version before must be what the record would get by itself.
func TestIndexKeysOfTheNextVersionAreThoseOfTheRecord(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ledger.Mutation){
		"nothing":            func(*ledger.Mutation) {},
		"state":              func(m *ledger.Mutation) { m.State = ledger.NeedsReconcile },
		"applied":            func(m *ledger.Mutation) { m.State = ledger.Applied },
		"next try":           func(m *ledger.Mutation) { m.State, m.NextTryAt = ledger.NeedsReconcile, time.Unix(99, 0) },
		"escalation":         func(m *ledger.Mutation) { m.Escalation = &ledger.Escalation{Number: 1} },
		"obligation":         func(m *ledger.Mutation) { m.Undo = &ledger.Undo{} },
		"run":                func(m *ledger.Mutation) { m.Run = "another" },
		"item":               func(m *ledger.Mutation) { m.Item = "another" },
		"workflow":           func(m *ledger.Mutation) { m.Workflow = "another" },
		"time":               func(m *ledger.Mutation) { m.CreatedAt = m.CreatedAt.Add(time.Second) },
		"key":                func(m *ledger.Mutation) { m.Key[0]++ },
		"dispatch":           func(m *ledger.Mutation) { m.Dispatches = append(m.Dispatches, ledger.Dispatch{Run: m.Run}) },
		"dispatch by a run":  func(m *ledger.Mutation) { m.Dispatches = append(m.Dispatches, ledger.Dispatch{Run: "another"}) },
		"dispatch of a run":  func(m *ledger.Mutation) { m.Dispatches[0].Run = "another" },
		"no dispatch":        func(m *ledger.Mutation) { m.Dispatches = nil },
		"run and dispatches": func(m *ledger.Mutation) { m.Run, m.Dispatches = "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := ledgertest.SampleMutation("a", ledger.InFlight, 0)
			m := old.Clone()
			change(m)
			before := kept[entryOfMutation]{record: entryOfMutation{Mutation: old}, indexes: mutationIndexes(old)}
			got, want := mutationIndexesAfter(before, m), mutationIndexes(m)
			for _, list := range [][][]byte{got, want} {
				slices.SortFunc(list, bytes.Compare)
			}
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%q, want %q", got, want)
			}
			if !slices.EqualFunc(before.indexes, mutationIndexes(ledgertest.SampleMutation("a", ledger.InFlight, 0)), bytes.Equal) {
				t.Error("the keys of the version before were changed")
			}
		})
	}
}
