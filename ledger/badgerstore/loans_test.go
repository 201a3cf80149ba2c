package badgerstore

import (
	"fmt"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func TestALoanIsWhatACommandWouldRead(t *testing.T) {
	t.Parallel()
	m := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	own, others := []ledger.Key{m.Key}, make([]ledger.Key, manyMoved)
	for i := range others {
		others[i] = ledgertest.SampleMutation(fmt.Sprint(i), ledger.Applied, 0).Key
	}
	for name, c := range map[string]struct {
		size                  int
		before, between, then [][]ledger.Key
		want                  bool
	}{
		"nothing was changed":                                     {want: true},
		"it was changed before it was read":                       {before: [][]ledger.Key{own}, want: true},
		"others were changed all the time":                        {before: [][]ledger.Key{others}, between: [][]ledger.Key{others[:9]}, then: [][]ledger.Key{others}, want: true},
		"it was changed while it was read":                        {between: [][]ledger.Key{own}},
		"it was changed since":                                    {then: [][]ledger.Key{own}},
		"more was changed while it was read than is kept of that": {between: [][]ledger.Key{own, others, others[:1]}},
		"it is too long to keep":                                  {size: shelfRecord + 1},
	} {
		var l loans
		commit := func(all [][]ledger.Key) {
			for _, keys := range all {
				l.commit(keys)
			}
		}
		commit(c.before)
		saw := l.written()
		commit(c.between)
		l.lend(entryOfMutation{Mutation: m}, c.size, saw)
		commit(c.then)
		if r, ok := l.take(m.Key); ok != c.want || ok && r.record.Mutation != m {
			t.Errorf("%s: lent: %t, want %t", name, ok, c.want)
		}
		if _, ok := l.take(m.Key); ok {
			t.Errorf("%s: it is lent twice", name)
		}
	}
}

// seen reads a record as a try does, before a command about it.
func seen(t *testing.T, s *Store, k ledger.Key) *ledger.Mutation {
	t.Helper()
	var m *ledger.Mutation
	err := s.Peek(t.Context(), func(v ledger.View) (err error) {
		m, err = v.Mutation(k)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// putting is a command that puts these records.
func putting(all ...*ledger.Mutation) func(*tx) error {
	return func(tx *tx) error {
		for _, m := range all {
			if err := tx.PutMutation(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// crowd are so many records that they push all others from their shelf.
func crowd(name string) []*ledger.Mutation {
	all := make([]*ledger.Mutation, 2*shelfLimit+1)
	for i := range all {
		all[i] = ledgertest.SampleMutation(fmt.Sprint(name, i), ledger.Applied, 0)
	}
	return all
}

func TestNoLoanHidesAChange(t *testing.T) {
	t.Parallel()
	first := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	second := first.Clone()
	second.Version, second.Target = 2, "changed"
	k := first.Key
	for name, commands := range map[string][]func(*testing.T, *Store) func(*tx) error{
		"of a commit before": {
			func(t *testing.T, s *Store) func(*tx) error {
				t.Helper()
				// Who reads while it is changed is lent what it was.
				change := func(tx *tx) error {
					err := putting(second)(tx)
					seen(t, s, k)
					return err
				}
				for _, fn := range []func(*tx) error{change, putting(crowd("x")...)} {
					if err := s.do(t.Context(), fn); err != nil {
						t.Fatal(err)
					}
				}
				return func(*tx) error { return nil }
			},
		},
		"of the commit in the making": {
			func(*testing.T, *Store) func(*tx) error { return putting(second) },
			func(*testing.T, *Store) func(*tx) error { return putting(crowd("x")...) },
			func(t *testing.T, s *Store) func(*tx) error {
				t.Helper()
				return func(*tx) error {
					if m := seen(t, s, k); m.Version != 1 {
						t.Errorf("a reader sees version %d, which isn't durable", m.Version)
					}
					return nil
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, testConfig(t.TempDir()))
			if err := s.do(t.Context(), putting(first)); err != nil {
				t.Fatal(err)
			}
			seen(t, s, k)
			var all []func(*tx) error
			for _, c := range commands {
				all = append(all, c(t, s))
			}
			evaluated(t, s, append(all, func(tx *tx) error {
				if _, known := s.mutations.get(k); known {
					t.Error("its shelf still has it: this shows nothing")
				}
				m, err := tx.Mutation(k)
				if err == nil && m.Version != 2 {
					t.Errorf("a command reads version %d", m.Version)
				}
				return err
			})...)
		})
	}
}

func TestALoanIsNobodyElses(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	k := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0).Key
	err := s.do(t.Context(), putting(append(crowd("x"), ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0))...))
	if err == nil {
		err = s.do(t.Context(), putting(crowd("y")...))
	}
	if err != nil {
		t.Fatal(err)
	}
	m := seen(t, s, k)
	m.Request.Header["Accept"][0], m.Target = "changed", "changed"
	evaluated(t, s, func(tx *tx) error {
		if _, known := s.mutations.get(k); known {
			t.Error("its shelf still has it: this shows nothing")
		}
		for range 2 {
			got, err := tx.Mutation(k)
			if err != nil {
				return err
			}
			if got.Target == "changed" || got.Request.Header["Accept"][0] == "changed" || got.Dispatches[0].ID == "changed" {
				t.Error("a command sees what the reader of a loan changed")
			}
			got.Request.Header, got.Target, got.Dispatches[0].ID = ledger.Header{"Accept": {"changed"}}, "changed", "changed"
		}
		if _, ok := s.loans.take(k); ok {
			t.Error("the command didn't take the loan")
		}
		return nil
	})
}

// Only a try reads its record shortly before a command about it.
func TestOnlyWhatTheRunnerHasIsLent(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	queued := ledgertest.SampleMutation("queued", ledger.NeedsReconcile, 0)
	applied := ledgertest.SampleMutation("applied", ledger.Applied, 0)
	if err := s.do(t.Context(), putting(queued, applied)); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*ledger.Mutation{queued, applied} {
		seen(t, s, m.Key)
		if _, ok := s.loans.take(m.Key); ok != m.Queued() {
			t.Errorf("a record in state %s is lent: %t", m.State, ok)
		}
	}
	seen(t, s, queued.Key)
	s.loans.empty()
	if _, ok := s.loans.take(queued.Key); ok {
		t.Error("a store at rest keeps a loan")
	}
}

// What is lent is used also while the engine lacks the record.
func TestALoanIsUsed(t *testing.T) {
	t.Parallel()
	for _, given := range []bool{true, false} {
		s := mustOpen(t, testConfig(t.TempDir()))
		m := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
		if err := s.do(t.Context(), putting(m)); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"x", "y"} {
			if err := s.do(t.Context(), putting(crowd(n)...)); err != nil {
				t.Fatal(err)
			}
		}
		if given {
			allGiven(t, s)
		}
		seen(t, s, m.Key)
		evaluated(t, s, func(tx *tx) error {
			if tx.borrow(m.Key); !knows(s, m.Key) {
				t.Errorf("the engine has it: %t; the loan isn't used", given)
			}
			return nil
		})
	}
}

// knows reports whether a record is on its shelf.
func knows(s *Store, k ledger.Key) bool {
	_, known := s.mutations.get(k)
	return known
}
