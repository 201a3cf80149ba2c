package badgerstore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"keep-proxy/ledger"
)

// mutationIndexes lists the index keys that follow from a record.
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
		l.set(k, seal(k, nil, 0), nil)
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

// counts reports whether an index entry counts: its record must name it. Badger can bring back after a crash what
// was removed. Another key always counts.
func (s snapshot) counts(x []byte) (bool, error) {
	if bytes.IndexByte(derived, x[0]) < 0 || s.version(x) != nil { // Badger may not have it yet.
		return true, nil
	}
	v, name := &view{src: s}, markName(x)
	var named [][]byte
	var err error
	switch x[0] {
	case xUnresolved, xDue, xState, xByRun, xByItem, xCreated, xEscalated, xOwed:
		var m *ledger.Mutation
		if m, err = v.Mutation(name); err == nil {
			named = mutationIndexes(m)
		}
	case xRunActive, xRunEnded, xRunOpened, xRunOfItem:
		var r *ledger.Run
		if r, err = v.runBy(name); err == nil {
			named = storedRunIndexes(r)
		}
	case xItemOpened, xItemTaken, xItemID, xItemWaits:
		var i *ledger.Item
		if i, err = v.itemBy(name); err == nil {
			named = itemIndexes(i)
		}
	}
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return containsKey(named, x), err
}

// derived are the kinds of index entries that follow from one record each.
var derived = []byte{
	xUnresolved, xDue, xState, xByRun, xByItem, xCreated, xEscalated, xOwed,
	xRunActive, xRunEnded, xRunOpened, xRunOfItem, xItemOpened, xItemTaken, xItemID, xItemWaits,
}
