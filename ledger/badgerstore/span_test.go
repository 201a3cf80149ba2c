package badgerstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// spread puts n mutations of two connectors over a few hours, and changes some of them
// later.
func spread(t *testing.T, s *Store, rnd *rand.Rand, n int) {
	t.Helper()
	at := func() time.Time { return ledgertest.Epoch.Add(time.Duration(rnd.Int64N(int64(6 * time.Hour)))) }
	all := make([]*ledger.Mutation, n)
	for i := range all {
		m := ledgertest.SampleMutation(fmt.Sprint("m", i), ledger.InFlight, 0)
		m.CreatedAt = at()
		m.UpdatedAt, m.Dispatches[0].Started.Wall = m.CreatedAt, m.CreatedAt.Add(time.Second)
		m.Connector = []string{"stripe", "stripe", "stripe", "mail"}[rnd.IntN(4)]
		m.ConnectorVersion = 1 + rnd.IntN(3)
		all[i] = m
	}
	put := func(all ...*ledger.Mutation) {
		err := s.Update(t.Context(), func(tx ledger.Tx) error {
			for _, m := range all {
				if err := tx.PutMutation(m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for part := range slices.Chunk(all, 50) {
		put(part...)
	}
	var changed []*ledger.Mutation
	for _, m := range all {
		switch rnd.IntN(4) {
		case 0:
			m.Dispatches[0].Ended.Wall = at()
		case 1:
			m.Observations = append(m.Observations, ledger.Observation{At: ledger.Stamp{Wall: at()}})
		case 2:
			m.ConnectorVersion = 1 + rnd.IntN(3)
		default:
			continue
		}
		m.Version, m.UpdatedAt = 2, at()
		changed = append(changed, m)
	}
	for part := range slices.Chunk(changed, 50) {
		put(part...)
	}
}

// What these indexes leave out is what reading every record leaves out.
func TestListingsByTimeAndVersionMissNothing(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	rnd := rand.New(rand.NewPCG(6, 1))
	const records = 400
	spread(t, s, rnd, records)
	list := func(f ledger.Filter) (ids []string) {
		for {
			p, err := s.Mutations(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range p.Items {
				ids = append(ids, m.ID)
			}
			if f.Cursor = p.Next; p.Next == "" {
				return ids
			}
		}
	}
	page, err := s.Mutations(t.Context(), ledger.Filter{Limit: records})
	if err != nil || len(page.Items) != records {
		t.Fatalf("%d records, %v", len(page.Items), err)
	}
	all, some := page.Items, 0
	for range 25 {
		f := ledger.Filter{Limit: 1 + rnd.IntN(40)}
		if rnd.IntN(2) == 0 {
			f.Connector = []string{"stripe", "mail", "none"}[rnd.IntN(3)]
			f.ConnectorVersion = rnd.IntN(5)
		}
		from := ledgertest.Epoch.Add(time.Duration(rnd.Int64N(int64(6 * time.Hour))))
		if rnd.IntN(2) == 0 {
			f.Touched.Since = from
		}
		if rnd.IntN(2) == 0 {
			f.Touched.Until = from.Add(time.Duration(rnd.Int64N(int64(30 * time.Minute))))
		}
		if rnd.IntN(4) == 0 {
			f.States = []ledger.State{ledger.InFlight, ledger.Failed}
		}
		got := list(f)
		var want []string
		for _, m := range all {
			if matchMutation(m, f) {
				want = append(want, m.ID)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %d records, want %d", f, len(got), len(want))
		}
		some += len(got)
	}
	if some == 0 {
		t.Fatal("nothing was ever listed")
	}
}

func TestWindows(t *testing.T) {
	t.Parallel()
	const m = uint64(time.Minute)
	w := ofUnits([]uint32{5, 3, 4, 4, 9}, time.Minute)
	if want := (windows{{9 * m, 10 * m}, {3 * m, 6 * m}}); !slices.Equal(w, want) {
		t.Fatalf("%v, want %v", w, want)
	}
	for made, want := range map[uint64]struct {
		ok    bool
		below uint64
	}{
		9*m + 1: {true, 0}, 10 * m: {false, 10 * m}, 7 * m: {false, 6 * m}, 6*m - 1: {true, 0}, 3 * m: {true, 0}, 1: {false, 0},
	} {
		if ok, below := w.holds(made); ok != want.ok || below != want.below {
			t.Errorf("%d: %t %d, want %+v", made, ok, below, want)
		}
	}
	if got, want := w.and(windows{{4 * m, 9*m + 1}}), (windows{{9 * m, 9*m + 1}, {4 * m, 6 * m}}); !slices.Equal(got, want) {
		t.Errorf("and: %v, want %v", got, want)
	}
	if got, want := w.or(windows{{5 * m, 9*m + 1}}), (windows{{3 * m, 10 * m}}); !slices.Equal(got, want) {
		t.Errorf("or: %v, want %v", got, want)
	}
	if ok, _ := windows(nil).holds(7); !ok {
		t.Error("no window is all")
	}
}
