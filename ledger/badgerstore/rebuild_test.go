package badgerstore

import (
	"errors"
	"os"
	"testing"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// spoiled is a closed ledger that lacks an index entry, has one that no record names, and has one of a
// record that isn't there.
func spoiled(t *testing.T) (c Config, keys []ledger.Key) {
	t.Helper()
	c = testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	active(t, s)
	keys = fill(t, s, 0, 5, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openEngine(c.engineOptions())
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *badger.Txn) error {
		m := ledgertest.SampleMutation("record 1", ledger.Applied, 1)
		stale := m.Clone()
		stale.State = ledger.Failed
		l := newWrites(txn)
		l.remove(mutationIndexes(m)[0])
		gone := ledgertest.SampleMutation("gone", ledger.Failed, 7)
		for _, x := range append(mutationIndexes(stale), mutationIndexes(gone)...) {
			if !containsKey(mutationIndexes(m), x) {
				l.set(x, seal(x, nil, 0), nil)
			}
		}
		return l.apply(txn)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return c, keys
}

func TestRebuildMakesTheIndexesAnew(t *testing.T) {
	t.Parallel()
	c, keys := spoiled(t)
	if _, err := Verify(t.Context(), c, nil); !errors.Is(err, ledger.ErrDamaged) {
		t.Fatalf("without an index entry: %v, want ErrDamaged", err)
	}
	r, err := Rebuild(t.Context(), c, nil)
	if err != nil || r.Mutations != 6 || r.Runs != 1 || r.Items != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := Verify(t.Context(), c, nil); err != nil {
		t.Error(err)
	}
	s := mustOpen(t, c)
	for _, x := range mutationIndexes(ledgertest.SampleMutation("gone", ledger.Failed, 7)) {
		if err := engineView(s.db, func(src snapshot) error {
			if there, err := src.has(x); there || err != nil {
				t.Errorf("%s is there still: %v", keyName(x), err)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.Mutations(t.Context(), ledger.Filter{})
	if err != nil || len(page.Items) != 6 {
		t.Errorf("%d records are listed, %v", len(page.Items), err)
	}
	goesOnIn(t, s, keys)
}

// Badger can bring back what was removed: what no record names is in no listing, queue or gate.
func TestAnIndexEntryCountsOnlyIfItsRecordNamesIt(t *testing.T) {
	t.Parallel()
	c, _ := spoiled(t)
	s := mustOpenOnly(t, c)
	for name, f := range map[string]ledger.Filter{
		"failed":             {States: []ledger.State{ledger.Failed}},
		"failed or in doubt": {States: []ledger.State{ledger.Failed, ledger.NeedsReconcile}},
	} {
		page, err := s.Mutations(t.Context(), f)
		if err != nil || len(page.Items) != 0 {
			t.Errorf("%s: %d records, %v", name, len(page.Items), err)
		}
	}
	if err := s.View(t.Context(), func(v ledger.View) error {
		keys, err := v.ItemMutations("refunds", "order-1")
		for _, k := range keys {
			if _, err := v.Mutation(k); err != nil {
				t.Errorf("an item lists %s: %v", k, err)
			}
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func TestARebuildThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	c, keys := spoiled(t)
	rebuilt := testConfig(copyFolder(t, c.Dir))
	if _, err := Rebuild(t.Context(), rebuilt, nil); err != nil {
		t.Fatal(err)
	}
	// Killed as soon as the data were set aside.
	if err := errors.Join(os.Rename(c.dataDir(), c.replacedDir()), os.Mkdir(c.rebuiltDir(), 0o700)); err != nil {
		t.Fatal(err)
	}
	swap(t, rebuilt.dataDir(), c.rebuiltDir()+"/data")
	goesOnIn(t, mustOpen(t, c), keys)
	for _, dir := range []string{c.rebuiltDir(), c.replacedDir()} {
		if there, err := exists(dir); there || err != nil {
			t.Errorf("%s is there still: %v", dir, err)
		}
	}
}
