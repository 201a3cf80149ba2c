package badgerstore

import (
	"errors"
	"fmt"

	"keep-proxy/ledger"
)

// source is what a view reads: a snapshot, or what a command has changed over one.
type source interface {
	// get returns the content under key, which must not be changed, or ledger.ErrNotFound.
	get(key []byte) ([]byte, error)
	// keys lists the keys with this prefix in ascending order.
	keys(prefix []byte) ([][]byte, error)
}

// view answers ledger.View from a source.
type view struct {
	src     source
	process ledger.Process
}

var _ ledger.View = (*view)(nil)

// Mutation implements ledger.View.
func (v *view) Mutation(k ledger.Key) (*ledger.Mutation, error) {
	sk := mutationKey(k)
	content, err := v.src.get(sk)
	if err != nil {
		return nil, err
	}
	e, err := decodeMutation(sk, content)
	return e.Mutation, err
}

// Run implements ledger.View.
func (v *view) Run(id string) (*ledger.Run, error) { return v.runBy(digest(id)) }

func (v *view) runBy(id [32]byte) (*ledger.Run, error) {
	sk := key(kRun, id[:])
	content, err := v.src.get(sk)
	if err != nil {
		return nil, err
	}
	return decodeRun(sk, content)
}

// RunByToken implements ledger.View. A token counts only if its run has it: see counts.
func (v *view) RunByToken(sha256 string) (*ledger.Run, error) {
	id, err := v.src.get(named(kToken, sha256))
	if err != nil {
		return nil, err
	}
	run, err := v.Run(string(id))
	if err == nil && run.TokenSHA256 != sha256 {
		return nil, ledger.ErrNotFound
	}
	return run, err
}

// Item implements ledger.View.
func (v *view) Item(workflow, item string) (*ledger.Item, error) {
	return v.itemBy(digest(workflow, item))
}

func (v *view) itemBy(name [32]byte) (*ledger.Item, error) {
	sk := key(kItem, name[:])
	content, err := v.src.get(sk)
	if err != nil {
		return nil, err
	}
	return decodeItem(sk, content)
}

// Blockers implements ledger.View.
func (v *view) Blockers(workflow string) ([]ledger.Blocker, error) {
	keys, err := v.mutationKeys(named(xUnresolved, workflow))
	if err != nil {
		return nil, err
	}
	var found ledger.Blockers
	for _, k := range keys {
		m, err := v.Mutation(k)
		if err != nil {
			return nil, required(err, "unresolved mutation "+k.ID())
		}
		found.Put(m)
	}
	return found.With(workflow), nil
}

// RunMutations implements ledger.View.
func (v *view) RunMutations(run string) ([]ledger.Key, error) {
	return v.mutationKeys(named(xByRun, run))
}

// ItemMutations implements ledger.View.
func (v *view) ItemMutations(workflow, item string) ([]ledger.Key, error) {
	return v.mutationKeys(named(xByItem, workflow, item))
}

// RunDeliveries implements ledger.View.
func (v *view) RunDeliveries(run string) ([]ledger.Key, error) {
	return v.mutationKeys(named(kDelivery, run))
}

// TakenItems implements ledger.View.
func (v *view) TakenItems(run string, limit int) ([]*ledger.Item, error) {
	found, err := v.src.keys(named(xItemTaken, run))
	if err != nil {
		return nil, err
	}
	var out []*ledger.Item
	for _, k := range found[:min(limit, len(found))] {
		i, err := v.itemBy(markName(k))
		if err != nil {
			return nil, required(err, "an item that run "+run+" took")
		}
		out = append(out, i)
	}
	return out, nil
}

// mutationKeys lists the mutations that keys of a prefix end with; of an index oldest first.
func (v *view) mutationKeys(prefix []byte) ([]ledger.Key, error) {
	found, err := v.src.keys(prefix)
	if err != nil {
		return nil, err
	}
	var out []ledger.Key
	for _, k := range found {
		out = append(out, markName(k))
	}
	return out, nil
}

// evidence is the owner of an upstream object.
type evidence struct {
	Connector string     `json:"connector"`
	Account   string     `json:"account"`
	Object    string     `json:"object"`
	Key       ledger.Key `json:"key"`
}

// EvidenceOf implements ledger.View.
func (v *view) EvidenceOf(connector, account, object string) (ledger.Key, error) {
	return v.evidenceAt(named(kEvidence, connector, account, object))
}

func (v *view) evidenceAt(sk []byte) (ledger.Key, error) {
	content, err := v.src.get(sk)
	if err != nil {
		return ledger.Key{}, err
	}
	var e evidence
	if err := decode(sk, content, &e); err != nil {
		return ledger.Key{}, err
	}
	return e.Key, nil
}

func deliveryKey(run string, k ledger.Key) []byte {
	d := digest(run)
	return key(kDelivery, d[:], k[:])
}

// Delivery implements ledger.View.
func (v *view) Delivery(run string, k ledger.Key) (*ledger.Delivery, error) {
	sk := deliveryKey(run, k)
	content, err := v.src.get(sk)
	if err != nil {
		return nil, err
	}
	d := new(ledger.Delivery)
	return d, decode(sk, content, d)
}

// Connector implements ledger.View.
func (v *view) Connector(hash string) ([]byte, error) { return v.src.get(connectorKey(hash)) }

// Process implements ledger.View.
func (v *view) Process() ledger.Process { return v.process }

// required turns a missing value that something stored refers to into damage.
func required(err error, what string) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("%w: %s is missing", ledger.ErrDamaged, what)
	}
	return err
}
