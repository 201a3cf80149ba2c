package badgerstore

import (
	"encoding/hex"
	"slices"
	"strings"

	"keep-proxy/ledger"
)

// mutationIndexes lists the index keys that follow from a record.
func mutationIndexes(m *ledger.Mutation) [][]byte {
	at := mark(m.CreatedAt, m.Key)
	item := digest(m.Workflow, m.Item)
	out := [][]byte{key(xCreated, at), key(xByItem, item[:], at)}
	if m.Unresolved() {
		workflow := digest(m.Workflow)
		out = append(out, key(xUnresolved, workflow[:], at))
	}
	if m.Queued() {
		out = append(out, key(xDue, mark(m.NextTryAt, m.Key)))
	}
	if letter := stateLetter(m.State); letter != 0 {
		out = append(out, key(xState, []byte{letter}, at))
	}
	if m.Escalation != nil && m.Escalation.ClosedAt.IsZero() {
		out = append(out, key(xEscalated, at))
	}
	if m.Undo != nil && owed(m.State) {
		out = append(out, key(xOwed, at))
	}
	return append(out, runIndexes(m, at)...)
}

// owed reports whether an obligation in this state is neither met nor waived.
func owed(s ledger.State) bool { return s != ledger.Applied && s != ledger.Skipped }

// runIndexes lists a record under its own run and under the run of each dispatch.
func runIndexes(m *ledger.Mutation, at []byte) [][]byte {
	runs := make([]string, 0, 2)
	add := func(run string) {
		if run != "" && !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	add(m.Run)
	for i := range m.Dispatches {
		add(m.Dispatches[i].Run)
	}
	out := make([][]byte, len(runs))
	for i, run := range runs {
		d := digest(run)
		out[i] = key(xByRun, d[:], at)
	}
	return out
}

// storedRunIndexes lists the index keys of a run record.
func storedRunIndexes(r *ledger.Run) [][]byte {
	id := digest(r.ID)
	opened := mark(r.OpenedAt, id)
	out := [][]byte{key(xRunOpened, opened)}
	if r.Item != "" {
		item := digest(r.Workflow, r.Item)
		out = append(out, key(xRunOfItem, item[:], opened))
	}
	if r.State.Ended() {
		return append(out, key(xRunEnded, mark(r.EndedAt, id)))
	}
	return append(out, key(xRunActive, id[:]))
}

func itemIndexes(i *ledger.Item) [][]byte {
	name := digest(i.Workflow, i.Item)
	opened := mark(i.OpenedAt, name)
	out := [][]byte{key(xItemOpened, opened)}
	if prefix := itemIDPrefix(i.ID); prefix != nil {
		out = append(out, key(xItemID, prefix, opened))
	}
	if i.Shared && i.ActiveRun != "" {
		run := digest(i.ActiveRun)
		out = append(out, key(xItemTaken, run[:], name[:]))
	}
	return out
}

// itemIDPrefix is an item's id in a key; nil for what is none.
func itemIDPrefix(id string) []byte {
	digits, ok := strings.CutPrefix(id, "i-")
	b, err := hex.DecodeString(digits)
	if !ok || err != nil || len(b) != 10 {
		return nil
	}
	return b
}

// unlisted reports whether an index key belongs to those that ledgers made before them
// have in part only: see identity.Indexes.
func unlisted(k []byte) bool {
	return k[0] == xItemID || k[0] == xRunOfItem || k[0] == xOwed || k[0] == xRuleMade || k[0] == xTouched
}

// reindex replaces the index keys before by those after.
func (l *layer) reindex(before, after [][]byte) error {
	for _, k := range after {
		if !containsKey(before, k) {
			if err := l.put(k, nil); err != nil {
				return err
			}
		}
	}
	for _, k := range before {
		if !containsKey(after, k) {
			l.remove(k)
		}
	}
	return nil
}

func containsKey(keys [][]byte, k []byte) bool {
	for _, other := range keys {
		if string(other) == string(k) {
			return true
		}
	}
	return false
}
