package badgerstore

import (
	"bytes"
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// leftover says what a loss left, before anything is changed.
type leftover struct {
	// whole says that nothing is missing before the end.
	whole bool
	// bodies counts the contents that records name and that are gone.
	bodies int
}

// mend makes what is left of a ledger agree with its records, before anything is built on it.
// The engine has each commit whole or not at all. So where one is missing before others, each
// record is one that there was, but what came with an earlier change of it, and didn't change
// since, may be missing: that it stands in the way, that it is found, its contents; and what the
// missing commit took away may still be there. All of that follows from the records.
//
// Nothing else is made up. What can't be read stays as it is, and is damage still.
func (s *Store) mend() error {
	return s.db.View(func(txn *badger.Txn) error {
		src := snapshot{txn}
		if err := s.checkMeta(src); err != nil {
			return err
		}
		if err := s.loadLeft(src); err != nil {
			return err
		}
		s.left.whole = isWhole(src, s.tip)
		m := mending{store: s, src: src, to: newLayer(snapshot{})}
		if err := errors.Join(m.records(), m.indexes()); err != nil {
			return err
		}
		if err := m.flush(); err != nil {
			return err
		}
		// What was put into several logs of the engine is to be durable before its marks say so.
		return syncWhatIsLeft(s.config.dataDir())
	})
}

// mending is one mend at work: it reads what was there before, and writes what should be.
type mending struct {
	store *Store
	src   snapshot
	to    *layer
	begun bool
}

// flush writes what was gathered. A mend that is cut short is done again.
func (m *mending) flush() error {
	if len(m.to.writes) == 0 {
		return nil
	}
	if !m.begun {
		m.begun = true
		if err := writeSynced(m.store.config.acceptingPath(), []byte(m.store.ID())); err != nil {
			return err
		}
	}
	if err := m.store.db.Update(m.to.apply); err != nil {
		return engineError(fmt.Errorf("mend what is left: %w", err))
	}
	m.to = newLayer(snapshot{})
	return nil
}

// each calls fn with all values of a kind. Those that are damaged are left to Verify.
func (m *mending) each(kind byte, fn func(k []byte) error) (err error) {
	m.src.each([]byte{kind}, func(k []byte) bool {
		if err = fn(bytes.Clone(k)); errors.Is(err, ledger.ErrDamaged) {
			err = nil
		}
		if err == nil && m.to.size >= fullBatch {
			err = m.flush()
		}
		return err == nil
	})
	return err
}

// records puts what is missing of that which follows from records.
func (m *mending) records() error {
	uploads, err := m.uploads()
	if err != nil {
		return err
	}
	v := &view{src: m.src}
	return errors.Join(
		m.each(kMutation, func(k []byte) error {
			r, err := v.Mutation(ledger.Key(markName(k)))
			if err != nil {
				return err
			}
			return errors.Join(m.put(mutationIndexes(r)), m.spans(r), m.bodies(r, uploads))
		}),
		m.each(kRun, func(k []byte) error {
			r, err := v.runBy(markName(k))
			if err != nil {
				return err
			}
			return m.put(storedRunIndexes(r))
		}),
		m.each(kItem, func(k []byte) error {
			i, err := v.itemBy(markName(k))
			if err != nil {
				return err
			}
			return m.put(itemIndexes(i))
		}))
}

// put puts those of the index keys that are missing.
func (m *mending) put(indexes [][]byte) error {
	for _, x := range indexes {
		switch _, err := m.src.item(x); {
		case errors.Is(err, ledger.ErrNotFound):
			m.to.set(x, seal(x, nil, 0))
		case err != nil:
			return err
		}
	}
	return nil
}

// spans puts the keys that r shares with others.
func (m *mending) spans(r *ledger.Mutation) error {
	var keys [][]byte
	for _, n := range newSpans(nil, nil, r) {
		keys = append(keys, n.key())
	}
	return m.put(keys)
}

// uploads are the marks of contents that no record named, by their digests.
func (m *mending) uploads() (marks map[[32]byte][][]byte, err error) {
	marks = map[[32]byte][][]byte{}
	return marks, m.each(kPending, func(k []byte) error {
		content, err := m.src.get(k)
		if err != nil {
			return err
		}
		var p pendingBody
		if err := decode(k, content, &p); err != nil || !p.Whole {
			return err
		}
		marks[p.Sum] = append(marks[p.Sum], k)
		return nil
	})
}

// bodies keeps the contents that r names from being swept, and says of those that are missing
// that they are lost. Of a long one that isn't known yet: its file may be there.
func (m *mending) bodies(r *ledger.Mutation, uploads map[[32]byte][][]byte) error {
	for _, b := range bodiesOf(r) {
		sum, err := bodySum(b)
		if err != nil {
			return damaged(mutationKey(r.Key), err.Error())
		}
		for _, mark := range uploads[[32]byte(sum)] {
			m.to.remove(mark)
		}
		sk := key(kBody, sum)
		switch _, err := m.src.item(sk); {
		case err == nil || m.to.find(sk) >= 0:
			continue
		case !errors.Is(err, ledger.ErrNotFound):
			return err
		}
		h := bodyHead{Size: b.Size, File: b.Size > ledger.InlineBody}
		if h.Lost = !h.File; h.Lost {
			m.store.left.bodies++
		}
		if err := m.to.putValue(sk, &h); err != nil {
			return err
		}
	}
	return nil
}

// indexes removes the index keys that follow from no record.
func (m *mending) indexes() error {
	for _, kind := range []byte{
		xUnresolved, xDue, xState, xByRun, xByItem, xCreated, xEscalated, xOwed,
		xRunActive, xRunEnded, xRunOpened, xRunOfItem, xItemOpened, xItemTaken, xItemID, xItemWaits,
	} {
		if err := m.each(kind, func(k []byte) error {
			after, err := m.follow(k)
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
			if !containsKey(after, k) {
				m.to.remove(k)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// follow are the index keys that follow from the record to which one leads.
func (m *mending) follow(x []byte) ([][]byte, error) {
	v, name := &view{src: m.src}, markName(x)
	switch x[0] {
	case xRunActive, xRunEnded, xRunOpened, xRunOfItem:
		r, err := v.runBy(name)
		if err != nil {
			return nil, err
		}
		return storedRunIndexes(r), nil
	case xItemOpened, xItemTaken, xItemID, xItemWaits:
		i, err := v.itemBy(name)
		if err != nil {
			return nil, err
		}
		return itemIndexes(i), nil
	}
	r, err := v.Mutation(name)
	if err != nil {
		return nil, err
	}
	return mutationIndexes(r), nil
}
