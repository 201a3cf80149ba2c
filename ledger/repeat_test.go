package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// again is the ledger's part that answers a claim for "a" by another run of the item than
// that which made it.
type again struct {
	*world
	run *ledger.Run
	q   ledger.Claim
}

func applied(t *testing.T) *again {
	t.Helper()
	w := newWorld(t)
	first := w.open()
	w.finish("a", w.send(first, "a"), ledger.VerdictApplied)
	r := w.open(func(o *ledger.OpenRun) { o.Takeover = true })
	return &again{w, r, w.claimOf(r, "a", redelivery)}
}

// only has the run be one that may make so many mutations.
func only(m ledger.Mutations) func(*again) {
	return func(a *again) {
		a.run = a.open(func(o *ledger.OpenRun) { o.Takeover, o.Mutations = true, m })
		a.q.Run = a.run.ID
	}
}

// change changes the record.
func (a *again) change(fn func(*ledger.Mutation)) {
	a.ok(a.store.Update(a.t.Context(), func(tx ledger.Tx) error {
		m, err := tx.Mutation(a.q.Key)
		if err != nil {
			return err
		}
		fn(m)
		m.Version++
		return tx.PutMutation(m)
	}))
}

// records are run, item and record of the claim.
func (a *again) records(t *testing.T) (all [3]any) {
	t.Helper()
	a.ok(a.store.View(t.Context(), func(v ledger.View) error {
		r, _ := v.Run(a.run.ID)
		i, _ := v.Item(a.q.Workflow, a.q.Item)
		m, _ := v.Mutation(a.q.Key)
		all = [3]any{r, i, m}
		return nil
	}))
	return all
}

// durable makes what was noted durable.
func (a *again) durable() { a.ok(a.store.Update(a.t.Context(), func(ledger.Tx) error { return nil })) }

// A claim of what was applied is a replay where nothing stands against it, and refused or asked about else.
// A replay changes neither run, item nor record.
func TestAClaimOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	unmanaged := func(a *again) { a.q.Run = "" }
	for name, c := range map[string]struct {
		before   func(*again)
		decision ledger.Decision
		problem  string
		// uses says that the run notes what it was used for.
		uses bool
	}{
		"a replay":                      {decision: ledger.DecideReplay},
		"of an unmanaged scope":         {before: unmanaged, decision: ledger.DecideReplay},
		"that the rule lets be repeats": {before: func(a *again) { a.q.Redelivery, a.q.RepeatReplay = false, true }, decision: ledger.DecideReplay},
		"of another payload": {
			before:   func(a *again) { payload("other")(&a.q); a.q.Compared = ledger.ComparedWith(a.mutation("a")) },
			decision: ledger.DecideMismatch, problem: "payload-mismatch",
		},
		"of another payload, not compared":        {before: func(a *again) { payload("other")(&a.q) }, decision: ledger.DecideStale},
		"of a payload that differs in minor ways": {before: func(a *again) { a.q.Record.PayloadDigest = "other" }, decision: ledger.DecideReplay},
		"whose caller may be there still":         {before: func(a *again) { a.q.Redelivery = false }, decision: ledger.DecideReplay},
		"that was delivered": {
			before: func(a *again) { a.Deliver(a.run.ID, a.mutation("a"), ""); a.durable() }, decision: ledger.DecideRepeated, problem: "repeated",
		},
		"whose delivery is noted": {
			before: func(a *again) { a.Deliver(a.run.ID, a.mutation("a"), "") }, decision: ledger.DecideRepeated, problem: "repeated",
		},
		"whose replay is noted as delivered": {
			before: func(a *again) { a.Replayed(a.run.ID, a.mutation("a"), "", true) }, decision: ledger.DecideRepeated, problem: "repeated",
		},
		"whose replay was not delivered": {
			before: func(a *again) { a.Replayed(a.run.ID, a.mutation("a"), "", false) }, decision: ledger.DecideReplay,
		},
		"that was delivered to another run": {
			before: func(a *again) { a.Deliver("other", a.mutation("a"), "") }, decision: ledger.DecideReplay,
		},
		"of a run that ended": {
			before: func(a *again) {
				_, err := a.EndRun(a.t.Context(), a.run.ID, "", "over", "person:ada")
				a.ok(err)
			},
			problem: "run-aborted",
		},
		"of a run that was taken over": {
			before: func(a *again) { a.open(func(o *ledger.OpenRun) { o.Takeover = true }) }, problem: "run-aborted",
		},
		"of what retention forgot": {
			before:  func(a *again) { a.change(func(m *ledger.Mutation) { m.Forgotten = a.now.Wall }) },
			problem: "forgotten",
		},
		"of what has no answer": {
			before:  func(a *again) { a.change(func(m *ledger.Mutation) { m.ResultState = ledger.ResultUnknown }) },
			problem: "no-result",
		},
		"of a run whose time is over": {before: func(a *again) { a.pass(101 * time.Hour) }, problem: "run-aborted"},
		"of a stopped workflow": {
			before:   func(a *again) { a.finish("b", a.send(nil, "b"), ledger.VerdictUncertain) },
			decision: ledger.DecideBlocked, problem: "blocked",
		},
		"of a workflow that is stopped by an outcome without a record": {
			before: func(a *again) {
				m := *a.mutation("a")
				m.Key = key("b")
				a.Unrecorded().Add(&m, "", ledger.Over{})
			},
			decision: ledger.DecideBlocked, problem: "blocked",
		},
		"of an item that waits for a person": {
			before: func(a *again) { a.claim(nil, "a", payload("other")) }, problem: "item-attention",
		},
		"of another attempt":                          {before: func(a *again) { a.q.Attempt = 2 }, problem: "attempt"},
		"under another rule":                          {before: func(a *again) { a.q.Record.ConnectorHash = "other" }, decision: ledger.DecideStale},
		"of a run that may read only":                 {before: only(ledger.MutationsNone), problem: "read-only-run"},
		"that is its run's only mutation from now on": {before: only(ledger.MutationsOne), decision: ledger.DecideReplay, uses: true},
		"of what nobody made":                         {before: func(a *again) { a.q.Key = key("b") }, decision: ledger.DecideDispatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := applied(t)
			if c.before != nil {
				c.before(a)
			}
			a.Store = a.store
			was := a.records(t)
			out, err := a.Claim(t.Context(), a.q)
			if err != nil || out.Decision != c.decision || out.Problem != c.problem {
				t.Fatalf("%q, %q (%s), %v", out.Decision, out.Problem, out.Detail, err)
			}
			if is := a.records(t); c.decision == ledger.DecideReplay && !c.uses && !reflect.DeepEqual(is, was) {
				t.Errorf("a replay changed %+v to %+v", was, is)
			}
		})
	}
}

// What stops the workflow between two claims stops the second.
func TestAReplayIsDecidedAnewEachTime(t *testing.T) {
	t.Parallel()
	a := applied(t)
	if out := a.claim(a.run, "a", redelivery); out.Decision != ledger.DecideReplay {
		t.Fatalf("%q", out.Decision)
	}
	a.finish("b", a.send(nil, "b"), ledger.VerdictUncertain)
	if out := a.claim(a.run, "a", redelivery, func(q *ledger.Claim) { q.Hold = true }); out.Decision != ledger.DecideBlocked {
		t.Errorf("%q", out.Decision)
	}
}
