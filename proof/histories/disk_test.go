package histories

import (
	"context"
	"errors"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// disk is the ledger's store, and the place where a crash can be put exactly.
type disk struct {
	*ledgertest.Memory
	machine *machine
}

// Update implements ledger.Store.
func (d disk) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	kind := d.machine.crashing("commit")
	err := d.commit(ctx, fn, kind)
	if kind != "" {
		d.machine.crash()
	}
	return err
}

// commit is one at a time, so that what is seen of each has its place in their order.
func (d disk) commit(ctx context.Context, fn func(ledger.Tx) error, kind string) error {
	d.machine.commits.Lock()
	defer d.machine.commits.Unlock()
	switch kind {
	case "kill before commit":
		d.FailBefore()
	case "kill after commit":
		d.FailAfter()
	}
	var c changes
	err := d.Memory.Update(ctx, func(tx ledger.Tx) error { return fn(seen{tx, &c}) })
	if err == nil || kind == "kill after commit" && errors.Is(err, ledger.ErrUnavailable) {
		d.machine.committed(c)
	}
	return err
}

// changes are what one commit puts.
type changes struct {
	mutations []*ledger.Mutation
	runs      []*ledger.Run
	items     []*ledger.Item
	// dropped are records and items that were removed.
	dropped []*ledger.Mutation
	left    []*ledger.Item
}

// seen is a transaction whose changes are noted.
type seen struct {
	ledger.Tx
	changes *changes
}

// PutMutation implements ledger.Tx.
func (s seen) PutMutation(m *ledger.Mutation) error {
	s.changes.mutations = append(s.changes.mutations, m)
	return s.Tx.PutMutation(m)
}

// PutRun implements ledger.Tx.
func (s seen) PutRun(r *ledger.Run) error {
	s.changes.runs = append(s.changes.runs, r)
	return s.Tx.PutRun(r)
}

// PutItem implements ledger.Tx.
func (s seen) PutItem(i *ledger.Item) error {
	s.changes.items = append(s.changes.items, i)
	return s.Tx.PutItem(i)
}

// DropMutation implements ledger.Tx.
func (s seen) DropMutation(m *ledger.Mutation) error {
	s.changes.dropped = append(s.changes.dropped, m)
	return s.Tx.DropMutation(m)
}

// DropItem implements ledger.Tx.
func (s seen) DropItem(i *ledger.Item) error {
	s.changes.left = append(s.changes.left, i)
	return s.Tx.DropItem(i)
}
