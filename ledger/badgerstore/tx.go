package badgerstore

import (
	"bytes"
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
	// encoded are the events as they will be stored.
	encoded [][]byte
	// runs are those that it has put.
	runs []*ledger.Run
	// puts are the records that this command has put, to be stored at its end.
	puts []put
	// stored is the one of them that is being stored.
	stored storedMutation
	// bodies are long bodies that a record of this command names.
	bodies []ledger.Body
	// uploaded are bodies that became whole; referred are those that a record of
	// this command names from now on.
	uploaded []upload
	referred []string
	// dropped are called if the command succeeds, so that no shelf keeps what it removed.
	dropped []func()
	// unowned is the key of the upstream object of which the command has found no owner.
	unowned []byte
	// failed is the first error that makes the whole command worthless, whatever
	// the command makes of it.
	failed error
}

var _ ledger.Tx = (*tx)(nil)

// newTx makes the transaction of one command. There is one at a time, so that it, its
// layer and its lists are used again.
func newTx(s *Store, b *batch) *tx {
	s.layer.reset(b.base)
	t := &s.tx
	clear(t.events)
	clear(t.encoded)
	clear(t.puts)
	*t = tx{
		view: view{src: s.layer, process: s.process}, layer: s.layer, store: s, batch: b,
		events: t.events[:0], encoded: t.encoded[:0], puts: t.puts[:0],
	}
	return t
}

// fail makes the command refused.
func (t *tx) fail(err error) error {
	if err != nil && t.failed == nil {
		t.failed = err
	}
	return err
}

// changed reports whether the command changes anything.
func (t *tx) changed() bool { return len(t.layer.writes)+len(t.uploaded)+len(t.events) > 0 }

// load returns the record that its shelf has under k, or reads it from the key that
// place makes. It must not be changed.
func load[K comparable, R any](
	t *tx, s *shelf[K, R], k K, place func(K) []byte, read func(sk, content []byte) (R, error), indexes func(R) [][]byte,
) (kept[R], error) {
	if r, ok := s.get(k); ok {
		t.layer.pending = t.layer.pending || r.batch > t.store.horizon.durable.Load()
		return r, nil
	}
	if s.missed(k) {
		return kept[R]{}, ledger.ErrNotFound
	}
	sk := place(k)
	r := kept[R]{batch: t.batch.holds(sk)}
	err := t.layer.read(sk, func(content []byte) (err error) {
		r.record, err = read(sk, content)
		r.size = len(content)
		return err
	})
	if err != nil {
		s.miss(k, err)
		return kept[R]{}, err
	}
	r.indexes = indexes(r.record)
	s.keep(k, r)
	return r, nil
}

// put is a mutation's record that a command has put.
type put struct {
	entryOfMutation
	indexes [][]byte
}

// put returns what the command has put under k, nil if nothing; it is valid until the next put.
func (t *tx) put(k ledger.Key) *put {
	for i := range t.puts {
		if t.puts[i].Key == k {
			return &t.puts[i]
		}
	}
	return nil
}

func (t *tx) mutation(k ledger.Key) (kept[entryOfMutation], error) {
	if p := t.put(k); p != nil {
		return kept[entryOfMutation]{record: p.entryOfMutation, indexes: p.indexes}, nil
	}
	return load(t, &t.store.mutations, k, mutationKey, decodeMutation,
		func(e entryOfMutation) [][]byte { return mutationIndexes(e.Mutation) })
}

func (t *tx) run(id string) (kept[*ledger.Run], error) {
	return load(t, &t.store.runs, id, runKey, decodeRun, storedRunIndexes)
}

// itemName is how an item is known.
type itemName struct{ workflow, item string }

func (n itemName) key() []byte { return named(kItem, n.workflow, n.item) }

func (t *tx) item(n itemName) (kept[*ledger.Item], error) {
	return load(t, &t.store.items, n, itemName.key, decodeItem, itemIndexes)
}

