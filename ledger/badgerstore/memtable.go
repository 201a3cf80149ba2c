package badgerstore

import (
	"github.com/tidwall/btree"
)

// memtable holds what Badger doesn't have yet: of each key the last change, sorted by key. A copy
// takes no time: both share what neither changes afterwards. A nil one holds nothing.
type memtable struct {
	tree btree.Map[string, *version]
	// size is what Badger will get, in bytes.
	size int
}

// version is the last change of a key. It is never changed itself.
type version struct {
	// sealed is the value as it is stored, nil if the key was removed.
	sealed []byte
	// commit is the number of the commit that holds the change.
	commit uint64
	// record is the record that sealed holds, decoded; nil for none.
	record any
}

// get returns the last change of a key, nil if there is none.
func (m *memtable) get(k []byte) *version {
	if m == nil {
		return nil
	}
	v, _ := m.tree.Get(string(k))
	return v
}

// set makes v the last change of a key, and returns the one before.
func (m *memtable) set(k string, v *version) (before *version) {
	before, _ = m.tree.Set(k, v)
	m.size += entryOverhead + len(k) + len(v.sealed)
	if before != nil {
		m.size -= entryOverhead + len(k) + len(before.sealed)
	}
	return before
}

// unset takes a change back, in favour of the one before.
func (m *memtable) unset(k string, before *version) {
	if before != nil {
		m.set(k, before)
		return
	}
	if v, ok := m.tree.Delete(k); ok {
		m.size -= entryOverhead + len(k) + len(v.sealed)
	}
}

func (m *memtable) copy() *memtable {
	return &memtable{tree: *m.tree.Copy(), size: m.size}
}

// empty reports whether nothing was changed.
func (m *memtable) empty() bool { return m == nil || m.tree.Len() == 0 }
