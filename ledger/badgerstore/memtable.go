package badgerstore

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// mostBelow is how many records a memtable remembers from below.
const mostBelow = 4096

// allCommits sees each change, also what isn't durable yet.
const allCommits = math.MaxUint64

// memtable holds what Badger doesn't have yet: of each key its changes, the last one first. The committer
// writes into it while others read what is durable. A nil one holds nothing.
type memtable struct {
	mu sync.RWMutex
	// kinds are the keys by what they hold, their first byte.
	kinds [256]map[string]*version
	// size is what all changes take, in bytes.
	size int
	// below are records of Badger and of the memtable before, decoded, nil where there is none. They count
	// only under keys that this one doesn't change. It is the committer's own.
	below map[string]any
}

// version is a change of a key. It is never changed itself.
type version struct {
	// sealed is the value as it is stored, nil if the key was removed.
	sealed []byte
	// commit is the number of the commit that holds the change.
	commit uint64
	// record is the record that sealed holds, decoded; nil for none.
	record any
	// before is the change before this one, nil for none.
	before *version
}

// at is v, or the last change before it that commit n sees.
func (v *version) at(n uint64) *version {
	for v != nil && v.commit > n {
		v = v.before
	}
	return v
}

// get returns the last change of a key that commit n sees, nil if there is none.
func (m *memtable) get(k []byte, n uint64) *version {
	if m == nil {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.kinds[k[0]][string(k)].at(n)
}

// set adds a change of a key.
func (m *memtable) set(k []byte, sealed []byte, commit uint64, record any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := m.kinds[k[0]]
	if kind == nil {
		kind = map[string]*version{}
		m.kinds[k[0]] = kind
	}
	kind[string(k)] = &version{sealed, commit, record, kind[string(k)]}
	m.size += entrySize(k, sealed)
}

// unset takes the last change of a key back.
func (m *memtable) unset(k []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind := m.kinds[k[0]]
	v := kind[string(k)]
	if m.size -= entrySize(k, v.sealed); v.before != nil {
		kind[string(k)] = v.before
	} else {
		delete(kind, string(k))
	}
}

// remember keeps a record that was read below.
func (m *memtable) remember(k []byte, record any) {
	if m.below == nil || len(m.below) == mostBelow {
		m.below = map[string]any{}
	}
	m.below[string(k)] = record
}

// changed is the last change of a key.
type changed struct {
	key string
	*version
}

// sorted lists the changes of the keys with a prefix that commit n sees, by their keys.
func (m *memtable) sorted(prefix []byte, n uint64) (list []changed) {
	if m == nil {
		return nil
	}
	kinds := m.kinds[:]
	if len(prefix) > 0 {
		kinds = kinds[prefix[0]:][:1]
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, kind := range kinds {
		from := len(list)
		for k, v := range kind {
			if v = v.at(n); v != nil && strings.HasPrefix(k, string(prefix)) {
				list = append(list, changed{k, v})
			}
		}
		slices.SortFunc(list[from:], func(a, b changed) int { return strings.Compare(a.key, b.key) })
	}
	return list
}

// empty reports whether nothing was changed.
func (m *memtable) empty() bool { return m == nil || m.size == 0 }

// memtableLeg walks the changes of a memtable.
type memtableLeg struct {
	list    []changed
	reverse bool
	at      int
}

func (l *memtableLeg) seek(k []byte) {
	at, found := slices.BinarySearchFunc(l.list, k, func(c changed, k []byte) int { return strings.Compare(c.key, string(k)) })
	if l.at = at; l.reverse && !found {
		l.at--
	}
}

func (l *memtableLeg) key() []byte {
	if l.at < 0 || l.at >= len(l.list) {
		return nil
	}
	return []byte(l.list[l.at].key)
}

func (l *memtableLeg) sealed() ([]byte, error) { return l.list[l.at].sealed, nil }

func (l *memtableLeg) next() {
	if l.reverse {
		l.at--
	} else {
		l.at++
	}
}
