package badgerstore

import (
	"errors"

	"keep-proxy/ledger"
)

// known keeps items and records as they are durable, so that the next claim which they are
// shown to needn't read them. What a commit changes is forgotten as the commit is shown.
// The gate's lock is held over it.
type known struct {
	// shows counts the commits that were shown.
	shows   uint64
	items   recent[[32]byte, *ledger.Item]
	records recent[ledger.Key, *ledger.Mutation]
}

// forget drops what a commit has changed.
func (k *known) forget(records []ledger.Key, items [][32]byte) {
	k.shows++
	for _, r := range records {
		k.records.drop(r)
	}
	for _, i := range items {
		k.items.drop(i)
	}
}

// empty lets go of all.
func (k *known) empty() {
	k.items, k.records = recent[[32]byte, *ledger.Item]{}, recent[ledger.Key, *ledger.Mutation]{}
}

// recent has two generations, as a shelf has: a full younger one becomes the older.
type recent[K comparable, R any] struct{ young, old map[K]R }

// get says, too, whether what it found should be kept anew, as it goes soon.
func (r *recent[K, R]) get(k K) (found R, ok, ages bool) {
	if found, ok = r.young[k]; ok {
		return found, true, false
	}
	found, ok = r.old[k]
	return found, ok, ok
}

func (r *recent[K, R]) keep(k K, found R) {
	delete(r.old, k)
	if _, is := r.young[k]; !is && len(r.young) >= shelfLimit {
		r.old, r.young = r.young, r.old
		clear(r.young)
	}
	if r.young == nil {
		r.young = make(map[K]R)
	}
	r.young[k] = found
}

func (r *recent[K, R]) drop(k K) {
	delete(r.old, k)
	delete(r.young, k)
}

// looked is what the gate knows at one moment, with the backlog's values and the snapshot of that
// moment where something has to be read.
type looked struct {
	ledger.Sight
	// item and record are what the backlog has of them.
	item, record []byte
	src          *shared
	shows        uint64
	// keepItem and keepRecord say what is to be kept.
	keepItem, keepRecord bool
}

// See implements ledger.Store. Run and blockers are the gate's, the rest is of the snapshot
// that is renewed in one step with it.
func (s *Store) See(scope ledger.Scope, k ledger.Key) (ledger.Sight, bool) {
	if s.readable() != nil {
		return ledger.Sight{}, false
	}
	defer s.readers.Done()
	if s.Healthy() != nil {
		return ledger.Sight{}, false
	}
	item := digest(scope.Workflow, scope.Item)
	l, ok := s.gate.look(scope, item, k, s.backlog, &s.newest)
	if !ok || l.src == nil && !l.keepItem && !l.keepRecord {
		return l.Sight, ok
	}
	return s.seeOn(l, item, k)
}

// seeOn reads what wasn't known, and keeps it.
func (s *Store) seeOn(l looked, item [32]byte, k ledger.Key) (ledger.Sight, bool) {
	if l.src != nil {
		defer s.newest.give(l.src)
		if !l.read(item, k) {
			return ledger.Sight{}, false
		}
	}
	s.gate.keep(&l, item, k)
	return l.Sight, true
}

// look returns what is known of the scope and the key. False: something stops the item,
// or the run isn't known here.
func (g *gate) look(scope ledger.Scope, item [32]byte, k ledger.Key, lately *backlog, n *newest) (l looked, ok bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.stopped[scope.Workflow].standstill().stops(scope.Item) {
		return looked{}, false
	}
	if scope.Run != "" {
		if l.Run = g.runs[scope.Run]; l.Run == nil {
			return looked{}, false
		}
	}
	var haveItem, haveRecord bool
	l.Item, haveItem, l.keepItem = g.known.items.get(item)
	l.Mutation, haveRecord, l.keepRecord = g.known.records.get(k)
	l.shows = g.known.shows
	if haveItem && haveRecord {
		return l, true
	}
	if !haveItem {
		if l.item, ok = lately.value(key(kItem, item[:])); ok && l.item == nil {
			return looked{}, false // It was removed.
		}
	}
	if !haveRecord {
		if l.record, ok = lately.value(mutationKey(k)); ok && l.record == nil {
			return looked{}, false
		}
	}
	l.src = n.take()
	return l, l.src != nil
}

// read fills in what isn't known. What is not there, or can't be read, is for a command to
// find out. The record comes first: that of a new mutation isn't there, so that its item
// needn't be read.
func (l *looked) read(item [32]byte, k ledger.Key) bool {
	if l.Mutation == nil {
		sk := mutationKey(k)
		err := l.readAt(sk, l.record, func(content []byte) error {
			e, err := decodeMutation(sk, content)
			l.Mutation, l.keepRecord = e.Mutation, len(content) <= shelfRecord
			return err
		})
		if err != nil {
			return false
		}
	}
	if l.Item == nil {
		sk := key(kItem, item[:])
		err := l.readAt(sk, l.item, func(content []byte) (err error) {
			l.Item, err = decodeItem(sk, content)
			l.keepItem = true
			return err
		})
		if err != nil {
			return false
		}
	}
	return true
}

// errSplit leaves to a command what the backlog has in parts.
var errSplit = errors.New("the value lies in parts")

// readAt reads what lies under sk: sealed, if the backlog has that.
func (l *looked) readAt(sk, sealed []byte, fn func(content []byte) error) error {
	if sealed == nil {
		return l.src.read(sk, fn)
	}
	content, flags, err := unseal(sk, sealed)
	switch {
	case err != nil:
		return err
	case flags&flagSplit != 0:
		return errSplit
	}
	return fn(content)
}

// keep keeps what was read, unless a commit was shown since, which may have changed it.
func (g *gate) keep(l *looked, item [32]byte, k ledger.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.shows != g.known.shows {
		return
	}
	if l.keepItem {
		g.known.items.keep(item, l.Item)
	}
	if l.keepRecord {
		g.known.records.keep(k, l.Mutation)
	}
}
