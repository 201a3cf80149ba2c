package ledgertest

import (
	"errors"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// testDrop checks that nothing finds a dropped record or item any more but its events. The same can be put again as
// new.
func testDrop(t *testing.T, s Subject) {
	m := SampleMutation("old", ledger.Skipped, 0)
	m.Reason = strings.Repeat("long ", 200<<10) // kept in parts
	other := SampleMutation("other", ledger.Applied, 1)
	item := SampleItem("order-1", 0)
	update(t, s.Store, func(tx ledger.Tx) error {
		tx.Append(ledger.Event{At: Epoch, Actor: "proxy", What: "claim", Mutation: m.ID})
		tx.Append(ledger.Event{At: Epoch, Actor: "proxy", What: "claim", Mutation: other.ID})
		return errors.Join(tx.PutMutation(m), tx.PutMutation(other), tx.PutItem(item))
	})
	stale, staleItem := m.Clone(), item.Clone()
	stale.Version, staleItem.Version = 2, 2
	for name, drop := range map[string]func(ledger.Tx) error{
		"a record": func(tx ledger.Tx) error { return tx.DropMutation(stale) },
		"an item":  func(tx ledger.Tx) error { return tx.DropItem(staleItem) },
	} {
		if err := s.Store.Update(t.Context(), drop); !errors.Is(err, ledger.ErrVersion) {
			t.Errorf("%s of another version: %v", name, err)
		}
	}
	if err := s.Store.Update(t.Context(), func(tx ledger.Tx) error {
		return errors.Join(tx.DropMutation(m), errDrop)
	}); !errors.Is(err, errDrop) || load(t, s.Store, m.Key).State != ledger.Skipped {
		t.Errorf("a command that failed: %v", err)
	}
	update(t, s.Store, func(tx ledger.Tx) error {
		if err := errors.Join(tx.DropMutation(m), tx.DropItem(item)); err != nil {
			return err
		}
		tx.Append(ledger.Event{At: Epoch, Actor: "retention", What: "removed", Mutation: m.ID})
		if _, err := tx.Mutation(m.Key); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("the command finds the record: %v", err)
		}
		return nil
	})
	gone := func(s ledger.Store) {
		t.Helper()
		viewOf(t, s, func(v ledger.View) error {
			_, errRecord := v.Mutation(m.Key)
			_, errItem := v.Item("refunds", "order-1")
			keys, err := v.ItemMutations("refunds", "order-1")
			if !errors.Is(errRecord, ledger.ErrNotFound) || !errors.Is(errItem, ledger.ErrNotFound) || len(keys) != 1 {
				t.Errorf("found: %v, %v, %d keys", errRecord, errItem, len(keys))
			}
			return err
		})
		page, err := s.Mutations(t.Context(), ledger.Filter{States: []ledger.State{ledger.Skipped}})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("listed: %d, %v", len(page.Items), err)
		}
		items, err := s.Items(t.Context(), ledger.Filter{})
		if err != nil || len(items.Items) != 0 {
			t.Errorf("items listed: %d, %v", len(items.Items), err)
		}
		events, err := s.Events(t.Context(), m.ID, 0, 10)
		if err != nil || len(events) != 2 || events[1].What != "removed" {
			t.Errorf("its events: %v, %v", events, err)
		}
	}
	gone(s.Store)
	s.Store = s.Reopen()
	gone(s.Store)
	put(t, s.Store, SampleMutation("old", ledger.Failed, 5))
	if got := load(t, s.Store, m.Key); got.State != ledger.Failed {
		t.Errorf("put again: %s", got.State)
	}
}

var errDrop = errors.New("dropped after all")