// Mutation implements ledger.View. A command changes nothing in place of what its draft shares
// with the record that is kept.
func (t *tx) Mutation(k ledger.Key) (*ledger.Mutation, error) {
	r, err := t.mutation(k)
	return r.record.Draft(), err
}

// Run implements ledger.View.
func (t *tx) Run(id string) (*ledger.Run, error) {
	r, err := t.run(id)
	return r.record.Draft(), err
}

// Item implements ledger.View.
func (t *tx) Item(workflow, item string) (*ledger.Item, error) {
	r, err := t.item(itemName{workflow, item})
	return r.record.Draft(), err
}

// Blockers answers from memory.
func (t *tx) Blockers(workflow string) ([]ledger.Blocker, error) {
	t.layer.pending = t.layer.pending || t.store.blockedIn > t.store.horizon.durable.Load()
	return t.store.blockers.With(workflow, t.mutations()...), nil
}

// orNone turns a record that isn't there into the zero one.
func orNone[R any](r kept[R], err error) (kept[R], error) {
	if errors.Is(err, ledger.ErrNotFound) {
		return kept[R]{}, nil
	}
	return r, err
}

// PutMutation implements ledger.Tx.
func (t *tx) PutMutation(m *ledger.Mutation) error {
	if !m.State.Valid() {
		return t.fail(fmt.Errorf("mutation %s: invalid state %q", m.Key.ID(), m.State))
	}
	old, err := orNone(t.mutation(m.Key))
	if err != nil {
		return t.fail(err)
	}
	var version int64
	if old.record.Mutation != nil {
		version = old.record.Version
	}
	if m.Version != version+1 {
		return fmt.Errorf("mutation %s: %w: version %d is stored", m.Key.ID(), ledger.ErrVersion, version)
	}
	// What is owed comes with an outcome, which is recorded still.
	if m.Version == 1 && m.Undo == nil {
		if err := t.store.space.check(); err != nil {
			return t.fail(err)
		}
	}
	after := entryOfMutation{Mutation: m.CloneAfter(old.record.Mutation), history: old.record.history}
	indexes := mutationIndexesAfter(old, m)
	if err := t.layer.reindex(old.indexes, indexes); err != nil {
		return t.fail(err)
	}
	if err := t.span(old.record.Mutation, m); err != nil {
		return t.fail(err)
	}
	if p := t.put(m.Key); p != nil {
		p.entryOfMutation, p.indexes = after, indexes
	} else {
		t.puts = append(t.puts, put{after, indexes})
	}
	t.refer(m)
	return nil
}

// mutations are the records that the command has put.
func (t *tx) mutations() []*ledger.Mutation {
	list := make([]*ledger.Mutation, len(t.puts))
	for i := range t.puts {
		list[i] = t.puts[i].Mutation
	}
	return list
}

// complete numbers the command's events, then stores its records, which list them.
func (t *tx) complete(next *tip) error {
	for i := range t.events {
		e := &t.events[i]
		event, err := t.layer.appendEvent(next, e, t.list(e.Mutation, next.Seq+1))
		if err != nil {
			return err
		}
		t.encoded = append(t.encoded, event)
	}
	for i := range t.puts {
		p := &t.puts[i]
		t.stored = storedMutation{Record: p.Mutation, History: p.history}
		content, err := t.layer.putRecord(mutationKey(p.Key), &t.stored)
		if err != nil {
			return err
		}
		t.store.mutations.put(p.Key, kept[entryOfMutation]{
			record: p.entryOfMutation, indexes: p.indexes, size: len(content), batch: t.batch.number,
		})
	}
	return nil
}

// list adds an event to the history of a record that the command has put; false if
// it has put none of this id, or its history is full.
func (t *tx) list(mutation string, seq uint64) (listed bool) {
	for i := range t.puts {
		if p := &t.puts[i]; p.ID == mutation {
			p.history, listed = p.history.with(seq)
			return listed
		}
	}
	return false
}

