package badgerstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/internal/fault"
)

// foldBytes is the size of a memtable from which on it is folded into Badger, in bytes.
const foldBytes = 8 << 20

var pointAfterFold = fault.New("badgerstore.after_fold")

// foldRecord says that Badger has a part of the commits from First to Last: each batch holds its own.
// It is never removed, so one that is missing shows that Badger lost a batch.
type foldRecord struct {
	First uint64 `cbor:"1,keyasint"`
	// Tip is the end of the ledger after the last of them.
	Tip tip `cbor:"2,keyasint"`
	// Part counts from 0, and Parts is set in the last one.
	Part  uint32 `cbor:"3,keyasint"`
	Parts uint32 `cbor:"4,keyasint,omitempty"`
}

func foldKey(last uint64, part uint32) []byte {
	return binary.BigEndian.AppendUint32(numbered(kFold, last), part)
}

// folding is what a fold takes to Badger.
type folding struct {
	table *memtable
	tip   tip
}

// freeze lets the next fold begin with batch b, if it is due. It waits for the fold under way only where the log is
// nearly full. That is how claims wait for room in it.
func (s *Store) freeze(b *batch) error {
	if s.old != nil && s.logUsed.Load() >= s.logSize/4*3 {
		if err := s.awaitRoom(s.frozen); err != nil {
			return err
		}
		s.old = nil
	}
	if s.old == nil && (s.head.size >= foldBytes || s.logUsed.Load() >= s.logSize/2) {
		s.turnOver()
		b.old = s.old
	}
	b.young = s.head
	return nil
}

// awaitRoom waits until Badger has commit n.
func (s *Store) awaitRoom(n uint64) error {
	begun := s.config.Now().Mono
	defer func() { s.logFull.Add(int64(s.config.Now().Mono - begun)) }()
	return s.state.awaitFold(n, s.Healthy)
}

// turnOver makes the memtable that was written into the one to be folded.
func (s *Store) turnOver() { s.old, s.head, s.frozen = s.head, new(memtable), s.tip.Commit }

// rest folds what there is when no command comes. False: it isn't the moment yet.
func (s *Store) rest() bool {
	if s.Healthy() != nil || s.head.empty() {
		return true
	}
	r, ok := s.state.take()
	if !ok {
		return true
	}
	folded := r.folded
	s.state.give(r)
	if s.state.durable.Load() < s.tip.Commit || folded < s.frozen {
		return false
	}
	s.turnOver()
	s.state.publish(s.tip, s.head, s.old)
	s.folds <- folding{s.old, s.tip}
	return true
}

// foldLoop gives Badger one frozen memtable after another.
func (s *Store) foldLoop() {
	defer close(s.folded)
	for f := range s.folds {
		if err := s.foldWatch.over(&aWrite, func() error { return s.fold(f) }); err != nil {
			s.poison(err)
		}
	}
}

// fold gives Badger a memtable, in batches of a bounded size that each are durable once committed.
func (s *Store) fold(f folding) error {
	if err := s.Healthy(); err != nil {
		return err
	}
	w := folder{db: s.db, most: maxBatch(s.config.memtable), first: s.foldedTip.Commit + 1, tip: f.tip}
	if err := w.all(f.table); err != nil {
		return fmt.Errorf("fold: %w", err)
	}
	pointAfterFold.Pass()
	s.foldedTip = f.tip
	s.state.fold(f.tip.Commit, s.db.NewTransaction(false))
	return nil
}

// folder writes batches, each with a fold record.
type folder struct {
	db *badger.DB
	// most is what a batch may hold, in bytes.
	most  int
	first uint64
	tip   tip
	part  uint32
	batch []entry
	size  int
}

// all writes the changes of a memtable.
func (w *folder) all(m *memtable) error {
	for _, c := range m.sorted(nil, allCommits) {
		if err := w.add(entry{[]byte(c.key), c.sealed}); err != nil {
			return err
		}
	}
	return w.write(w.part + 1) // It says that it was the last part.
}

func (w *folder) add(e entry) error {
	if w.size += entrySize(e.key, e.sealed); w.size > w.most {
		if err := w.write(0); err != nil {
			return err
		}
		w.size = entrySize(e.key, e.sealed)
	}
	w.batch = append(w.batch, e)
	return nil
}

func (w *folder) write(parts uint32) error {
	l := newWrites(nil)
	if w.first <= w.tip.Commit { // Else it gives Badger once more what it had before.
		if err := l.putValue(foldKey(w.tip.Commit, w.part), foldRecord{w.first, w.tip, w.part, parts}); err != nil {
			return err
		}
	}
	txn := w.db.NewTransaction(true)
	defer txn.Discard()
	if err := applyAll(txn, append(w.batch, l.writes...)); err != nil {
		return err
	}
	if err := fault.Begin(fault.OpFold, "fold").End(txn.Commit()); err != nil {
		return err
	}
	w.part++
	w.batch, w.size = nil, 0
	return nil
}

// readFolds holds the fold records against each other. Badger has all commits up to folded, without a hole. The
// newest fold that has its last part ends with newest. A fold without that was cut short, and was done again.
func readFolds(src snapshot, base tip) (folded, newest tip, err error) {
	folded, newest = base, base
	var at foldRecord // what is read of a fold in parts
	src.each([]byte{kFold}, func(k []byte) bool {
		var r foldRecord
		var content []byte
		if content, err = src.get(k); err == nil {
			err = decode(k, content, &r)
		}
		if err == nil && !bytes.Equal(k, foldKey(r.Tip.Commit, r.Part)) {
			err = damaged(k, "it is the record of another fold")
		}
		if err != nil {
			return false
		}
		whole := r.Part == 0 || r.Tip == at.Tip && r.First == at.First && r.Part == at.Part+1
		if at = r; !whole {
			at = foldRecord{Part: math.MaxUint32 - 1} // No part follows on it.
		}
		if r.Parts != r.Part+1 || r.Tip.Commit <= folded.Commit {
			return true
		}
		newest = r.Tip
		if whole && r.First <= folded.Commit+1 {
			folded = r.Tip
		}
		return true
	})
	return folded, newest, err
}
