package ledgertest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"keep-proxy/ledger"
)

// view answers reads from layers.
type view struct {
	layers  layers
	process ledger.Process
}

var _ ledger.View = (*view)(nil)

func (v *view) Process() ledger.Process { return v.process }

func (v *view) Mutation(k ledger.Key) (*ledger.Mutation, error) {
	m, err := v.mutation(k)
	return m.Clone(), err
}

// mutation is the stored record itself, which must not be changed.
func (v *view) mutation(k ledger.Key) (*ledger.Mutation, error) {
	m, err := lookup(v.layers, (*layer).ofMutations, k)
	if err == nil && m == nil {
		err = ledger.ErrNotFound // it was dropped
	}
	return m, err
}

func (v *view) Run(id string) (*ledger.Run, error) {
	r, err := lookup(v.layers, (*layer).ofRuns, id)
	return r.Clone(), err
}

func (v *view) RunByToken(sha256 string) (*ledger.Run, error) {
	r, err := v.runByToken(sha256)
	return r.Clone(), err
}

// runByToken is the stored run itself, which must not be changed.
func (v *view) runByToken(sha256 string) (*ledger.Run, error) {
	of := v.layers.runs(func(r *ledger.Run) bool { return sha256 != "" && r.TokenSHA256 == sha256 })
	if len(of) == 0 {
		return nil, ledger.ErrNotFound
	}
	return of[0], nil
}

func (v *view) Item(workflow, item string) (*ledger.Item, error) {
	i, err := v.item(workflow, item)
	return i.Clone(), err
}

// item is the stored one itself, which must not be changed.
func (v *view) item(workflow, item string) (*ledger.Item, error) {
	i, err := lookup(v.layers, (*layer).ofItems, itemName{workflow, item})
	if err == nil && i == nil {
		err = ledger.ErrNotFound // it was dropped
	}
	return i, err
}

func (v *view) Blockers(workflow string) ([]ledger.Blocker, error) {
	return v.layers.blockers(workflow), nil
}

func (v *view) RunMutations(run string) ([]ledger.Key, error) {
	return v.layers.keys(func(m *ledger.Mutation) bool {
		for i := range m.Dispatches {
			if m.Dispatches[i].Run == run {
				return true
			}
		}
		return m.Run == run
	}), nil
}

func (v *view) ItemMutations(workflow, item string) ([]ledger.Key, error) {
	return v.layers.keys(func(m *ledger.Mutation) bool { return m.Workflow == workflow && m.Item == item }), nil
}

func (v *view) TakenItems(run string, limit int) ([]*ledger.Item, error) {
	var out []*ledger.Item
	for _, i := range v.layers.items(func(i *ledger.Item) bool { return i.Shared && i.ActiveRun == run }) {
		if len(out) < limit {
			out = append(out, i.Clone())
		}
	}
	return out, nil
}

func (v *view) EvidenceOf(connector, account, name string) (ledger.Key, error) {
	return lookup(v.layers, func(l *layer) map[object]ledger.Key { return l.evidence }, object{connector, account, name})
}

func (v *view) Delivery(run string, k ledger.Key) (*ledger.Delivery, error) {
	d, err := lookup(v.layers, func(l *layer) map[delivery]ledger.Delivery { return l.deliveries }, delivery{run, k})
	if err != nil {
		return nil, err
	}
	return &d, nil
}

func (v *view) RunDeliveries(run string) ([]ledger.Key, error) {
	found := map[ledger.Key]bool{}
	for _, l := range v.layers {
		for d := range l.deliveries {
			if d.run == run {
				found[d.key] = true
			}
		}
	}
	return slices.Collect(maps.Keys(found)), nil
}

func (v *view) Connector(hash string) ([]byte, error) {
	return lookup(v.layers, func(l *layer) map[string][]byte { return l.connectors }, hash)
}

func (v *view) Gaps() ([]ledger.Gap, error) {
	for _, l := range slices.Backward(v.layers) {
		if l.gaps != nil {
			return l.gaps, nil
		}
	}
	return nil, nil
}

func (v *view) LastEvent() (*ledger.Event, error) {
	for _, l := range slices.Backward(v.layers) {
		if n := len(l.events); n > 0 {
			e := l.events[n-1]
			return &e, nil
		}
	}
	return nil, ledger.ErrNotFound
}

