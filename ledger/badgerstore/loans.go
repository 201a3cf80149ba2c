package badgerstore

import (
	"sync"

	"keep-proxy/ledger"
)

// loans are records that a reader has read and decoded, for the command that will move
// them on: it needn't do so again. Only what the runner has is lent, since a try reads
// its record and then gives what it saw to the ledger.
//
// A command finds here what it would read, or nothing. How many commits a reader's snapshot
// sees is known. What a later one changed isn't taken from it, nor kept when it is
// committed. That leaves the commit in the making, of which the command knows by itself;
// see [tx.borrow].
type loans struct {
	mu sync.Mutex
	// commits counts those that were written, and moved says with which of them a record
	// changed last, since the one numbered known.
	commits, known uint64
	moved          map[ledger.Key]uint64
	lent           map[ledger.Key]kept[entryOfMutation]
}

// manyMoved is how many records moved says it of before it begins anew.
const manyMoved = 2048

// written returns how many commits who reads from now on sees, at least.
func (l *loans) written() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.commits
}

// lend takes a record whose reader saw so many commits or more. Nobody may change it any more.
func (l *loans) lend(e entryOfMutation, size int, saw uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size > shelfRecord || saw < l.known || l.moved[e.Key] > saw {
		return
	}
	if l.lent == nil || len(l.lent) >= shelfLimit {
		l.lent = map[ledger.Key]kept[entryOfMutation]{}
	}
	l.lent[e.Key] = kept[entryOfMutation]{record: e, size: size}
}

// take returns what is lent under k, once.
func (l *loans) take(k ledger.Key) (kept[entryOfMutation], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.lent[k]
	delete(l.lent, k)
	return r, ok
}

// commit notes that a commit was written, which changed these records.
func (l *loans) commit(moved []ledger.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moved == nil || len(l.moved) >= manyMoved {
		l.moved, l.known = map[ledger.Key]uint64{}, l.commits
	}
	l.commits++
	for _, k := range moved {
		l.moved[k] = l.commits
		delete(l.lent, k)
	}
}

// empty lets go of all records.
func (l *loans) empty() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved, l.lent, l.known = nil, nil, l.commits
}

// borrow puts what is lent under k on the shelf of records, if nothing is known there. The
// command must not have put k itself.
func (t *tx) borrow(k ledger.Key) {
	r, ok := t.store.loans.take(k)
	if !ok {
		return
	}
	// A change of this batch or of the one before it may be newer than what was lent, also if
	// it has become durable since that was taken.
	if t.batch.changed.batched(mutationKey(k)) {
		return
	}
	if _, known := t.store.mutations.get(k); known {
		return
	}
	r.indexes = mutationIndexes(r.record.Mutation)
	t.store.mutations.keep(k, r)
}
