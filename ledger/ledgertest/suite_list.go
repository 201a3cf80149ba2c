package ledgertest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"keep-proxy/ledger"
)

func testConnectorOf(t *testing.T, s Subject) {
	unresolved, settled := SampleMutation("unresolved", ledger.NeedsReconcile, 1), SampleMutation("settled", ledger.Applied, 2)
	other := SampleMutation("other", ledger.Indeterminate, 3)
	other.Connector = "another"
	before := standings(s.Store)
	put(t, s.Store, unresolved, settled, other)
	again := s.Reopen()
	reopened := standings(again)
	want := map[ledger.Key]string{other.Key: "another", settled.Key: "", {1, 2, 3}: "", unresolved.Key: unresolved.Connector}
	for _, gate := range []ledger.Standings{before, reopened} {
		for k, connector := range want {
			if got := gate.ConnectorOf(k); got != connector {
				t.Errorf("connector %q, want %q", got, connector)
			}
		}
	}
	unresolved.Version, unresolved.State = 2, ledger.Applied
	put(t, again, unresolved)
	if got := reopened.ConnectorOf(unresolved.Key); got != "" {
		t.Errorf("a record that is settled is kept in memory still, as one of %q", got)
	}
}

func testDue(t *testing.T, s Subject) {
	var ms []*ledger.Mutation
	for n, name := range []string{"third", "first", "second", "later"} {
		m := SampleMutation(name, ledger.NeedsReconcile, n)
		minutes := map[string]int{"first": 1, "second": 2, "third": 3, "later": 9}[name]
		m.NextTryAt = Epoch.Add(time.Duration(minutes) * time.Minute)
		ms = append(ms, m)
	}
	settled := SampleMutation("settled", ledger.Indeterminate, 9)
	settled.NextTryAt = Epoch
	put(t, s.Store, append(ms, settled)...)
	now := Epoch.Add(3 * time.Minute)
	keys := func(want ...*ledger.Mutation) (out []ledger.Key) {
		for _, m := range want {
			out = append(out, m.Key)
		}
		return out
	}
	want := keys(ms[1], ms[2], ms[0])
	if got, next, err := s.Store.Due(t.Context(), now); err != nil || !slices.Equal(got, want) || !next.Equal(ms[3].NextTryAt) {
		t.Errorf("%v, next %s, %v; want %v, next %s", got, next, err, want, ms[3].NextTryAt)
	}
	for n, m := range ms {
		m.Version, m.State = 2, ledger.Applied
		ms[n] = m
	}
	put(t, s.Store, ms...)
	if got, next, err := s.Store.Due(t.Context(), now.Add(time.Hour)); err != nil || len(got) != 0 || !next.IsZero() {
		t.Errorf("settled records: %v, next %s, %v", got, next, err)
	}
}

func testPages(t *testing.T, s Subject) {
	const records = 25
	for n := range records {
		state := ledger.Applied
		if n%2 == 0 {
			state = ledger.Failed
		}
		put(t, s.Store, SampleMutation(fmt.Sprint(n), state, n/2))
	}
	for _, c := range []struct {
		name string
		f    ledger.Filter
		want int
	}{
		{"all", ledger.Filter{Limit: 4}, records},
		{"one state", ledger.Filter{Limit: 4, States: []ledger.State{ledger.Failed}}, 13},
		{"two states", ledger.Filter{Limit: 4, States: []ledger.State{ledger.Failed, ledger.InFlight}}, 13},
		{"with applied", ledger.Filter{Limit: 4, States: []ledger.State{ledger.Applied, ledger.Failed}}, records},
		{"one item", ledger.Filter{Limit: 4, Workflow: "refunds", Item: "order-1"}, records},
		{"the default limit holds all", ledger.Filter{}, records},
	} {
		all := allPages(t, s.Store, c.f)
		if len(all) != c.want {
			t.Errorf("%s: %d records, want %d", c.name, len(all), c.want)
		}
		for n := 1; n < len(all); n++ {
			if all[n].CreatedAt.After(all[n-1].CreatedAt) || all[n].Key == all[n-1].Key {
				t.Errorf("%s: record %d is out of order or repeated", c.name, n)
			}
		}
	}
	if _, err := s.Store.Mutations(t.Context(), ledger.Filter{Cursor: "nonsense"}); err == nil {
		t.Error("a cursor that no page returned is taken")
	}
}

