package badgerstore

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// What is owed is counted by each status, and a ledger holds ever more that failed: those
// aren't read for it.
func TestWhatIsOwedIsListedByItself(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	const failed = 5
	debt := ledgertest.SampleMutation("debt", ledger.Failed, failed)
	debt.Undo = &ledger.Undo{Of: ledger.Key{1}, Object: "tr_1", Operation: "refund", Order: 1}
	met := ledgertest.SampleMutation("met", ledger.Applied, failed+1)
	met.Undo = &ledger.Undo{Of: ledger.Key{1}, Object: "tr_2", Operation: "refund", Order: 2}
	put := func(list ...*ledger.Mutation) {
		t.Helper()
		if err := s.Update(t.Context(), func(tx ledger.Tx) error {
			var errs []error
			for _, m := range list {
				errs = append(errs, tx.PutMutation(m))
			}
			return errors.Join(errs...)
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range failed {
		put(ledgertest.SampleMutation(strconv.Itoa(i), ledger.Failed, i))
	}
	put(debt, met)
	open := ledger.Filter{Obligations: true, States: []ledger.State{ledger.Failed, ledger.InFlight, ledger.NeedsReconcile, ledger.Indeterminate}}
	listed := func(f ledger.Filter) (ids []string, read int) {
		t.Helper()
		page, err := s.Mutations(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Items {
			ids = append(ids, m.ID)
		}
		_ = s.snapshot(func(src snapshot) error {
			w := newWalk(src, mutationPrefixes(f), nil)
			defer w.close()
			for w.nextIn(nil) != nil {
				read++
			}
			return nil
		})
		return ids, read
	}
	want := func(when string, f ledger.Filter, most int, wanted ...string) {
		t.Helper()
		if ids, read := listed(f); !slices.Equal(ids, wanted) || read > most {
			t.Errorf("%s: listed %v, reading %d; want %v, reading %d", when, ids, read, wanted, most)
		}
	}
	want("owed", open, 1, debt.ID)
	want("all", ledger.Filter{Obligations: true}, failed+2, met.ID, debt.ID)
	want("met ones, too", ledger.Filter{Obligations: true, States: []ledger.State{ledger.Failed, ledger.Applied}}, failed+2, met.ID, debt.ID)
	waived := debt.Clone()
	waived.Version, waived.State, waived.UpdatedAt = 2, ledger.Skipped, debt.UpdatedAt.Add(time.Second)
	put(waived)
	want("waived", open, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), c, nil); err != nil {
		t.Error(err)
	}
}
