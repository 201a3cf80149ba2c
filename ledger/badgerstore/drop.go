package badgerstore

import (
	"errors"
	"fmt"

	"keep-proxy/ledger"
)

// DropMutation implements ledger.Tx. The events that the record lists get the index
// entries by which they are found without it.
func (t *tx) DropMutation(m *ledger.Mutation) error {
	old, err := t.mutation(m.Key)
	switch {
	case err != nil:
		return t.fail(err)
	case old.Version != m.Version || t.put(m.Key) != nil:
		return fmt.Errorf("mutation %s: %w: version %d is stored", m.Key.ID(), ledger.ErrVersion, old.Version)
	}
	seqs, err := old.history.seqs()
	if err != nil {
		return t.fail(damaged(mutationKey(m.Key), err.Error()))
	}
	for _, seq := range seqs {
		if err := t.layer.put(historyKey(m.ID, seq), nil); err != nil {
			return t.fail(err)
		}
	}
	if err := errors.Join(t.layer.reindex(mutationIndexes(old.Mutation), nil), t.layer.drop(mutationKey(m.Key))); err != nil {
		return t.fail(err)
	}
	return nil
}

// DropItem implements ledger.Tx.
func (t *tx) DropItem(i *ledger.Item) error {
	name := itemName{i.Workflow, i.Item}
	old, err := t.item(name)
	switch {
	case err != nil:
		return t.fail(err)
	case old.Version != i.Version:
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, old.Version)
	}
	if err := errors.Join(t.layer.reindex(itemIndexes(old), nil), t.layer.drop(itemName{i.Workflow, i.Item}.key())); err != nil {
		return t.fail(err)
	}
	return nil
}

// drop removes a value, and the parts of a long one.
func (l *layer) drop(k []byte) error {
	sealed, err := l.raw(k)
	if err != nil {
		return err
	}
	content, flags, err := unseal(k, sealed)
	if err != nil {
		return err
	}
	if flags&flagSplit != 0 {
		var s split
		if err := decode(k, content, &s); err != nil {
			return err
		}
		for n := range s.Parts {
			l.remove(partKey(k, n))
		}
	}
	l.remove(k)
	return nil
}
