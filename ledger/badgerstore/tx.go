package badgerstore

import (
	"encoding/hex"
	"errors"
	"fmt"

	"keep-proxy/ledger"
)

// tx is the ledger.Tx of one command.
type tx struct {
	view
	layer *layer
	store *Store
	batch *batch

	events []ledger.Event
	gate   gateDelta
	// indexes remembers the index keys of records that were read.
	indexes map[ledger.Key]stored
	// bodies are long bodies that a record of this command names.
	bodies []ledger.Body
	// uploaded are bodies that became whole; referred are those that a record of
	// this command names from now on.
	uploaded []upload
	referred []string
	// failed is the first error that makes the whole command worthless, whatever
	// the command makes of it.
	failed error
}

// stored is what is known of a record before the command.
type stored struct {
	version int64
	indexes [][]byte
}

var _ ledger.Tx = (*tx)(nil)

func newTx(s *Store, b *batch) *tx {
	l := newLayer(b.base)
	return &tx{view: view{src: l, process: s.process}, layer: l, store: s, batch: b, indexes: map[ledger.Key]stored{}}
}

// fail makes the command refused.
func (t *tx) fail(err error) error {
	if err != nil && t.failed == nil {
		t.failed = err
	}
	return err
}

// Mutation implements ledger.View.
func (t *tx) Mutation(k ledger.Key) (*ledger.Mutation, error) {
	m, err := t.view.Mutation(k)
	if err == nil {
		t.indexes[k] = stored{m.Version, mutationIndexes(m)}
	}
	return m, err
}

// Blockers answers from memory: the published gate with what is pending.
func (t *tx) Blockers(workflow string) ([]ledger.Blocker, error) {
	return t.store.gate.pending(workflow, &t.batch.gate, &t.gate), nil
}

// before returns the stored version and indexes of a record, 0 if there is none.
func (t *tx) before(k ledger.Key) (stored, error) {
	if s, ok := t.indexes[k]; ok {
		return s, nil
	}
	_, err := t.Mutation(k)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return stored{}, err
	}
	return t.indexes[k], nil
}

// PutMutation implements ledger.Tx.
func (t *tx) PutMutation(m *ledger.Mutation) error {
	if !m.State.Valid() {
		return t.fail(fmt.Errorf("mutation %s: invalid state %q", m.Key.ID(), m.State))
	}
	old, err := t.before(m.Key)
	if err != nil {
		return t.fail(err)
	}
	if m.Version != old.version+1 {
		return fmt.Errorf("mutation %s: %w: version %d is stored", m.Key.ID(), ledger.ErrVersion, old.version)
	}
	if m.Version == 1 {
		if err := t.store.space.check(); err != nil {
			return t.fail(err)
		}
	}
	if err := t.layer.putValue(mutationKey(m.Key), m); err != nil {
		return t.fail(err)
	}
	after := mutationIndexes(m)
	if err := t.layer.reindex(old.indexes, after); err != nil {
		return t.fail(err)
	}
	t.indexes[m.Key] = stored{m.Version, after}
	t.gate.setMutation(m)
	t.refer(m)
	return nil
}

// refer takes the bodies of a record out of those that are swept.
func (t *tx) refer(m *ledger.Mutation) {
	bodies := []ledger.Body{m.Request.Body}
	if m.Result != nil {
		bodies = append(bodies, m.Result.Body)
	}
	for _, b := range bodies {
		if b.SHA256 == "" || b.Dropped {
			continue
		}
		if b.Size > ledger.InlineBody {
			t.bodies = append(t.bodies, b)
		}
		if upload, ok := t.store.pending.upload(b.SHA256); ok {
			t.layer.remove(numbered(kPending, upload))
			t.referred = append(t.referred, b.SHA256)
		}
	}
}

