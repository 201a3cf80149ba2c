package ledgertest_test

import (
	"errors"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// claim stores a first version of a record.
func claim(tx ledger.Tx, name byte) error {
	k := ledger.Key{name}
	return tx.PutMutation(&ledger.Mutation{
		Intent:  ledger.Intent{Key: k, ID: k.ID(), Scope: ledger.Scope{Workflow: "w", Item: "i"}},
		Version: 1,
		Outcome: ledger.Outcome{State: ledger.InFlight},
	})
}

// has reports whether the record is durable.
func has(t *testing.T, s *ledgertest.Memory, name byte) bool {
	t.Helper()
	err := s.View(t.Context(), func(v ledger.View) error {
		_, err := v.Mutation(ledger.Key{name})
		return err
	})
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestMemoryFailsAsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fail func(*ledgertest.Memory)
		kept bool
	}{
		{"before the update is kept", (*ledgertest.Memory).FailBefore, false},
		{"after the update was kept", (*ledgertest.Memory).FailAfter, true},
	} {
		s := ledgertest.NewMemory(ledger.Process{ID: "p1"})
		c.fail(s)
		first := s.Update(t.Context(), func(tx ledger.Tx) error { return claim(tx, 1) })
		second := s.Update(t.Context(), func(tx ledger.Tx) error { return claim(tx, 2) })
		if !errors.Is(first, ledger.ErrUnavailable) || !errors.Is(second, ledger.ErrUnavailable) || s.Healthy() == nil {
			t.Errorf("%s: %v, then %v, healthy %v", c.name, first, second, s.Healthy())
		}
		next := s.Reopen(ledger.Process{ID: "p2"})
		if has(t, next, 1) != c.kept || has(t, next, 2) || next.Healthy() != nil || next.Process().ID != "p2" {
			t.Errorf("%s: after reopening the first is there: %v, the second: %v", c.name, has(t, next, 1), has(t, next, 2))
		}
	}
}

func TestMemoryLosesWhatWasOnlyNoted(t *testing.T) {
	t.Parallel()
	s := ledgertest.NewMemory(ledger.Process{ID: "p1"})
	s.Note(func(tx ledger.Tx) error { return claim(tx, 1) })
	if has(t, s, 1) {
		t.Error("a note is durable at once")
	}
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return claim(tx, 1) }); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("a command doesn't see what was noted before it: %v", err)
	}
	if has(t, s.Reopen(ledger.Process{ID: "p2"}), 1) {
		t.Error("a note survived without an update after it")
	}
	s = ledgertest.NewMemory(ledger.Process{ID: "p1"})
	s.Note(func(tx ledger.Tx) error { return claim(tx, 1) })
	if err := s.Update(t.Context(), func(ledger.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if !has(t, s.Reopen(ledger.Process{ID: "p2"}), 1) || s.Syncs() != 1 {
		t.Errorf("a note didn't survive with the update after it; %d syncs", s.Syncs())
	}
}

func TestMemoryOfALostProcessIsShut(t *testing.T) {
	t.Parallel()
	s := ledgertest.NewMemory(ledger.Process{ID: "p1"})
	s.Reopen(ledger.Process{ID: "p2"})
	if err := s.Update(t.Context(), func(ledger.Tx) error { return nil }); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("an update of a lost process: %v", err)
	}
	s.Note(func(tx ledger.Tx) error { t.Error("a note of a lost process is evaluated"); return nil })
}

func TestMemoryCopiesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	s := ledgertest.NewMemory(ledger.Process{ID: "p1"})
	m := &ledger.Mutation{
		Intent:  ledger.Intent{Key: ledger.Key{1}, Identity: map[string]string{"a": "1"}},
		Version: 1,
		Outcome: ledger.Outcome{State: ledger.InFlight},
	}
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Fatal(err)
	}
	m.Identity["a"] = "2"
	err := s.View(t.Context(), func(v ledger.View) error {
		stored, err := v.Mutation(m.Key)
		if err == nil && stored.Identity["a"] != "1" {
			t.Error("the stored record changes with the caller's")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoredRecordsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := ledgertest.NewMemory(ledger.Process{ID: "p1"})
	var held []*ledger.Mutation
	look := func() []*ledger.Mutation {
		if err := s.Stored(func(_ ledger.View, all []*ledger.Mutation) error { held = all; return nil }); err != nil {
			t.Fatal(err)
		}
		return held
	}
	put := func(version int64, name byte) {
		t.Helper()
		m := &ledger.Mutation{Intent: ledger.Intent{Key: ledger.Key{name}}, Version: version, Outcome: ledger.Outcome{State: ledger.InFlight}}
		if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
			t.Fatal(err)
		}
	}
	put(1, 1)
	first := look()
	put(2, 1)
	put(1, 2)
	if len(first) != 1 || first[0].Version != 1 {
		t.Errorf("what was seen before changed: %+v", first)
	}
	if all := look(); len(all) != 2 || all[0].Key != (ledger.Key{1}) || all[0].Version != 2 || all[1].Key != (ledger.Key{2}) {
		t.Errorf("seen now: %+v", all)
	}
}

func TestMemoryListsAKeyThatIsPutAgainOnce(t *testing.T) {
	t.Parallel()
	s := ledgertest.NewMemory(ledger.Process{ID: "p1"})
	drop := func(tx ledger.Tx) error {
		return tx.DropMutation(&ledger.Mutation{Intent: ledger.Intent{Key: ledger.Key{1}}, Version: 1})
	}
	again := func(tx ledger.Tx) error { return errors.Join(drop(tx), claim(tx, 1)) }
	count := func(v ledger.View) int {
		keys, err := v.ItemMutations("w", "i")
		if err != nil {
			t.Fatal(err)
		}
		return len(keys)
	}
	for _, fn := range []func(ledger.Tx) error{
		func(tx ledger.Tx) error { return errors.Join(claim(tx, 1), again(tx)) }, // all within one command
		again,
		drop,
		func(tx ledger.Tx) error { return claim(tx, 1) },
	} {
		within := 0
		if err := s.Update(t.Context(), func(tx ledger.Tx) error { err := fn(tx); within = count(tx); return err }); err != nil {
			t.Fatal(err)
		}
		if err := s.View(t.Context(), func(v ledger.View) error {
			if n := count(v); n != within || n > 1 {
				t.Errorf("%d within the command, %d after it", within, n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
