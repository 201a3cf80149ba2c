package ledgertest

import (
	"testing"
	"time"

	"keep-proxy/ledger"
)

// testTaken checks that the items of a run of many are found until they are let go.
func testTaken(t *testing.T, s Subject) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	item := func(name, run string, shared bool, version int64) *ledger.Item {
		return &ledger.Item{
			ID: ledger.ItemID("w", name), Version: version, Workflow: "w", Item: name, State: ledger.ItemOpen, Attempt: 1,
			ActiveRun: run, Shared: shared, OpenedAt: at, UpdatedAt: at,
		}
	}
	taken := func(run string, limit int) map[string]bool {
		t.Helper()
		names := map[string]bool{}
		viewOf(t, s.Store, func(v ledger.View) error {
			items, err := v.TakenItems(run, limit)
			for _, i := range items {
				names[i.Item] = true
			}
			return err
		})
		return names
	}
	update(t, s.Store, func(tx ledger.Tx) error {
		for _, i := range []*ledger.Item{
			item("a", "r1", true, 1), item("b", "r1", true, 1), item("c", "r2", true, 1), item("alone", "r1", false, 1),
		} {
			if err := tx.PutItem(i); err != nil {
				return err
			}
		}
		if items, err := tx.TakenItems("r1", 10); err != nil || len(items) != 2 {
			t.Errorf("the command sees %d items, %v", len(items), err)
		}
		return nil
	})
	if got := taken("r1", 10); len(got) != 2 || !got["a"] || !got["b"] {
		t.Errorf("r1 has %v", got)
	}
	if got := taken("r1", 1); len(got) != 1 {
		t.Errorf("of a limit of 1 came %v", got)
	}
	update(t, s.Store, func(tx ledger.Tx) error {
		if err := tx.PutItem(item("a", "", false, 2)); err != nil {
			return err
		}
		return tx.PutItem(item("b", "r2", true, 2))
	})
	if one, two := taken("r1", 10), taken("r2", 10); len(one) != 0 || len(two) != 2 || !two["b"] || !two["c"] {
		t.Errorf("r1 has %v and r2 %v", one, two)
	}
}
