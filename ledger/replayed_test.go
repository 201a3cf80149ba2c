package ledger_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// counting is a store that counts commands, and shows nothing if it is blind.
type counting struct {
	ledger.Store
	updates int
	blind   bool
}

func (s *counting) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	s.updates++
	return s.Store.Update(ctx, fn)
}

func (s *counting) See(scope ledger.Scope, k ledger.Key) (ledger.Sight, bool) {
	if s.blind {
		return ledger.Sight{}, false
	}
	return s.Store.See(scope, k)
}

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

// durable makes what was noted durable.
func (a *again) durable() { a.ok(a.store.Update(a.t.Context(), func(ledger.Tx) error { return nil })) }

// A replay that changes nothing is answered without a command, and any other claim by one, with
// the answer that it would have had.
func TestAReplayThatChangesNothingIsNoCommand(t *testing.T) {
	t.Parallel()
	unmanaged := func(a *again) { a.q.Run = "" }
	for name, c := range map[string]struct {
		before   func(*again)
		decision ledger.Decision
		problem  string
		command  bool
	}{
		"a replay":                      {decision: ledger.DecideReplay},
		"of an unmanaged scope":         {before: unmanaged, decision: ledger.DecideReplay},
		"that the rule lets be repeats": {before: func(a *again) { a.q.Redelivery, a.q.RepeatReplay = false, true }, decision: ledger.DecideReplay},
		"of another payload": {
			before: func(a *again) { payload("other")(&a.q) }, decision: ledger.DecideMismatch, problem: "payload-mismatch", command: true,
		},
		"of a payload that differs in minor ways": {before: func(a *again) { a.q.Record.PayloadDigest = "other" }, decision: ledger.DecideReplay},
		"whose caller may be there still":         {before: func(a *again) { a.q.Redelivery = false }, decision: ledger.DecideReplay, command: true},
		"that was delivered": {
			before: func(a *again) { a.Deliver(a.run.ID, a.mutation("a"), ""); a.durable() }, decision: ledger.DecideRepeated, problem: "repeated", command: true,
		},
		"whose delivery is noted": {
			before: func(a *again) { a.Deliver(a.run.ID, a.mutation("a"), "") }, decision: ledger.DecideRepeated, problem: "repeated", command: true,
		},
		"whose replay is noted as delivered": {
			before: func(a *again) { a.Replayed(a.run.ID, a.mutation("a"), "", true) }, decision: ledger.DecideRepeated, problem: "repeated", command: true,
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
			problem: "run-aborted", command: true,
		},
		"of a run that was taken over": {
			before: func(a *again) { a.open(func(o *ledger.OpenRun) { o.Takeover = true }) }, problem: "run-aborted", command: true,
		},
		"of what retention forgot": {
			before:  func(a *again) { a.change(func(m *ledger.Mutation) { m.Forgotten = a.now.Wall }) },
			problem: "forgotten", command: true,
		},
		"of what has no answer": {
			before:  func(a *again) { a.change(func(m *ledger.Mutation) { m.ResultState = ledger.ResultUnknown }) },
			problem: "no-result", command: true,
		},
		"of a run whose time is over": {before: func(a *again) { a.pass(101 * time.Hour) }, problem: "run-aborted", command: true},
		"of a stopped workflow": {
			before:   func(a *again) { a.finish("b", a.send(nil, "b"), ledger.VerdictUncertain) },
			decision: ledger.DecideBlocked, problem: "blocked", command: true,
		},
		"of a workflow that is stopped by an outcome without a record": {
			before: func(a *again) {
				m := *a.mutation("a")
				m.Key = key("b")
				a.Unrecorded().Add(&m, "", ledger.Over{})
			},
			decision: ledger.DecideBlocked, problem: "blocked", command: true,
		},
		"of an item that waits for a person": {
			before: func(a *again) { a.claim(nil, "a", payload("other")) }, problem: "item-attention", command: true,
		},
		"of another attempt":                          {before: func(a *again) { a.q.Attempt = 2 }, problem: "attempt", command: true},
		"under another rule":                          {before: func(a *again) { a.q.Record.ConnectorHash, a.q.CanDerive = "other", true }, decision: ledger.DecideRules, command: true},
		"of a run that may read only":                 {before: only(ledger.MutationsNone), problem: "read-only-run", command: true},
		"that is its run's only mutation from now on": {before: only(ledger.MutationsOne), decision: ledger.DecideReplay, command: true},
		"of what nobody made":                         {before: func(a *again) { a.q.Key = key("b") }, decision: ledger.DecideDispatch, command: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first ledger.Claimed
			for _, blind := range []bool{true, false} {
				a := applied(t)
				if c.before != nil {
					c.before(a)
				}
				s := &counting{Store: a.store, blind: blind}
				a.Store = s
				out, err := a.Claim(t.Context(), a.q)
				if err != nil || out.Decision != c.decision || out.Problem != c.problem {
					t.Fatalf("blind %t: %q, %q (%s), %v", blind, out.Decision, out.Problem, out.Detail, err)
				}
				if command := s.updates > 0; command != (c.command || blind) {
					t.Errorf("blind %t: a command: %t", blind, command)
				}
				if blind {
					first = out
				} else if !reflect.DeepEqual(out, first) {
					t.Errorf("%+v, by a command %+v", out, first)
				}
			}
		})
	}
}

// What ends a run or changes the record in between is for the command, also where the last claim
// was answered without one.
func TestWhatWasSeenOnceIsLookedAtAnew(t *testing.T) {
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

// Who claims nothing but new mutations isn't made to look for each of them twice, and a script
// that is run again finds out soon that it is worth it.
func TestWhatIsNeverFoundIsSeldomLookedFor(t *testing.T) {
	t.Parallel()
	a := applied(t)
	seen := &seeing{Store: a.Store}
	a.Store = seen
	const many = 400
	for n := range many {
		a.send(a.run, fmt.Sprint("new ", n))
	}
	if seen.looks > many/2 {
		t.Errorf("of %d new mutations %d were looked for before their commands", many, seen.looks)
	}
	replays := func() {
		for range 8 {
			if out := a.claim(a.run, "a", redelivery); out.Decision != ledger.DecideReplay {
				t.Fatalf("%q", out.Decision)
			}
		}
	}
	replays()
	seen.looks = 0
	if replays(); seen.looks != 8 {
		t.Errorf("of 8 replays after others, %d were looked for", seen.looks)
	}
}

// seeing is a store that counts what is looked for.
type seeing struct {
	ledger.Store
	looks int
}

func (s *seeing) See(scope ledger.Scope, k ledger.Key) (ledger.Sight, bool) {
	s.looks++
	return s.Store.See(scope, k)
}