// refer takes the bodies of a record out of those that are swept.
func (t *tx) refer(m *ledger.Mutation) {
	t.referBody(m.Request.Body)
	if m.Result != nil {
		t.referBody(m.Result.Body)
	}
}

func (t *tx) referBody(b ledger.Body) {
	if b.SHA256 == "" || b.Dropped {
		return
	}
	if t.store.named != nil {
		t.store.named[b.SHA256] = struct{}{}
	}
	if b.Size > ledger.InlineBody {
		t.bodies = append(t.bodies, b)
	}
	if upload, ok := t.store.pending.upload(b.SHA256); ok {
		t.layer.remove(numbered(kPending, upload))
		t.referred = append(t.referred, b.SHA256)
	}
}

// PutRun implements ledger.Tx.
func (t *tx) PutRun(r *ledger.Run) error {
	if !knownRunState(r.State) {
		return t.fail(fmt.Errorf("run %s: invalid state %q", r.ID, r.State))
	}
	old, err := orNone(t.run(r.ID))
	if err != nil {
		return t.fail(err)
	}
	var version int64
	if old.record != nil {
		version = old.record.Version
	}
	if r.Version != version+1 {
		return fmt.Errorf("run %s: %w: version %d is stored", r.ID, ledger.ErrVersion, version)
	}
	if err := t.layer.putValue(runKey(r.ID), r); err != nil {
		return t.fail(err)
	}
	if err := t.putToken(old.record, r); err != nil {
		return t.fail(err)
	}
	after := kept[*ledger.Run]{record: r.Clone(), indexes: storedRunIndexes(r), batch: t.batch.number}
	t.store.runs.put(r.ID, after)
	t.runs = append(t.runs, after.record)
	return t.fail(t.layer.reindex(old.indexes, after.indexes))
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
	name := itemName{i.Workflow, i.Item}
	old, err := orNone(t.item(name))
	if err != nil {
		return t.fail(err)
	}
	var version int64
	if old.record != nil {
		version = old.record.Version
	}
	if i.Version != version+1 {
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, version)
	}
	if err := t.layer.putValue(name.key(), i); err != nil {
		return t.fail(err)
	}
	after := kept[*ledger.Item]{record: i.Clone(), indexes: itemIndexes(i), batch: t.batch.number}
	t.store.items.put(name, after)
	return t.fail(t.layer.reindex(old.indexes, after.indexes))
}

// EvidenceOf implements ledger.View. What has no owner is remembered: it is looked up
// before it gets one.
func (t *tx) EvidenceOf(connector, account, object string) (ledger.Key, error) {
	return t.evidenceAt(named(kEvidence, connector, account, object))
}

func (t *tx) evidenceAt(sk []byte) (ledger.Key, error) {
	if bytes.Equal(t.unowned, sk) {
		return ledger.Key{}, ledger.ErrNotFound
	}
	owner, err := t.view.evidenceAt(sk)
	if errors.Is(err, ledger.ErrNotFound) {
		t.unowned = sk
	}
	return owner, err
}

// PutEvidence implements ledger.Tx.
func (t *tx) PutEvidence(connector, account, object string, k ledger.Key) error {
	sk := named(kEvidence, connector, account, object)
	owner, err := t.evidenceAt(sk)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		t.unowned = nil
		return t.fail(t.layer.putValue(sk, evidence{connector, account, object, k}))
	case err != nil:
		return t.fail(err)
	case owner != k:
		return fmt.Errorf("object %q of %s: %w: %s", object, connector, ledger.ErrEvidence, owner.ID())
	}
	return nil
}

// deliveryName is how a delivery is known.
type deliveryName struct {
	run string
	key ledger.Key
}

