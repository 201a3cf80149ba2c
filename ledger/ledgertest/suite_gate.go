package ledgertest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// standings are what the gate over the store answers from now on.
func standings(s ledger.Store) ledger.Standings {
	return ledger.New(s, ledger.Config{Now: func() ledger.Stamp { return ledger.Stamp{Wall: time.Now()} }})
}

func testBlockers(t *testing.T, s Subject) {
	at := ledger.Stamp{Wall: Epoch}
	cases := []struct {
		name    string
		m       *ledger.Mutation
		blocker bool
	}{
		{"in flight", SampleMutation("in flight", ledger.InFlight, 5), false},
		{"in flight, judged uncertain", SampleMutation("uncertain", ledger.InFlight, 4), true},
		{"in flight, owner lost", SampleMutation("lost", ledger.InFlight, 3), true},
		{"needs reconcile", SampleMutation("reconcile", ledger.NeedsReconcile, 2), true},
		{"watching", SampleMutation("watching", ledger.NeedsReconcile, 1), false},
		{"indeterminate", SampleMutation("indeterminate", ledger.Indeterminate, 0), true},
		{"applied", SampleMutation("applied", ledger.Applied, 6), false},
		{"another workflow's", SampleMutation("other", ledger.Indeterminate, 7), false},
	}
	cases[1].m.Dispatches[0].Ended, cases[1].m.Dispatches[0].Verdict = at, ledger.VerdictUncertain
	cases[2].m.Dispatches[0].Lost = true
	cases[4].m.Watching = true
	cases[7].m.Workflow = "other"
	var want []ledger.Key
	for _, c := range cases {
		put(t, s.Store, c.m)
		if c.blocker {
			want = append([]ledger.Key{c.m.Key}, want...)
		}
	}
	check := func(where string, got []ledger.Blocker, err error) {
		t.Helper()
		if err != nil || !slices.Equal(blockerKeys(got), want) {
			t.Errorf("%s: %v (%v), want %v", where, blockerKeys(got), err, want)
		}
	}
	gates := map[ledger.Store]ledger.Standings{}
	checkAll := func(store ledger.Store) {
		if gates[store] == nil {
			gates[store] = standings(store)
		}
		got, err := gates[store].BlockersOf("refunds")
		check("memory", got, err)
		viewOf(t, store, func(v ledger.View) error {
			got, err := v.Blockers("refunds")
			check("view", got, err)
			return nil
		})
		update(t, store, func(tx ledger.Tx) error {
			got, err := tx.Blockers("refunds")
			check("command", got, err)
			return nil
		})
	}
	checkAll(s.Store)
	again := s.Reopen()
	checkAll(again)
	settled := load(t, again, cases[5].m.Key)
	settled.Version++
	settled.State = ledger.Skipped
	put(t, again, settled)
	want = want[1:]
	checkAll(again)
}

func blockerKeys(bs []ledger.Blocker) []ledger.Key {
	var out []ledger.Key
	for _, b := range bs {
		out = append(out, b.Key)
	}
	return out
}

func testStanding(t *testing.T, s Subject) {
	gate := standings(s.Store)
	r := SampleRun("run-1", 0)
	m := SampleMutation("a", ledger.NeedsReconcile, 0)
	m.Policy.BlockScope = ledger.BlockItem
	update(t, s.Store, func(tx ledger.Tx) error {
		if blockers, err := tx.Blockers("refunds"); err != nil || len(blockers) != 0 {
			t.Errorf("before: %v, %v", blockers, err)
		}
		if err := errors.Join(tx.PutRun(r), tx.PutMutation(m)); err != nil {
			return err
		}
		blockers, err := tx.Blockers("refunds")
		if len(blockers) != 1 {
			t.Errorf("a command sees %v of its own, want one blocker", blockers)
		}
		return err
	})
	want := ledger.Blocker{
		Key: m.Key, ID: m.ID, Workflow: "refunds", Item: "order-1", Run: "run-1",
		Scope: ledger.BlockItem, State: ledger.NeedsReconcile,
	}
	run, blockers, err := gate.Standing("run-1")
	if err != nil || !reflect.DeepEqual(&run, r) || len(blockers) != 1 || blockers[0] != want {
		t.Errorf("Standing: %+v, %+v, %v", run, blockers, err)
	}
	ended := *r
	ended.Version, ended.State, ended.EndedAt = 2, ledger.RunAborted, time.Now()
	update(t, s.Store, func(tx ledger.Tx) error { return tx.PutRun(&ended) })
	if run, _, err := gate.Standing("run-1"); err != nil || run.State != ledger.RunAborted {
		t.Errorf("an ended run: %s, %v", run.State, err)
	}
}

