package badgerstore

import (
	"encoding/hex"
	"slices"
	"strings"

	"keep-proxy/ledger"
)

// mutationIndexes lists the index keys that follow from a record: first those that stay
// while it has the same dispatches.
func mutationIndexes(m *ledger.Mutation) [][]byte {
	var room [fewRuns]string
	at, item, runs := mark(m.CreatedAt, m.Key), digest(m.Workflow, m.Item), appendRuns(room[:0], m)
	l := keyList{make([][]byte, 0, 3+len(runs)), make([]byte, 0, (3+len(runs))*longIndexKey)}
	l.add(xCreated, at[:])
	l.add(xByItem, item[:], at[:])
	for _, run := range runs {
		d := digest(run)
		l.add(xByRun, d[:], at[:])
	}
	return l.moving(m, at)
}

// mutationIndexesAfter is mutationIndexes for a record of which the version before has
// the index keys of old.
func mutationIndexesAfter(old kept[entryOfMutation], m *ledger.Mutation) [][]byte {
	before := old.record.Mutation
	if before == nil || !sameSteady(before, m) {
		return mutationIndexes(m)
	}
	var room [fewRuns]string
	steady := 2 + len(appendRuns(room[:0], m))
	l := keyList{keys: append(make([][]byte, 0, steady+1), old.indexes[:steady]...)}
	return l.moving(m, mark(m.CreatedAt, m.Key))
}

// sameSteady reports whether two versions of a record have the same keys of those that stay.
func sameSteady(old, m *ledger.Mutation) bool {
	return old.Key == m.Key && old.CreatedAt.Equal(m.CreatedAt) && old.Workflow == m.Workflow && old.Item == m.Item &&
		old.Run == m.Run && slices.EqualFunc(old.Dispatches, m.Dispatches, func(a, b ledger.Dispatch) bool { return a.Run == b.Run })
}

// moving adds the keys that follow from what is changed of a record, and returns all.
func (l *keyList) moving(m *ledger.Mutation, at [markSize]byte) [][]byte {
	if m.Unresolved() {
		workflow := digest(m.Workflow)
		l.add(xUnresolved, workflow[:], at[:])
	}
	if m.Queued() {
		next := mark(m.NextTryAt, m.Key)
		l.add(xDue, next[:])
	}
	if letter := stateLetter(m.State); letter != 0 {
		l.add(xState, []byte{letter}, at[:])
	}
	if m.Escalation != nil && m.Escalation.ClosedAt.IsZero() {
		l.add(xEscalated, at[:])
	}
	if m.Undo != nil && owed(m.State) {
		l.add(xOwed, at[:])
	}
	return l.keys
}

// keyList makes keys that lie in one piece of memory.
type keyList struct {
	keys [][]byte
	room []byte
}

// longIndexKey is the length of the longest index key of a record.
const longIndexKey = 1 + 32 + markSize

func (l *keyList) add(kind byte, parts ...[]byte) {
	if l.room == nil {
		l.room = make([]byte, 0, longIndexKey)
	}
	from := len(l.room)
	l.room = append(l.room, kind)
	for _, p := range parts {
		l.room = append(l.room, p...)
	}
	l.keys = append(l.keys, l.room[from:len(l.room):len(l.room)])
}

// owed reports whether an obligation in this state is neither met nor waived.
func owed(s ledger.State) bool { return s != ledger.Applied && s != ledger.Skipped }

// fewRuns is how many runs most records have at most.
const fewRuns = 4

// appendRuns adds to runs the record's own run and those of its dispatches: under each of
// them it is found.
func appendRuns(runs []string, m *ledger.Mutation) []string {
	runs = appendRun(runs, m.Run)
	for i := range m.Dispatches {
		runs = appendRun(runs, m.Dispatches[i].Run)
	}
	return runs
}

func appendRun(runs []string, run string) []string {
	if run == "" || slices.Contains(runs, run) {
		return runs
	}
	return append(runs, run)
}

// storedRunIndexes lists the index keys of a run record.
func storedRunIndexes(r *ledger.Run) [][]byte {
	id := digest(r.ID)
	opened := mark(r.OpenedAt, id)
	out := [][]byte{key(xRunOpened, opened[:])}
	if r.Item != "" {
		item := digest(r.Workflow, r.Item)
		out = append(out, key(xRunOfItem, item[:], opened[:]))
	}
	if r.State.Ended() {
		ended := mark(r.EndedAt, id)
		return append(out, key(xRunEnded, ended[:]))
	}
	return append(out, key(xRunActive, id[:]))
}

func itemIndexes(i *ledger.Item) [][]byte {
	name := digest(i.Workflow, i.Item)
	opened := mark(i.OpenedAt, name)
	out := [][]byte{key(xItemOpened, opened[:])}
	if prefix := itemIDPrefix(i.ID); prefix != nil {
		out = append(out, key(xItemID, prefix, opened[:]))
	}
	if i.State == ledger.ItemNeedsAttention {
		out = append(out, key(xItemWaits, opened[:]))
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

// reindex replaces the index keys before by those after.
func (l *layer) reindex(before, after [][]byte) error {
	for _, k := range after {
		if containsKey(before, k) {
			continue
		}
		sealed := make([]byte, sealSize)
		sealIn(k, sealed, 0)
		l.set(k, sealed)
	}
	for _, k := range before {
		if !containsKey(after, k) {
			l.remove(k)
		}
	}
	return l.fits()
}

func containsKey(keys [][]byte, k []byte) bool {
	for _, other := range keys {
		if string(other) == string(k) {
			return true
		}
	}
	return false
}
