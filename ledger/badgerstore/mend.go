package badgerstore

import (
	"bytes"
	"errors"
	"fmt"

	"keep-proxy/ledger"
)

// leftover says what a loss left, before anything is changed.
type leftover struct {
	// whole says that nothing is missing before the end.
	whole bool
	// bodies counts the contents that records name and that are gone.
	bodies int
}

// mend makes what is left of a ledger agree with its records, before anything is built on it. Badger has each batch
// of a fold whole or not at all. If one is missing, each record that can be read is one that there was. Its index
// entries and contents may be missing, and removed entries may still be there. All follows from the records.
//
// Nothing else is made up. What can't be read stays as it is, and is damage still.
func (s *Store) mend() error {
	if err := s.view(s.checkMeta); err != nil {
		return err
	}
	if err := s.recoverLeft(); err != nil {
		return err
	}
	return s.view(func(src snapshot) error {
		s.left.whole = isWhole(src, s.tip)
		m := mending{store: s, src: src, to: newWrites(nil)}
		return errors.Join(m.records(), m.indexes(), m.flush())
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
	m.to = newWrites(nil)
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

// records puts the index entries and the values of contents that are missing.
func (m *mending) records() error {
	var ignored Report
	put := func(k []byte) error {
		indexes, err := m.derive(k, &ignored)
		if err != nil {
			return err
		}
		return m.put(indexes)
	}
	return errors.Join(
		m.each(kMutation, func(k []byte) error {
			r, err := (&view{src: m.src}).Mutation(ledger.Key(markName(k)))
			if err != nil {
				return err
			}
			return errors.Join(put(k), m.bodies(r))
		}),
		m.each(kRun, put), m.each(kItem, put))
}

// put puts those of the index keys that are missing.
func (m *mending) put(indexes [][]byte) error {
	for _, x := range indexes {
		switch _, err := m.src.raw(x); {
		case errors.Is(err, ledger.ErrNotFound):
			m.to.set(x, seal(x, nil, 0), nil)
		case err != nil:
			return err
		}
	}
	return nil
}

// bodies gives a value to each content that r names and that has none. Short content is lost. The file of long
// content may be there.
func (m *mending) bodies(r *ledger.Mutation) error {
	for _, b := range bodiesOf(r) {
		sum, err := bodySum(b)
		if err != nil {
			return damaged(mutationKey(r.Key), err.Error())
		}
		sk := key(kBody, sum)
		switch _, err := m.src.raw(sk); {
		case err == nil || m.to.base.young.get(sk, allCommits) != nil:
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
	for _, kind := range derived {
		if err := m.each(kind, func(k []byte) error {
			is, err := m.src.counts(k)
			if err == nil && !is {
				m.to.remove(k)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