// tx adds the changes of one command, which are its top layer.
type tx struct {
	view
	top *layer
}

var _ ledger.Tx = (*tx)(nil)

func (t *tx) PutMutation(m *ledger.Mutation) error {
	if !m.State.Valid() {
		return fmt.Errorf("mutation %s: invalid state %q", m.ID, m.State)
	}
	stored, err := t.mutation(m.Key)
	version := int64(0)
	if err == nil {
		version = stored.Version
	}
	if m.Version != version+1 {
		return fmt.Errorf("mutation %s: %w: version %d is stored", m.ID, ledger.ErrVersion, version)
	}
	if _, ordered := t.top.mutations[m.Key]; version == 0 && !ordered {
		t.top.order = append(t.top.order, m.Key)
	}
	change(&t.top.mutations, m.Key, m.Clone())
	return nil
}

// DropMutation keeps nothing under the key, as long as nothing is put there.
func (t *tx) DropMutation(m *ledger.Mutation) error {
	stored, err := t.mutation(m.Key)
	if err != nil {
		return err
	}
	if stored.Version != m.Version {
		return fmt.Errorf("mutation %s: %w: version %d is stored", m.ID, ledger.ErrVersion, stored.Version)
	}
	change(&t.top.mutations, m.Key, nil)
	return nil
}

// DropItem keeps nothing under the name, as long as nothing is put there.
func (t *tx) DropItem(i *ledger.Item) error {
	stored, err := t.item(i.Workflow, i.Item)
	if err != nil {
		return err
	}
	if stored.Version != i.Version {
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, stored.Version)
	}
	change(&t.top.items, itemName{i.Workflow, i.Item}, nil)
	return nil
}

func (t *tx) PutRun(r *ledger.Run) error {
	version := int64(0)
	if stored, err := lookup(t.layers, (*layer).ofRuns, r.ID); err == nil {
		version = stored.Version
	}
	if r.Version != version+1 {
		return fmt.Errorf("run %s: %w: version %d is stored", r.ID, ledger.ErrVersion, version)
	}
	change(&t.top.runs, r.ID, r.Clone())
	return nil
}

func (t *tx) PutItem(i *ledger.Item) error {
	version := int64(0)
	if stored, err := t.item(i.Workflow, i.Item); err == nil {
		version = stored.Version
	}
	if i.Version != version+1 {
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, version)
	}
	change(&t.top.items, itemName{i.Workflow, i.Item}, i.Clone())
	return nil
}

func (t *tx) PutEvidence(connector, account, name string, k ledger.Key) error {
	owner, err := t.EvidenceOf(connector, account, name)
	if err == nil && owner != k {
		return fmt.Errorf("object %q of %s: %w: %s", name, connector, ledger.ErrEvidence, owner.ID())
	}
	change(&t.top.evidence, object{connector, account, name}, k)
	return nil
}

func (t *tx) PutDelivery(run string, k ledger.Key, d ledger.Delivery) error {
	change(&t.top.deliveries, delivery{run, k}, d)
	return nil
}

func (t *tx) PutConnector(hash string, content []byte) error {
	change(&t.top.connectors, hash, append([]byte(nil), content...))
	return nil
}

func (t *tx) PutBody(content []byte) (ledger.Body, error) {
	if len(content) > ledger.InlineBody {
		return ledger.Body{}, fmt.Errorf("body of %d bytes: longer than %d, write it first", len(content), ledger.InlineBody)
	}
	b := BodyOf(content)
	if b.Size > 0 {
		change(&t.top.bodies, b.SHA256, append([]byte(nil), content...))
	}
	return b, nil
}

func (t *tx) Append(e ledger.Event) { t.top.events = append(t.top.events, e) }

// BodyOf names content by digest and size, as stores and claims do.
func BodyOf(content []byte) ledger.Body {
	if len(content) == 0 {
		return ledger.Body{}
	}
	sum := sha256.Sum256(content)
	return ledger.Body{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

func (t *tx) PutGaps(all []ledger.Gap) error {
	t.top.gaps = all
	return nil
}
