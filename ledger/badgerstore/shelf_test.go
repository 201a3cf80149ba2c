package badgerstore

import (
	"errors"
	"fmt"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func TestShelfKeepsWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	var s shelf[int, string]
	for k := range 3 * shelfLimit {
		s.keep(k, kept[string]{record: fmt.Sprint(k)})
		if r, ok := s.get(0); !ok || r.record != "0" {
			t.Fatalf("after %d others the one in use is forgotten", k)
		}
	}
	if n := len(s.young) + len(s.old); n > 2*shelfLimit {
		t.Errorf("%d records are kept", n)
	}
	if _, ok := s.get(1); ok {
		t.Error("one that was long unused is kept")
	}
}

func TestShelfTakesNoOldVersionForTheNewOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*shelf[int, string])
		want   string
	}{
		"a command that succeeded": {func(s *shelf[int, string]) {
			s.put(1, kept[string]{record: "second"})
			s.put(1, kept[string]{record: "third"})
			s.end(true)
		}, "third"},
		"a command that failed": {func(s *shelf[int, string]) {
			s.put(1, kept[string]{record: "second"})
			s.end(false)
		}, "first"},
		"a new version that is too long to keep": {func(s *shelf[int, string]) {
			s.put(1, kept[string]{record: "second", size: shelfRecord + 1})
			s.end(true)
		}, ""},
		"a removal": {func(s *shelf[int, string]) { s.drop(1) }, ""},
		"a generation later": {func(s *shelf[int, string]) {
			for k := range shelfLimit {
				s.keep(-k, kept[string]{})
			}
			s.keep(1, kept[string]{record: "second"})
			for k := range shelfLimit {
				s.keep(-k, kept[string]{})
			}
		}, "second"},
	} {
		var s shelf[int, string]
		s.keep(1, kept[string]{record: "first"})
		c.change(&s)
		if r, ok := s.get(1); r.record != c.want || ok != (c.want != "") {
			t.Errorf("after %s: %q, %t; want %q", name, r.record, ok, c.want)
		}
	}
}

func TestCommandsGetCopiesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	m := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	k := m.Key
	put := func(m *ledger.Mutation) func(ledger.Tx) error {
		return func(tx ledger.Tx) error { return tx.PutMutation(m) }
	}
	if err := s.Update(t.Context(), put(m)); err != nil {
		t.Fatal(err)
	}
	m.Request.Header["Accept"][0], m.Target = "changed", "changed"
	for range 2 {
		err := s.Update(t.Context(), func(tx ledger.Tx) error {
			got, err := tx.Mutation(k)
			if err != nil {
				return err
			}
			if got.Target == "changed" || got.Request.Header["Accept"][0] == "changed" || got.Dispatches[0].ID == "changed" {
				t.Error("a change of a record that wasn't put is seen")
			}
			got.Request.Header, got.Target, got.Dispatches[0].ID = ledger.Header{"Accept": {"changed"}}, "changed", "changed"
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// evaluated says of commands that are evaluated into one batch, which is then
// dropped, whether each could have been answered before the batch is synced.
func evaluated(t *testing.T, s *Store, commands ...func(*tx) error) (durable []bool) {
	t.Helper()
	b := s.begin()
	defer s.end(b)
	for i, fn := range commands {
		ok, err := s.add(b, fn)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Fatalf("command %d: %v", i, err)
		}
		durable = append(durable, ok)
	}
	return durable
}

func TestOnlyWhatDependsOnNothingPendingIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	stored, other := ledgertest.SampleMutation("stored", ledger.InFlight, 0), ledgertest.SampleMutation("other", ledger.Indeterminate, 0)
	read := func(k ledger.Key) func(*tx) error {
		return func(t *tx) error {
			_, err := t.Mutation(k)
			return err
		}
	}
	put := func(t *tx) error { return t.PutMutation(other.Clone()) }
	keep := func(t *tx) error {
		_, err := t.PutBody([]byte("content"))
		return err
	}
	for name, c := range map[string]struct {
		before, fn func(*tx) error
		want       bool
	}{
		"nothing at all":                     {put, func(*tx) error { return nil }, true},
		"a read of what is durable":          {put, read(stored.Key), true},
		"a read of what isn't there":         {put, read(ledger.Key{1}), true},
		"a change":                           {nil, put, false},
		"a read of a pending record":         {put, read(other.Key), false},
		"a read of a pending delivery":       {deliver, func(t *tx) error { _, err := t.Delivery("run-1", stored.Key); return err }, false},
		"a look for another's delivery":      {deliver, func(t *tx) error { _, err := t.Delivery("run-2", stored.Key); return err }, true},
		"a list, whatever changed":           {deliver, func(t *tx) error { _, err := t.RunMutations("run-1"); return err }, false},
		"a gate that is about to shut":       {put, func(t *tx) error { _, err := t.Blockers("refunds"); return err }, false},
		"a gate that stays as it is":         {deliver, func(t *tx) error { _, err := t.Blockers("refunds"); return err }, true},
		"a look for pending evidence":        {prove, func(t *tx) error { _, err := t.EvidenceOf("bank", "", "t-1"); return err }, false},
		"a look for other evidence":          {prove, func(t *tx) error { _, err := t.EvidenceOf("bank", "", "t-2"); return err }, true},
		"content that is pending already":    {keep, keep, false},
		"a failure that saw nothing pending": {put, func(*tx) error { return ledger.ErrNotFound }, true},
		"a failure that saw something":       {put, func(t *tx) error { _ = read(other.Key)(t); return ledger.ErrNotFound }, false},
		"an event":                           {nil, func(t *tx) error { t.Append(ledger.Event{What: "replayed"}); return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpen(t, testConfig(t.TempDir()))
			if err := s.do(t.Context(), func(t *tx) error { return t.PutMutation(stored.Clone()) }); err != nil {
				t.Fatal(err)
			}
			commands := []func(*tx) error{c.fn}
			if c.before != nil {
				commands = []func(*tx) error{c.before, c.fn}
			}
			got := evaluated(t, s, commands...)
			if got[len(got)-1] != c.want {
				t.Errorf("answered at once: %t, want %t", !c.want, c.want)
			}
		})
	}
}

func prove(t *tx) error { return t.PutEvidence("bank", "", "t-1", ledger.Key{1}) }

func deliver(t *tx) error {
	return t.PutDelivery("run-1", ledgertest.SampleMutation("stored", ledger.InFlight, 0).Key, ledger.Delivery{})
}

func TestReadsCauseNoSync(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	fill(t, s, 0, 1, 2)
	before := s.Commits()
	for range 10 {
		if err := s.Update(t.Context(), func(ledger.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Commits() - before; n != 0 {
		t.Errorf("%d commits for commands that changed nothing", n)
	}
}

func TestRemovedContentIsForgotten(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	content := []byte("content")
	body := ledgertest.SampleBody(content)
	sum := sum256(content)
	keep := func(t *tx) error {
		_, err := t.PutBody(content)
		return err
	}
	remove := func(t *tx) error { t.layer.remove(key(kBody, sum[:])); return nil }
	for i, fn := range []func(*tx) error{keep, remove, keep} {
		if err := s.do(t.Context(), fn); err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
	}
	r, err := s.Body(t.Context(), body)
	if err != nil {
		t.Fatalf("content that was stored again: %v", err)
	}
	_ = r.Close()
}

func TestDeliveriesAreRemembered(t *testing.T) {
	t.Parallel()
	k := ledgertest.SampleMutation("stored", ledger.InFlight, 0).Key
	var known *ledger.Delivery
	look := func(t *tx) (err error) {
		known, err = t.Delivery("run-1", k)
		return err
	}
	fails := func(t *tx) error { return errors.Join(deliver(t), ledger.ErrNotFound) }
	s := mustOpen(t, testConfig(t.TempDir()))
	b := s.begin()
	defer s.end(b)
	for i, c := range []struct {
		fn            func(*tx) error
		there, atOnce bool
	}{
		{look, false, true}, {look, false, true}, {fails, false, true}, {look, false, true},
		{deliver, false, false}, {look, true, false}, {look, true, false},
	} {
		known = nil
		if durable, err := s.add(b, c.fn); durable != c.atOnce || err != nil && !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("command %d: answered at once: %t, %v", i, durable, err)
		}
		if there := known != nil; there != c.there {
			t.Errorf("command %d: found a delivery: %t", i, there)
		}
		if known != nil {
			if known.ClientKey != "" {
				t.Errorf("command %d: a change of what was given away is seen", i)
			}
			known.ClientKey = "changed"
		}
	}
}