// Delivery implements ledger.View. What isn't there is remembered, too: a replay asks
// twice, before it is given and when it is noted.
func (t *tx) Delivery(run string, k ledger.Key) (*ledger.Delivery, error) {
	n := deliveryName{run, k}
	r, known := t.store.deliveries.get(n)
	if !known {
		d, err := t.view.Delivery(run, k)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
		r = kept[*ledger.Delivery]{batch: t.batch.holds(deliveryKey(run, k))}
		if err == nil {
			r.record = d
		}
		t.store.deliveries.keep(n, r)
	}
	t.layer.pending = t.layer.pending || r.batch > t.store.horizon.durable.Load()
	if r.record == nil {
		return nil, ledger.ErrNotFound
	}
	d := *r.record
	return &d, nil
}

// PutDelivery implements ledger.Tx.
func (t *tx) PutDelivery(run string, k ledger.Key, d ledger.Delivery) error {
	t.store.deliveries.put(deliveryName{run, k}, kept[*ledger.Delivery]{record: &d, batch: t.batch.number})
	return t.fail(t.layer.putValue(deliveryKey(run, k), &d))
}

// hasContent reports whether there is something at the key of k already, as known from the
// commands before or as found.
func hasContent[K comparable](t *tx, s *shelf[K, struct{}], k K, place func(K) []byte) (bool, error) {
	if shelved(t, s, k) {
		return true, nil
	}
	sk := place(k)
	known, err := t.layer.has(sk)
	if known {
		s.keep(k, kept[struct{}]{batch: t.batch.holds(sk)})
	}
	return known, err
}

// shelved reports whether it is known from the shelf that something is there.
func shelved[K comparable](t *tx, s *shelf[K, struct{}], k K) bool {
	r, ok := s.get(k)
	t.layer.pending = t.layer.pending || ok && r.batch > t.store.horizon.durable.Load()
	return ok
}

// keep puts content at the key of k, unless something is there. The shelf remembers what is.
func keep[K comparable](t *tx, s *shelf[K, struct{}], k K, place func(K) []byte, content []byte) error {
	known, err := hasContent(t, s, k, place)
	if err != nil || known {
		return t.fail(err)
	}
	s.put(k, kept[struct{}]{batch: t.batch.number})
	return t.fail(t.layer.put(place(k), content))
}

// PutConnector implements ledger.Tx.
func (t *tx) PutConnector(hash string, content []byte) error {
	return keep(t, &t.store.connectors, hash, connectorKey, content)
}

// PutBody implements ledger.Tx. Short content is written without looking for it.
func (t *tx) PutBody(content []byte) (ledger.Body, error) {
	if len(content) == 0 {
		return ledger.Body{}, nil
	}
	if len(content) > ledger.InlineBody {
		return ledger.Body{}, t.fail(fmt.Errorf("body of %d bytes: longer than %d, write it first", len(content), ledger.InlineBody))
	}
	sum := sum256(content)
	b := ledger.Body{SHA256: hexOf(sum), Size: int64(len(content))}
	if _, known := t.store.bodies.get(sum); known || len(content) > smallBody {
		known, err := t.hasBody(sum)
		if err != nil || known {
			return b, t.fail(err)
		}
	}
	t.store.bodies.put(sum, kept[struct{}]{batch: t.batch.number})
	return b, t.fail(t.layer.putValue(bodyKey(sum), &bodyHead{Size: b.Size, Inline: content}))
}

// hasBody reports whether the content can be had: one that was lost is written anew. What is on
// the shelf can be.
func (t *tx) hasBody(sum [32]byte) (bool, error) {
	if shelved(t, &t.store.bodies, sum) {
		return true, nil
	}
	_, known, err := bodyAt(t.layer, sum[:])
	if known {
		t.store.bodies.keep(sum, kept[struct{}]{batch: t.batch.holds(bodyKey(sum))})
	}
	return known, err
}

// Append implements ledger.Tx.
func (t *tx) Append(e ledger.Event) { t.events = append(t.events, e) }
