package badgerstore

import (
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// aSight stores what [Store.See] needs to answer for the record of that name.
func aSight(t *testing.T, s *Store, name string) (ledger.Scope, ledger.Key) {
	t.Helper()
	m := ledgertest.SampleMutation(name, ledger.Applied, 0)
	m.Scope = ledger.Scope{Workflow: m.Workflow, Item: "of " + name, Run: "run of " + name}
	r, i := ledgertest.SampleRun(m.Run, 0), ledgertest.SampleItem(m.Item, 0)
	err := s.Update(t.Context(), func(tx ledger.Tx) error {
		for _, err := range []error{tx.PutRun(r), tx.PutItem(i), tx.PutMutation(m)} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m.Scope, m.Key
}

// exchange puts the value of another key under that of a record, as if blocks had changed places.
func exchange(t *testing.T, s *Store, k ledger.Key) {
	t.Helper()
	_, other := aSight(t, s, "other")
	err := s.do(t.Context(), func(tx *tx) error {
		sealed, err := tx.layer.raw(mutationKey(other))
		tx.layer.set(mutationKey(k), sealed)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// knows reports what the gate remembers of a record and of its item.
func (s *Store) knows(scope ledger.Scope, k ledger.Key) (record, item bool) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	_, record, _ = s.gate.known.records.get(k)
	_, item, _ = s.gate.known.items.get(digest(scope.Workflow, scope.Item))
	return record, item
}

// What a commit changes may have been kept long ago.
func TestWhatChangesIsForgottenHoweverOldItIs(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]int{"the younger ones": 0, "the older ones": shelfLimit} {
		var r recent[int, string]
		r.keep(-1, "old")
		for n := range later {
			r.keep(n, "")
		}
		found, ok, ages := r.get(-1)
		if found != "old" || !ok || ages != (later > 0) {
			t.Fatalf("among %s: %q, %t, ages %t", name, found, ok, ages)
		}
		if r.drop(-1); len(r.young)+len(r.old) != later {
			t.Errorf("among %s: %d are left, want %d", name, len(r.young)+len(r.old), later)
		}
		if found, ok, _ := r.get(-1); ok {
			t.Errorf("among %s: %q is known still", name, found)
		}
	}
}

func TestOnlySoMuchIsKeptOfWhatWasSeen(t *testing.T) {
	t.Parallel()
	var r recent[int, int]
	for n := range 10 * shelfLimit {
		r.keep(n, n)
		if kept := len(r.young) + len(r.old); kept > 2*shelfLimit {
			t.Fatalf("%d are kept of %d", kept, n+1)
		}
		if found, ok, _ := r.get(n); !ok || found != n {
			t.Fatalf("what was kept last is gone: %d, %t", found, ok)
		}
	}
	// One that is used again stays for another generation, in one place.
	r.keep(9*shelfLimit, 1)
	if _, old := r.old[9*shelfLimit]; old {
		t.Error("it is kept twice")
	}
}

func TestWhatWasSeenIsKnownUntilTheStoreRests(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	scope, k := aSight(t, s, "a")
	if _, ok := s.See(scope, k); !ok {
		t.Fatal("nothing is seen")
	}
	if record, item := s.knows(scope, k); !record || !item {
		t.Errorf("known afterwards: record %t, item %t", record, item)
	}
	s.gate.rest(s.now())
	if record, item := s.knows(scope, k); record || item {
		t.Errorf("known after a rest: record %t, item %t", record, item)
	}
}

func TestALongRecordIsSeenAndNotKept(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	scope, k := aSight(t, s, "a")
	m := ledgertest.SampleMutation("a", ledger.Applied, 0)
	m.Scope, m.Version, m.Target = scope, 2, string(long("t"))[:shelfRecord]
	if err := s.do(t.Context(), putting(m)); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.See(scope, k); !ok || got.Mutation.Target != m.Target {
		t.Errorf("seen: %t", ok)
	}
	if record, item := s.knows(scope, k); record || !item {
		t.Errorf("known afterwards: record %t, item %t; want the item alone", record, item)
	}
}

// Nobody else may hold a snapshot: the engine keeps all that it sees.
func TestWhoSeesGivesTheSnapshotBack(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	scope, k := aSight(t, s, "a")
	missing := ledgertest.SampleMutation("missing", ledger.Applied, 0).Key
	for want, k := range map[bool]ledger.Key{true: k, false: missing} {
		if _, ok := s.See(scope, k); ok != want {
			t.Errorf("seen: %t, want %t", ok, want)
		}
		if s.newest.is.users != 1 {
			t.Errorf("seen: %t; the newest snapshot has %d users, want the store alone", want, s.newest.is.users)
		}
	}
}

// A command finds out what is wrong, and stops the store.
func TestADamagedRecordIsNotSeen(t *testing.T) {
	t.Parallel()
	s := mustOpenOnly(t, testConfig(t.TempDir()))
	scope, k := aSight(t, s, "a")
	exchange(t, s, k)
	for range 2 {
		if got, ok := s.See(scope, k); ok {
			t.Errorf("seen: %+v", got)
		}
	}
	if record, _ := s.knows(scope, k); record {
		t.Error("it is known afterwards")
	}
}

// Who reads may be slower than the next commit: what he read before it must not be kept after it,
// whatever it changed, since nothing would make it be forgotten then.
func TestWhatChangedUnderItsReaderIsNotKept(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string]struct{ record, item bool }{
		"the record": {record: true},
		"the item":   {item: true},
		"both":       {record: true, item: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, testConfig(t.TempDir()))
			scope, k := aSight(t, s, "a")
			item := digest(scope.Workflow, scope.Item)
			l, ok := s.gate.look(scope, item, k, s.backlog, &s.newest)
			if !ok || l.src == nil {
				t.Fatalf("looked: %t, to be read: %t", ok, l.src != nil)
			}
			err := s.Update(t.Context(), func(tx ledger.Tx) error {
				if changed.record {
					m, err := tx.Mutation(k)
					if err != nil {
						return err
					}
					m.Version++
					if err := tx.PutMutation(m); err != nil {
						return err
					}
				}
				if !changed.item {
					return nil
				}
				i, err := tx.Item(scope.Workflow, scope.Item)
				if err != nil {
					return err
				}
				i.Version++
				i.State = ledger.ItemDone
				return tx.PutItem(i)
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := s.seeOn(l, item, k); !ok {
				t.Fatal("nothing is seen")
			}
			if record, item := s.knows(scope, k); record || item {
				t.Errorf("known afterwards: record %t, item %t", record, item)
			}
			if after, ok := s.See(scope, k); !ok || changed.item != (after.Item.State == ledger.ItemDone) || changed.record != (after.Mutation.Version == 2) {
				t.Errorf("seen: %t, item %s, version %d", ok, after.Item.State, after.Mutation.Version)
			}
		})
	}
}