func testTokens(t *testing.T, s Subject) {
	gate := standings(s.Store)
	a, b := SampleRun("run-1", 0), SampleRun("run-2", 1)
	update(t, s.Store, func(tx ledger.Tx) error { return errors.Join(tx.PutRun(a), tx.PutRun(b)) })
	for _, want := range []*ledger.Run{a, b} {
		run, _, err := gate.StandingByToken(want.TokenSHA256)
		if err != nil || run.ID != want.ID {
			t.Errorf("token of %s finds %q, %v", want.ID, run.ID, err)
		}
		viewOf(t, s.Store, func(v ledger.View) error {
			run, err := v.RunByToken(want.TokenSHA256)
			if err == nil && run.ID != want.ID {
				t.Errorf("token of %s finds %q", want.ID, run.ID)
			}
			return err
		})
	}
}

func testMemberships(t *testing.T, s Subject) {
	old, young := SampleMutation("old", ledger.Applied, 1), SampleMutation("young", ledger.Failed, 2)
	other := SampleMutation("other", ledger.Applied, 0)
	other.Item, other.Run, other.Dispatches[0].Run = "order-2", "run-2", "run-2"
	put(t, s.Store, young, old, other)
	young.Version, young.State, young.Run = 2, ledger.InFlight, "run-2"
	young.Dispatches = append(young.Dispatches, ledger.Dispatch{ID: "d2", Run: "run-2", Owner: "p"})
	put(t, s.Store, young)
	for _, reopen := range []bool{false, true} {
		store := s.Store
		if reopen {
			store = s.Reopen()
		}
		viewOf(t, store, func(v ledger.View) error {
			for _, c := range []struct {
				name string
				got  func() ([]ledger.Key, error)
				want []ledger.Key
			}{
				{"item", func() ([]ledger.Key, error) { return v.ItemMutations("refunds", "order-1") }, []ledger.Key{old.Key, young.Key}},
				{"a run keeps what another went on with", func() ([]ledger.Key, error) { return v.RunMutations("run-1") }, []ledger.Key{old.Key, young.Key}},
				{"run", func() ([]ledger.Key, error) { return v.RunMutations("run-2") }, []ledger.Key{other.Key, young.Key}},
				{"no such item", func() ([]ledger.Key, error) { return v.ItemMutations("refunds", "order") }, nil},
			} {
				if got, err := c.got(); err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%s: %v (%v), want %v", c.name, got, err, c.want)
				}
			}
			return nil
		})
	}
}

// testStandstill holds the gate of a run, which need not look at everything, against all
// that blocks its workflow.
func testStandstill(t *testing.T, s Subject) {
	gate := standings(s.Store)
	own, other, many := SampleRun("own", 0), SampleRun("other", 1), SampleRun("many", 2)
	other.Item = "order-2"
	many.Item, many.Attempt, many.Items = "", 0, ledger.ItemsMany
	runs := []*ledger.Run{own, other, many}
	update(t, s.Store, func(tx ledger.Tx) error {
		return errors.Join(tx.PutRun(own), tx.PutRun(other), tx.PutRun(many))
	})
	check := func(after string) {
		t.Helper()
		all, err := gate.BlockersOf("refunds")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			for _, item := range []string{r.Item, "order-1"} {
				run, blockers, err := gate.Standing(r.ID)
				if err != nil {
					t.Fatal(err)
				}
				if run.Many() {
					run.Item = item
				}
				got, want := ledger.Admit(run, blockers), ledger.Admit(run, all)
				if got.Open != want.Open || got.Hold != want.Hold || got.Blocker != want.Blocker {
					t.Errorf("after %s, run %s, item %q: open %t by %s, want %t by %s",
						after, r.ID, item, got.Open, got.Blocker.ID, want.Open, want.Blocker.ID)
				}
			}
		}
	}
	check("nothing")
	var stops []*ledger.Mutation
	for n, scope := range []ledger.BlockScope{ledger.BlockMutation, ledger.BlockItem, ledger.BlockItem, ledger.BlockWorkflow, "unknown", ""} {
		m := SampleMutation(fmt.Sprint("stop-", n), ledger.Indeterminate, n)
		m.Policy.BlockScope = scope
		if n == 2 {
			m.Item = "order-2"
		}
		put(t, s.Store, m)
		stops = append(stops, m)
		check(fmt.Sprintf("a stop of scope %q", scope))
	}
	for _, m := range slices.Backward(stops) {
		m.Version, m.State = 2, ledger.Applied
		put(t, s.Store, m)
		check("settling one")
	}
	standAlone(t, s, stops, check)
}

// standAlone looks at each stop alone: together one hides what another leaves open.
func standAlone(t *testing.T, s Subject, stops []*ledger.Mutation, check func(after string)) {
	t.Helper()
	for _, m := range stops {
		for _, state := range []ledger.State{ledger.Indeterminate, ledger.Applied} {
			m.Version, m.State = m.Version+1, state
			put(t, s.Store, m)
			check(fmt.Sprintf("a stop of scope %q alone, %s", m.Policy.BlockScope, state))
		}
	}
}

