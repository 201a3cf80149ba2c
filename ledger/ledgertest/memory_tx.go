package ledgertest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	m, err := lookup(v.layers, func(l *layer) map[ledger.Key]*ledger.Mutation { return l.mutations }, k)
	if err == nil && m == nil {
		err = ledger.ErrNotFound // it was dropped
	}
	return m.Clone(), err
}

func (v *view) Run(id string) (*ledger.Run, error) {
	r, err := lookup(v.layers, func(l *layer) map[string]*ledger.Run { return l.runs }, id)
	return r.Clone(), err
}

func (v *view) RunByToken(sha256 string) (*ledger.Run, error) {
	for _, r := range v.layers.allRuns() {
		if sha256 != "" && r.TokenSHA256 == sha256 {
			return r.Clone(), nil
		}
	}
	return nil, ledger.ErrNotFound
}

func (v *view) Item(workflow, item string) (*ledger.Item, error) {
	i, err := lookup(v.layers, func(l *layer) map[itemName]*ledger.Item { return l.items }, itemName{workflow, item})
	if err == nil && i == nil {
		err = ledger.ErrNotFound // it was dropped
	}
	return i.Clone(), err
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
	for _, i := range v.layers.allItems() {
		if i.Shared && i.ActiveRun == run && len(out) < limit {
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
	stored, err := t.Mutation(m.Key)
	version := int64(0)
	if err == nil {
		version = stored.Version
	}
	if m.Version != version+1 {
		return fmt.Errorf("mutation %s: %w: version %d is stored", m.ID, ledger.ErrVersion, version)
	}
	if version == 0 {
		t.top.order = append(t.top.order, m.Key)
	}
	t.top.mutations[m.Key] = m.Clone()
	return nil
}

// DropMutation keeps nothing under the key, as long as nothing is put there.
func (t *tx) DropMutation(m *ledger.Mutation) error {
	stored, err := t.Mutation(m.Key)
	if err != nil {
		return err
	}
	if stored.Version != m.Version {
		return fmt.Errorf("mutation %s: %w: version %d is stored", m.ID, ledger.ErrVersion, stored.Version)
	}
	t.top.mutations[m.Key] = nil
	return nil
}

// DropItem keeps nothing under the name, as long as nothing is put there.
func (t *tx) DropItem(i *ledger.Item) error {
	stored, err := t.Item(i.Workflow, i.Item)
	if err != nil {
		return err
	}
	if stored.Version != i.Version {
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, stored.Version)
	}
	t.top.items[itemName{i.Workflow, i.Item}] = nil
	return nil
}

func (t *tx) PutRun(r *ledger.Run) error {
	version := int64(0)
	if stored, err := t.Run(r.ID); err == nil {
		version = stored.Version
	}
	if r.Version != version+1 {
		return fmt.Errorf("run %s: %w: version %d is stored", r.ID, ledger.ErrVersion, version)
	}
	t.top.runs[r.ID] = r.Clone()
	return nil
}

func (t *tx) PutItem(i *ledger.Item) error {
	version := int64(0)
	if stored, err := t.Item(i.Workflow, i.Item); err == nil {
		version = stored.Version
	}
	if i.Version != version+1 {
		return fmt.Errorf("item %q: %w: version %d is stored", i.Item, ledger.ErrVersion, version)
	}
	t.top.items[itemName{i.Workflow, i.Item}] = i.Clone()
	return nil
}

func (t *tx) PutEvidence(connector, account, name string, k ledger.Key) error {
	owner, err := t.EvidenceOf(connector, account, name)
	if err == nil && owner != k {
		return fmt.Errorf("object %q of %s: %w: %s", name, connector, ledger.ErrEvidence, owner.ID())
	}
	t.top.evidence[object{connector, account, name}] = k
	return nil
}

func (t *tx) PutDelivery(run string, k ledger.Key, d ledger.Delivery) error {
	t.top.deliveries[delivery{run, k}] = d
	return nil
}

func (t *tx) PutConnector(hash string, content []byte) error {
	t.top.connectors[hash] = append([]byte(nil), content...)
	return nil
}

func (t *tx) PutBody(content []byte) (ledger.Body, error) {
	if len(content) > ledger.InlineBody {
		return ledger.Body{}, fmt.Errorf("body of %d bytes: longer than %d, write it first", len(content), ledger.InlineBody)
	}
	b := BodyOf(content)
	if b.Size > 0 {
		t.top.bodies[b.SHA256] = append([]byte(nil), content...)
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
