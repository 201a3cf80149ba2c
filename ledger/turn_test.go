package ledger_test

import (
	"testing"

	"keep-proxy/ledger"
)

func awaitsTurn(q *ledger.Claim) { q.AwaitsTurn = true }

// Only what would be sent has to wait, and waiting is nowhere recorded.
func TestWhatWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*world)
		want   ledger.Decision
	}{
		"a new mutation":  {func(*world) {}, ledger.DecideTurn},
		"one that failed": {func(w *world) { r := w.open(returns); w.finish("a", w.send(r, "a"), ledger.VerdictFailed) }, ledger.DecideTurn},
		"an applied one":  {func(w *world) { w.applied("a") }, ledger.DecideReplay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			r := w.open(func(o *ledger.OpenRun) { o.Takeover = true })
			out := w.claim(r, "a", awaitsTurn)
			if out.Decision != c.want {
				t.Fatalf("%q (%s), want %q", out.Decision, out.Detail, c.want)
			}
			if c.want != ledger.DecideTurn {
				return
			}
			if out.Dispatch != nil || out.RunRefused || out.Mutation != nil && out.Mutation.State != ledger.Failed {
				t.Errorf("waiting changed something: %+v", out)
			}
			if out := w.claim(r, "a"); out.Decision != ledger.DecideDispatch {
				t.Errorf("its turn came, and it was answered %q (%s)", out.Decision, out.Detail)
			}
		})
	}
}

// A request that waits may be given up: its item isn't taken before its turn has come.
func TestWaitingForATurnTakesNoItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	waiting, other := w.open(many), w.open(many)
	if out := w.claim(waiting, "a", of("x"), awaitsTurn); out.Decision != ledger.DecideTurn {
		t.Fatalf("%q (%s)", out.Decision, out.Detail)
	}
	if page, err := w.Items(t.Context(), ledger.Filter{}); err != nil || len(page.Items) != 0 {
		t.Fatalf("%d items, %v: waiting is recorded", len(page.Items), err)
	}
	w.finish("b", w.send(other, "b", of("x")), ledger.VerdictApplied)
	if i := w.item("x"); i.ActiveRun != other.ID {
		t.Errorf("the item is %+v", i)
	}
	if out := w.claim(waiting, "a", of("x")); out.Problem != "item-busy" || out.RunRefused {
		t.Errorf("its turn came too late: %q (%s)", out.Problem, out.Detail)
	}
	// What is replayed needs no turn, and takes its item at once.
	w.finish("c", w.send(nil, "c", of("y")), ledger.VerdictApplied)
	if out := w.claim(waiting, "c", of("y"), awaitsTurn); out.Decision != ledger.DecideReplay {
		t.Errorf("%q (%s)", out.Decision, out.Detail)
	}
	if i := w.item("y"); i.ActiveRun != waiting.ID {
		t.Errorf("the item is %+v", i)
	}
}