func allPages(t *testing.T, s ledger.Store, f ledger.Filter) (all []*ledger.Mutation) {
	t.Helper()
	for range 100 {
		p, err := s.Mutations(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if f.Limit > 0 && len(p.Items) > f.Limit {
			t.Fatalf("a page of %d, want at most %d", len(p.Items), f.Limit)
		}
		all = append(all, p.Items...)
		if p.Next == "" {
			return all
		}
		f.Cursor = p.Next
	}
	t.Fatal("the listing doesn't end")
	return nil
}

func testFilters(t *testing.T, s Subject) {
	plain := SampleMutation("plain", ledger.Applied, 0)
	mail := SampleMutation("mail", ledger.Applied, 10)
	mail.Connector, mail.Operation, mail.Workflow, mail.Item = "mail", "send", "letters", "letter-1"
	mail.Run, mail.Dispatches[0].Run = "run-2", "run-2"
	open := SampleMutation("open", ledger.Indeterminate, 20)
	open.Escalation = &ledger.Escalation{ID: "e-1", Kind: ledger.EscalationIndeterminate, OpenedAt: Epoch}
	closed := SampleMutation("closed", ledger.Skipped, 30)
	closed.Escalation = &ledger.Escalation{ID: "e-2", OpenedAt: Epoch, ClosedAt: Epoch}
	mail.ConnectorVersion = 7
	later := Epoch.Add(48 * time.Hour)
	put(t, s.Store, plain, mail, open, closed)
	plain.Version, plain.Dispatches[0].Ended.Wall = 2, later
	put(t, s.Store, plain)
	for _, c := range []struct {
		name string
		f    ledger.Filter
		want []*ledger.Mutation
	}{
		{"nothing", ledger.Filter{}, []*ledger.Mutation{closed, open, mail, plain}},
		{"connector", ledger.Filter{Connector: "mail"}, []*ledger.Mutation{mail}},
		{"operation", ledger.Filter{Operation: "refund"}, []*ledger.Mutation{closed, open, plain}},
		{"workflow", ledger.Filter{Workflow: "letters"}, []*ledger.Mutation{mail}},
		{"item", ledger.Filter{Workflow: "letters", Item: "letter-1"}, []*ledger.Mutation{mail}},
		{"run", ledger.Filter{Run: "run-2"}, []*ledger.Mutation{mail}},
		{"since", ledger.Filter{Since: open.CreatedAt}, []*ledger.Mutation{closed, open}},
		{"unresolved", ledger.Filter{Unresolved: true}, []*ledger.Mutation{open}},
		{"unresolved of a workflow", ledger.Filter{Unresolved: true, Workflow: "letters"}, nil},
		{"escalated", ledger.Filter{Escalated: true}, []*ledger.Mutation{open}},
		{"states", ledger.Filter{States: []ledger.State{ledger.Skipped, ledger.Applied}}, []*ledger.Mutation{closed, mail, plain}},
		{"a version of a file", ledger.Filter{Connector: "mail", ConnectorVersion: 7}, []*ledger.Mutation{mail}},
		{"a version of another file", ledger.Filter{Connector: "stripe", ConnectorVersion: 7}, nil},
		{"touched since", ledger.Filter{Touched: ledger.Touched{Since: open.CreatedAt}}, []*ledger.Mutation{closed, open, plain}},
		{"touched until", ledger.Filter{Touched: ledger.Touched{Until: plain.CreatedAt}}, []*ledger.Mutation{plain}},
		{"touched by a later sending", ledger.Filter{Touched: ledger.Touched{Since: later, Until: later.Add(time.Second)}}, []*ledger.Mutation{plain}},
		{"both", ledger.Filter{Connector: "stripe", States: []ledger.State{ledger.Applied}}, []*ledger.Mutation{plain}},
	} {
		var got, want []string
		for _, m := range allPages(t, s.Store, c.f) {
			got = append(got, m.Target)
		}
		for _, m := range c.want {
			want = append(want, m.Target)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

func testRunsAndItems(t *testing.T, s Subject) {
	update(t, s.Store, func(tx ledger.Tx) error {
		var errs []error
		for n := range 5 {
			r, i := SampleRun(fmt.Sprint("run-", n), n), SampleItem(fmt.Sprint("order-", n), n)
			r.Item = i.Item
			errs = append(errs, tx.PutRun(r), tx.PutItem(i))
		}
		return errors.Join(errs...)
	})
	var runs, items []string
	for f := (ledger.Filter{Limit: 2}); ; {
		p, err := s.Store.Runs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Items {
			runs = append(runs, r.ID)
		}
		if f.Cursor = p.Next; p.Next == "" {
			break
		}
	}
	p, err := s.Store.Items(t.Context(), ledger.Filter{Since: Epoch.Add(3 * time.Second)})
	for _, i := range p.Items {
		items = append(items, i.Item)
	}
	if want := []string{"run-4", "run-3", "run-2", "run-1", "run-0"}; !slices.Equal(runs, want) {
		t.Errorf("runs %q, want %q", runs, want)
	}
	if want := []string{"order-4", "order-3"}; err != nil || !slices.Equal(items, want) {
		t.Errorf("items %q, %v; want %q", items, err, want)
	}
	testItemsByState(t, s)
}

// testItemsByState lists what waits while that changes, a page of one at a time.
func testItemsByState(t *testing.T, s Subject) {
	moveItems(t, s, ledger.ItemNeedsAttention, "order-1", "order-3")
	moveItems(t, s, ledger.ItemDone, "order-0")
	for _, c := range []struct {
		states []ledger.ItemState
		want   []string
	}{
		{[]ledger.ItemState{ledger.ItemNeedsAttention}, []string{"order-3", "order-1"}},
		{[]ledger.ItemState{ledger.ItemDone, ledger.ItemNeedsAttention}, []string{"order-3", "order-1", "order-0"}},
		{[]ledger.ItemState{ledger.ItemSkipped}, nil},
	} {
		if got := itemsThatAre(t, s, c.states...); !slices.Equal(got, c.want) {
			t.Errorf("items that are %v: %q, want %q", c.states, got, c.want)
		}
	}
	moveItems(t, s, ledger.ItemOpen, "order-3")
	if got := itemsThatAre(t, s, ledger.ItemNeedsAttention); !slices.Equal(got, []string{"order-1"}) {
		t.Errorf("items that wait still: %q", got)
	}
}

// itemsThatAre lists the items in one of the states.
func itemsThatAre(t *testing.T, s Subject, states ...ledger.ItemState) (items []string) {
	t.Helper()
	for f := (ledger.Filter{ItemStates: states, Limit: 1}); ; {
		p, err := s.Store.Items(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range p.Items {
			items = append(items, i.Item)
		}
		if f.Cursor = p.Next; p.Next == "" {
			return items
		}
	}
}

// moveItems gives sample items another state.
func moveItems(t *testing.T, s Subject, to ledger.ItemState, names ...string) {
	t.Helper()
	update(t, s.Store, func(tx ledger.Tx) error {
		for _, name := range names {
			i, err := tx.Item(SampleItem(name, 0).Workflow, name)
			if err != nil {
				return err
			}
			i.State = to
			i.Version++
			if err := tx.PutItem(i); err != nil {
				return err
			}
		}
		return nil
	})
}

func testEvents(t *testing.T, s Subject) {
	for n := range 6 {
		update(t, s.Store, func(tx ledger.Tx) error {
			tx.Append(ledger.Event{
				At: Epoch, Actor: ledger.ActorProxy, What: fmt.Sprint(n), Mutation: fmt.Sprint("m-", n%2),
				From: ledger.InFlight, To: ledger.Applied, Evidence: "200",
			})
			return nil
		})
	}
	for _, c := range []struct {
		name     string
		mutation string
		after    uint64
		limit    int
		want     []string
	}{
		{"all", "", 0, 10, []string{"0", "1", "2", "3", "4", "5"}},
		{"after", "", 2, 2, []string{"2", "3"}},
		{"of one mutation", "m-1", 0, 10, []string{"1", "3", "5"}},
		{"of one mutation, after", "m-1", 2, 1, []string{"3"}},
		{"after the last", "", 6, 10, nil},
	} {
		events, err := s.Store.Events(t.Context(), c.mutation, c.after, c.limit)
		var got []string
		for n, e := range events {
			got = append(got, e.What)
			if c.mutation == "" && e.Seq != c.after+uint64(n)+1 {
				t.Errorf("%s: event %d has seq %d", c.name, n, e.Seq)
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func testByID(t *testing.T, s Subject) {
	a, b := SampleMutation("a", ledger.Applied, 0), SampleMutation("b", ledger.Applied, 0)
	b.Key = a.Key
	b.Key[5] ^= 1
	b.ID = b.Key.ID()
	put(t, s.Store, a, b)
	l := &ledger.Ledger{Store: s.Store}
	for _, c := range []struct {
		name, id string
		want     ledger.Key
		missing  bool
	}{
		{"whole", a.ID, a.Key, false},
		{"a prefix of both", a.ID[:12], a.Key, true},
		{"enough digits", b.ID[:14], b.Key, false},
		{"an odd number of digits", b.ID[:15], b.Key, false},
		{"no digits", "m-", a.Key, true},
		{"another", "m-ffffffffffffffffffff", a.Key, true},
		{"no id", "order-1", a.Key, true},
	} {
		m, err := l.MutationByID(t.Context(), c.id)
		switch {
		case c.missing && !errors.Is(err, ledger.ErrNotFound):
			t.Errorf("%s: %v, want ErrNotFound", c.name, err)
		case !c.missing && (err != nil || m.Key != c.want):
			t.Errorf("%s: %v, %v", c.name, m, err)
		}
	}
}

func testItemsAndRunsOfOne(t *testing.T, s Subject) {
	item := func(name string, n int) *ledger.Item {
		i := SampleItem(name, n)
		i.ID = ledger.ItemID(i.Workflow, i.Item)
		return i
	}
	update(t, s.Store, func(tx ledger.Tx) error {
		var errs []error
		for n := range 6 {
			r := SampleRun(fmt.Sprint("run-", n), n)
			r.Item = fmt.Sprint("order-", n%2)
			if n == 3 {
				r.State, r.EndedAt = ledger.RunFinished, Epoch
			}
			errs = append(errs, tx.PutRun(r))
		}
		return errors.Join(append(errs, tx.PutItem(item("order-0", 0)), tx.PutItem(item("order-1", 1)))...)
	})
	want := item("order-1", 1)
	found, err := s.Store.Items(t.Context(), ledger.Filter{ID: want.ID})
	if err != nil || len(found.Items) != 1 || found.Items[0].Item != "order-1" || found.Next != "" {
		t.Errorf("by id: %+v, %v", found, err)
	}
	for _, id := range []string{"i-00000000000000000000", "i-", "nonsense", want.ID[:9]} {
		if found, err := s.Store.Items(t.Context(), ledger.Filter{ID: id}); err != nil || len(found.Items) != 0 {
			t.Errorf("by %q: %+v, %v", id, found, err)
		}
	}
	for _, c := range []struct {
		name string
		f    ledger.Filter
		want []string
	}{
		{"of an item", ledger.Filter{Workflow: want.Workflow, Item: "order-1"}, []string{"run-5", "run-3", "run-1"}},
		{"of an item, a page", ledger.Filter{Workflow: want.Workflow, Item: "order-1", Limit: 2}, []string{"run-5", "run-3"}},
		{"of an item, not ended", ledger.Filter{Workflow: want.Workflow, Item: "order-1", Unresolved: true}, []string{"run-5", "run-1"}},
		{"of an unknown item", ledger.Filter{Workflow: want.Workflow, Item: "order-9"}, nil},
		{"not ended", ledger.Filter{Unresolved: true, Limit: 3}, []string{"run-5", "run-4", "run-2"}},
	} {
		p, err := s.Store.Runs(t.Context(), c.f)
		var got []string
		for _, r := range p.Items {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("runs %s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}
