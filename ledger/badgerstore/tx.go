package badgerstore

import (
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
	puts []entryOfMutation
	// bodies are long bodies that a record of this command names.
	bodies []ledger.Body
	// uploaded are bodies that became whole; referred are those that a record of
	// this command names from now on.
	uploaded, referred []string
	// failed is the first error that makes the whole command worthless, whatever
	// the command makes of it.
	failed error
}

var _ ledger.Tx = (*tx)(nil)

// newTx makes the transaction of one command. There is one at a time, so it and its layer are used again.
func newTx(s *Store, b *batch) *tx {
	s.tx = tx{layer: s.layerFor(b), store: s, batch: b}
	s.tx.view = view{src: s.tx.layer, process: s.process}
	return &s.tx
}

// layerFor empties the layer for what comes next in b.
func (s *Store) layerFor(b *batch) *layer {
	l := &s.layer
	*l = layer{base: b.base.snapshot, commit: b.number, newest: b.newest(), most: s.mostCommand, buffer: l.buffer}
	return l
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

// load returns the record under a key, which must not be changed. It is in the memtable, or remembered from below,
// or decoded anew.
func load[R any](t *tx, sk []byte, read func(sk, content []byte) (R, error)) (r R, err error) {
	if v := t.layer.saw(sk); v != nil {
		if r, ok := v.record.(R); ok {
			return r, nil
		}
	}
	young := t.layer.base.young
	below := young.get(sk, allCommits) == nil
	if known, ok := young.below[string(sk)]; ok && below {
		if r, ok := known.(R); ok {
			return r, nil
		}
		return r, ledger.ErrNotFound
	}
	content, err := t.layer.get(sk)
	if err == nil {
		r, err = read(sk, content)
	}
	switch {
	case !below:
	case err == nil:
		young.remember(sk, r)
	case errors.Is(err, ledger.ErrNotFound):
		young.remember(sk, nil)
	}
	return r, err
}

// put returns what the command has put under k, nil if nothing; it is valid until the next put.
func (t *tx) put(k ledger.Key) *entryOfMutation {
	for i := range t.puts {
		if t.puts[i].Key == k {
			return &t.puts[i]
		}
	}
	return nil
}

func (t *tx) mutation(k ledger.Key) (entryOfMutation, error) {
	if p := t.put(k); p != nil {
		return *p, nil
	}
	return load(t, mutationKey(k), decodeMutation)
}

func (t *tx) run(id string) (*ledger.Run, error) { return load(t, runKey(id), decodeRun) }

// itemName is how an item is known.
type itemName struct{ workflow, item string }

func (n itemName) key() []byte { return named(kItem, n.workflow, n.item) }

func (t *tx) item(n itemName) (*ledger.Item, error) { return load(t, n.key(), decodeItem) }

// Mutation implements ledger.View. What the draft shares with the kept record a command never changes in place.
func (t *tx) Mutation(k ledger.Key) (*ledger.Mutation, error) {
	r, err := t.mutation(k)
	return r.Draft(), err
}

// Run implements ledger.View.
func (t *tx) Run(id string) (*ledger.Run, error) {
	r, err := t.run(id)
	return r.Draft(), err
}

// Item implements ledger.View.
func (t *tx) Item(workflow, item string) (*ledger.Item, error) {
	r, err := t.item(itemName{workflow, item})
	return r.Draft(), err
}

// Blockers answers from memory.
func (t *tx) Blockers(workflow string) ([]ledger.Blocker, error) {
	t.layer.read = max(t.layer.read, t.store.blockedIn)
	return t.store.blockers.With(workflow, t.mutations()...), nil
}

// orNone turns a record that isn't there into the zero one.
func orNone[R any](r R, err error) (R, error) {
	if errors.Is(err, ledger.ErrNotFound) {
		var none R
		return none, nil
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
	var before [][]byte
	if old.Mutation != nil {
		version, before = old.Version, mutationIndexes(old.Mutation)
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
	after := entryOfMutation{Mutation: m.CloneAfter(old.Mutation), history: old.history}
	if err := t.layer.reindex(before, mutationIndexes(m)); err != nil {
		return t.fail(err)
	}
	t.span(old.Mutation, m)
	if p := t.put(m.Key); p != nil {
		*p = after
	} else {
		t.puts = append(t.puts, after)
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

// evaluate runs fn and completes its changes. A panic drops them: the committer
// must outlive a faulty command.
func (t *tx) evaluate(fn func(*tx) error, next *tip) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("command panicked: %v", p)
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	for _, b := range t.bodies {
		if err := t.requireBody(b); err != nil {
			return err
		}
	}
	return t.complete(next)
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
	for _, p := range t.puts {
		if err := t.layer.putRecord(mutationKey(p.Key), &storedMutation{Record: p.Mutation, History: p.history}, p); err != nil {
			return err
		}
	}
	return nil
}

// list adds an event to the history of a record that the command has put. False: no record, or a full history.
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
	if t.store.pending.upload(b.SHA256) {
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
	var before [][]byte
	if old != nil {
		version, before = old.Version, storedRunIndexes(old)
	}
	if r.Version != version+1 {
		return fmt.Errorf("run %s: %w: version %d is stored", r.ID, ledger.ErrVersion, version)
	}
	after := r.Clone()
	if err := t.layer.putRecord(runKey(r.ID), r, after); err != nil {
		return t.fail(err)
	}
	if err := t.putToken(old, r); err != nil {
		return t.fail(err)
	}
	t.runs = append(t.runs, after)
	return t.fail(t.layer.reindex(before, storedRunIndexes(r)))
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
	var before [][]byte
	if old != nil {
		version, before = old.Version, itemIndexes(old)
	}
	if i.Version != version+1 {
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, version)
	}
	if err := t.layer.putRecord(name.key(), i, i.Clone()); err != nil {
		return t.fail(err)
	}
	return t.fail(t.layer.reindex(before, itemIndexes(i)))
}

// PutEvidence implements ledger.Tx.
func (t *tx) PutEvidence(connector, account, object string, k ledger.Key) error {
	sk := named(kEvidence, connector, account, object)
	owner, err := t.evidenceAt(sk)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return t.fail(t.layer.putValue(sk, evidence{connector, account, object, k}))
	case err != nil:
		return t.fail(err)
	case owner != k:
		return fmt.Errorf("object %q of %s: %w: %s", object, connector, ledger.ErrEvidence, owner.ID())
	}
	return nil
}

// PutDelivery implements ledger.Tx.
func (t *tx) PutDelivery(run string, k ledger.Key, d ledger.Delivery) error {
	return t.fail(t.layer.putValue(deliveryKey(run, k), &d))
}

// PutConnector implements ledger.Tx.
func (t *tx) PutConnector(hash string, content []byte) error {
	sk := connectorKey(hash)
	_, err := load(t, sk, func(_, content []byte) (string, error) { return string(content), nil })
	if !errors.Is(err, ledger.ErrNotFound) {
		return t.fail(err)
	}
	return t.fail(t.layer.put(sk, content))
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
	sk := key(kBody, sum[:])
	if len(content) > smallBody || t.layer.saw(sk) != nil {
		_, known, err := bodyAt(t.layer, sum[:])
		if err != nil || known {
			return b, t.fail(err)
		}
	}
	return b, t.fail(t.layer.putValue(sk, &bodyHead{Size: b.Size, Inline: content}))
}

// Append implements ledger.Tx.
func (t *tx) Append(e ledger.Event) { t.events = append(t.events, e) }