func testRunning(t *testing.T, s Subject) {
	want := func(when string, gate ledger.Standings, ids ...string) {
		t.Helper()
		list, err := gate.Running()
		var got []string
		for _, r := range list {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, ids) {
			t.Errorf("%s: %v, %v, want %v", when, got, err, ids)
		}
	}
	gate := standings(s.Store)
	want("an empty ledger", gate)
	update(t, s.Store, func(tx ledger.Tx) error {
		return errors.Join(tx.PutRun(SampleRun("run-2", 0)), tx.PutRun(SampleRun("run-1", 1)), tx.PutRun(SampleRun("run-3", 2)))
	})
	want("all of them", gate, "run-1", "run-2", "run-3")
	failing, ended := SampleRun("run-1", 1), SampleRun("run-2", 0)
	failing.Version, failing.State = 2, ledger.RunFailing
	ended.Version, ended.State, ended.EndedAt = 2, ledger.RunFinished, time.Now()
	update(t, s.Store, func(tx ledger.Tx) error { return errors.Join(tx.PutRun(failing), tx.PutRun(ended)) })
	want("one has ended", gate, "run-1", "run-3")
	want("after a restart", standings(s.Reopen()), "run-1", "run-3")
}

// testWatch changes what the gate answers by, in each way that may refuse what it admitted.
func testWatch(t *testing.T, s Subject) {
	told := make(chan struct{}, 1)
	stop := standings(s.Store).Watch(told)
	want := func(what string, change func()) {
		t.Helper()
		select {
		case <-told: // It may be told more often.
		default:
		}
		change()
		select {
		case <-told:
		default:
			t.Errorf("%s: nobody was told", what)
		}
	}
	run, m := SampleRun("run-1", 0), SampleMutation("a", ledger.NeedsReconcile, 0)
	update(t, s.Store, func(tx ledger.Tx) error { return tx.PutRun(run) })
	putRun := func(change func(r *ledger.Run)) func() {
		return func() {
			run.Version++
			change(run)
			update(t, s.Store, func(tx ledger.Tx) error { return tx.PutRun(run) })
		}
	}
	putState := func(state ledger.State) func() {
		return func() {
			m.State = state
			put(t, s.Store, m)
			m.Version++
		}
	}
	want("a mutation stops its workflow", putState(ledger.NeedsReconcile))
	want("it stops it otherwise", putState(ledger.Indeterminate))
	want("it stops nothing more", putState(ledger.Skipped))
	want("other credentials", putRun(func(r *ledger.Run) { r.TokenSHA256 = hash("another token") }))
	want("another item", putRun(func(r *ledger.Run) { r.Item = "order-2" }))
	want("another workflow", putRun(func(r *ledger.Run) { r.Workflow = "another" }))
	want("a run is being finished", putRun(func(r *ledger.Run) { r.Closing = ledger.ClosingDone }))
	want("a run has ended", putRun(func(r *ledger.Run) { r.State, r.EndedAt = ledger.RunAborted, time.Now() }))
	want("it was only noted that a run has ended", func() {
		noted := SampleRun("run-2", 1)
		noted.State, noted.EndedAt = ledger.RunFinished, time.Now()
		s.Store.Note(func(tx ledger.Tx) error { return tx.PutRun(noted) })
		putState(ledger.Skipped)()
	})
	// Who doesn't read keeps nobody waiting.
	putState(ledger.Indeterminate)()
	putState(ledger.Skipped)()
	stop()
	<-told
	putState(ledger.Indeterminate)()
	select {
	case <-told:
		t.Error("who doesn't watch any more was told")
	default:
	}
}

// testFollow follows the store from the middle on.
func testFollow(t *testing.T, s Subject) {
	stop, settled := SampleMutation("stop", ledger.Indeterminate, 0), SampleMutation("settled", ledger.Applied, 1)
	going, over := SampleRun("going", 0), SampleRun("over", 1)
	over.State, over.EndedAt = ledger.RunFinished, time.Now()
	put(t, s.Store, stop, settled)
	update(t, s.Store, func(tx ledger.Tx) error { return errors.Join(tx.PutRun(going), tx.PutRun(over)) })
	var mu sync.Mutex
	var told []string
	err := s.Store.Follow(func(c ledger.Changes) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range c.Runs {
			told = append(told, fmt.Sprint(r.ID, " ", r.Version))
		}
		for _, m := range c.Mutations {
			told = append(told, fmt.Sprint(m.ID, " ", m.Version))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, want ...string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(told, want) {
			t.Errorf("%s: told of %q, want %q", when, told, want)
		}
		told = nil
	}
	want("at the start", "going 1", stop.ID+" 1")
	for n := range int64(3) {
		stop.Version = n + 2
		put(t, s.Store, stop)
		want("once a command is answered", fmt.Sprint(stop.ID, " ", n+2))
	}
	refused := errors.New("refused")
	_ = s.Store.Update(t.Context(), func(tx ledger.Tx) error { return errors.Join(tx.PutRun(SampleRun("refused", 2)), refused) })
	want("after a command that changed nothing")
	s.Store.Note(func(tx ledger.Tx) error {
		going.Version = 2
		return tx.PutRun(going)
	})
	settled.Version = 2
	put(t, s.Store, settled)
	want("after a note and a command", "going 2", settled.ID+" 2")
}
