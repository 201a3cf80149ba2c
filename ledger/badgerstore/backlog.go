package badgerstore

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"

	"keep-proxy/ledger"
)

// backlog holds what the commits have changed that are durable in the journal, and that the
// engine doesn't have yet. The engine gets many of them at once: of a record that was claimed
// and finished meanwhile it never sees but the last version.
//
// There are two parcels at most. One is filling; the other one, with all that came before it, is
// being given to the engine. Whoever reads looks here first, then into a snapshot of the engine:
// what has left the backlog lies there.
type backlog struct {
	seed maphash.Seed

	mu              sync.RWMutex
	filling, giving *parcel
}

// parcel is what some commits have changed, one after another: of each key the last change.
type parcel struct {
	changes
	// size is what the engine will get, in bytes.
	size int
	// end is where the last of the commits ends.
	end journalEnd
}

// journalEnd is a commit, and how much had been written to the journal with it.
type journalEnd struct {
	tip     tip
	written int64
}

func newBacklog() *backlog { return &backlog{seed: maphash.MakeSeed(), filling: newParcel()} }

func newParcel() *parcel { return &parcel{changes: *newChanges()} }

// takes reports whether the commit fits into what the engine gets next.
func (l *backlog) takes(size int) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.filling.size == 0 || l.filling.size+size <= maxBatch
}

// add takes in what a commit has changed, which becomes visible by that.
func (l *backlog) add(changes []delta, end journalEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.filling
	for i := range changes {
		p.add(changes[i].hash, changes[i].entry)
	}
	p.end = end
}

// add makes e the change of its key. What was there before stays as it is: a batch may have read it.
func (p *parcel) add(hash uint64, e entry) {
	if known := p.find(hash, e.key); known != nil {
		p.size += len(e.sealed) - len(known.sealed)
		known.sealed = e.sealed
		return
	}
	p.size += entrySize(e.key, e.sealed)
	p.append(hash, e)
}

// parcels lists those that a batch looks into from now on, the newer one first. The newest snapshot
// of the engine, if it is taken later, has what they lack of the commits before.
func (l *backlog) parcels() (list []*parcel) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.filling.list) > 0 {
		list = append(list, l.filling)
	}
	if l.giving != nil {
		list = append(list, l.giving)
	}
	return list
}

// valueIn returns what lies under k if one of the parcels has changed it, which may be nil: it
// was removed.
func (l *backlog) valueIn(parcels []*parcel, hash uint64, k []byte) (sealed []byte, ok bool) {
	if len(parcels) == 0 {
		return nil, false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, p := range parcels {
		if e := p.find(hash, k); e != nil {
			return e.sealed, true
		}
	}
	return nil, false
}

// overlayIn tells fn of each change of the parcels below prefix, those of the older one first.
func (l *backlog) overlayIn(parcels []*parcel, prefix []byte, fn func(entry)) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, p := range slices.Backward(parcels) {
		p.below(prefix, fn)
	}
}

// value returns a copy of what lies under k if the engine may not have its last change, nil if
// it was removed. False: who takes a snapshot from now on finds it there.
func (l *backlog) value(k []byte) (sealed []byte, ok bool) {
	hash := maphash.Bytes(l.seed, k)
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, p := range [...]*parcel{l.filling, l.giving} {
		if p == nil || len(p.list) == 0 {
			continue
		}
		if e := p.find(hash, k); e != nil {
			return bytes.Clone(e.sealed), true
		}
	}
	return nil, false
}

// next returns the parcel that the engine is to be given, nil if there is nothing. The one before
// must be gone.
func (l *backlog) next() *parcel {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.filling.list) == 0 {
		return nil
	}
	l.giving, l.filling = l.filling, newParcel()
	return l.giving
}

// leave takes out the parcel that was given: the newest snapshot has all of it.
func (l *backlog) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.giving = nil
}

// lately reads what is durable now, of the backlog or of the newest snapshot. Each read is of a
// moment of its own, and waits for nothing but keys.
type lately struct{ s *Store }

// read implements source.
func (l lately) read(k []byte, fn func(content []byte) error) error {
	sealed, ok := l.s.backlog.value(k)
	if !ok {
		src := l.s.newest.take()
		defer l.s.newest.give(src)
		return src.read(k, fn)
	}
	if sealed == nil {
		return ledger.ErrNotFound
	}
	content, flags, err := unseal(k, sealed)
	if err != nil {
		return err
	}
	if flags&flagSplit != 0 {
		// Its parts are to be of the same moment.
		return l.s.snapshot(func(src snapshot) error { return src.read(k, fn) })
	}
	return fn(content)
}

// get implements source.
func (l lately) get(k []byte) (out []byte, err error) {
	err = l.read(k, func(content []byte) error {
		out = bytes.Clone(content)
		return nil
	})
	return out, err
}

// keys implements source.
func (l lately) keys(prefix []byte) (out [][]byte, err error) {
	err = l.s.snapshot(func(src snapshot) (err error) {
		out, err = src.keys(prefix)
		return err
	})
	return out, err
}