// PutRun implements ledger.Tx.
func (t *tx) PutRun(r *ledger.Run) error {
	if !knownRunState(r.State) {
		return t.fail(fmt.Errorf("run %s: invalid state %q", r.ID, r.State))
	}
	old, err := t.Run(r.ID)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return t.fail(err)
	}
	var version int64
	var indexes [][]byte
	if err == nil {
		version, indexes = old.Version, storedRunIndexes(old)
	}
	if r.Version != version+1 {
		return fmt.Errorf("run %s: %w: version %d is stored", r.ID, ledger.ErrVersion, version)
	}
	if err := t.layer.putValue(named(kRun, r.ID), r); err != nil {
		return t.fail(err)
	}
	if err := t.putToken(old, r); err != nil {
		return t.fail(err)
	}
	t.gate.setRun(r)
	return t.fail(t.layer.reindex(indexes, storedRunIndexes(r)))
}

func (t *tx) putToken(old, r *ledger.Run) error {
	if old != nil && old.TokenSHA256 != r.TokenSHA256 && old.TokenSHA256 != "" {
		t.layer.remove(named(kToken, old.TokenSHA256))
	}
	if r.TokenSHA256 == "" || old != nil && old.TokenSHA256 == r.TokenSHA256 {
		return nil
	}
	sk := named(kToken, r.TokenSHA256)
	taken, err := t.layer.has(sk)
	if err != nil {
		return err
	}
	if taken {
		return fmt.Errorf("run %s: its token is another run's", r.ID)
	}
	return t.layer.put(sk, []byte(r.ID))
}

// PutItem implements ledger.Tx.
func (t *tx) PutItem(i *ledger.Item) error {
	if !knownItemState(i.State) {
		return t.fail(fmt.Errorf("item %q: invalid state %q", i.Item, i.State))
	}
	old, err := t.Item(i.Workflow, i.Item)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return t.fail(err)
	}
	var version int64
	var indexes [][]byte
	if err == nil {
		version, indexes = old.Version, itemIndexes(old)
	}
	if i.Version != version+1 {
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, version)
	}
	if err := t.layer.putValue(named(kItem, i.Workflow, i.Item), i); err != nil {
		return t.fail(err)
	}
	return t.fail(t.layer.reindex(indexes, itemIndexes(i)))
}

// PutEvidence implements ledger.Tx.
func (t *tx) PutEvidence(connector, account, object string, k ledger.Key) error {
	owner, err := t.EvidenceOf(connector, account, object)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return t.fail(t.layer.putValue(named(kEvidence, connector, account, object),
			evidence{connector, account, object, k}))
	case err != nil:
		return t.fail(err)
	case owner != k:
		return fmt.Errorf("object %q of %s: %w: %s", object, connector, ledger.ErrEvidence, owner.ID())
	}
	return nil
}

// PutDelivery implements ledger.Tx.
func (t *tx) PutDelivery(run string, k ledger.Key, d ledger.Delivery) error {
	return t.fail(t.layer.putValue(deliveryKey(run, k), d))
}

// PutConnector implements ledger.Tx.
func (t *tx) PutConnector(hash string, content []byte) error {
	sk := named(kConnector, hash)
	known, err := t.layer.has(sk)
	if err != nil || known {
		return t.fail(err)
	}
	return t.fail(t.layer.put(sk, content))
}

// PutBody implements ledger.Tx.
func (t *tx) PutBody(b ledger.Body, content []byte) error {
	if b.SHA256 == "" && len(content) == 0 {
		return nil
	}
	if len(content) > ledger.InlineBody {
		return t.fail(fmt.Errorf("body of %d bytes: longer than %d, write it first", len(content), ledger.InlineBody))
	}
	sum := sum256(content)
	if b.Size != int64(len(content)) || b.SHA256 != hex.EncodeToString(sum[:]) {
		return t.fail(fmt.Errorf("body %s: the content has another digest or size", b.SHA256))
	}
	sk := key(kBody, sum[:])
	known, err := t.layer.has(sk)
	if err != nil || known {
		return t.fail(err)
	}
	return t.fail(t.layer.putValue(sk, bodyHead{Size: b.Size, Inline: content}))
}

// Append implements ledger.Tx.
func (t *tx) Append(e ledger.Event) { t.events = append(t.events, e) }
