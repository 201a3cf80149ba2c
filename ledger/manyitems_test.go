package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func many(o *ledger.OpenRun) { o.Items, o.Item = ledger.ItemsMany, "" }

// of makes a claim one of an item.
func of(item string) func(*ledger.Claim) {
	return func(q *ledger.Claim) { q.Item, q.Attempt, q.Record.Item, q.Record.Attempt = item, 1, item, 1 }
}

func TestARunOfManyItemsTakesEachAtItsFirstClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(many)
	if r.Item != "" || r.Attempt != 0 {
		t.Errorf("the run is %+v", r)
	}
	w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
	w.finish("b", w.send(r, "b", of("y")), ledger.VerdictApplied)
	for _, name := range []string{"x", "y"} {
		if i := w.item(name); i.ActiveRun != r.ID || i.State != ledger.ItemOpen {
			t.Errorf("item %s: %+v", name, i)
		}
	}
	if _, err := w.OpenRun(t.Context(), ledger.OpenRun{Workflow: "w", Item: "x"}); !errors.Is(err, ledger.ErrItemBusy) {
		t.Errorf("another run of an item that was taken: %v", err)
	}
	done, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
	w.ok(err)
	if done.State != ledger.RunFinished || w.item("x").State != ledger.ItemDone || w.item("y").State != ledger.ItemDone {
		t.Errorf("run %s, items %s and %s", done.State, w.item("x").State, w.item("y").State)
	}
	if again, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false); err != nil || again.Version != done.Version {
		t.Errorf("finishing again: %v", err)
	}
}

// The end of the run before it changes the very mutation that is claimed.
func TestARunOfManyItemsTakesAnItemWhoseGraceIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.open(item("x"))
	w.finish("a", w.send(before, "a", of("x")), ledger.VerdictFailed, unauthorized)
	w.pass(time.Hour)
	r := w.open(many)
	w.send(r, "a", of("x"))
	if m := w.is("a", ledger.InFlight); m.Current().Run != r.ID {
		t.Errorf("sent by %s", m.Current().Run)
	}
	if i := w.item("x"); i.ActiveRun != r.ID || i.State != ledger.ItemOpen {
		t.Errorf("the item: %+v", i)
	}
}

func TestAnItemThatRefusesDoesNotEndARunOfMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	busy := w.open(item("busy"))
	_, err := w.FinishRun(t.Context(), w.open(item("done")).ID, ledger.OutcomeDone, false)
	w.ok(err)
	attention := w.open(item("attention"))
	w.finish("p", w.send(attention, "p", of("attention")), ledger.VerdictApplied)
	w.claim(w.open(item("attention"), takeover), "p", of("attention"), payload("other"))
	r := w.open(many)
	for name, problem := range map[string]string{"busy": "item-busy", "done": "item-done", "attention": "item-attention"} {
		out := w.claim(r, "m"+name, of(name))
		if out.Problem != problem || out.RunRefused || out.Decision != ledger.DecideRefused {
			t.Errorf("%s: %q (%s)", name, out.Problem, out.Detail)
		}
	}
	w.stands(r, ledger.RunRunning, "")
	w.pass(101 * time.Hour)
	_ = busy
	fresh := w.open(many)
	w.send(fresh, "mbusy", of("busy"))
	if i := w.item("busy"); i.ActiveRun != fresh.ID {
		t.Errorf("the item of an overdue run is %+v", i)
	}
}

func TestHowARunOfManyItemsEnds(t *testing.T) {
	t.Parallel()
	t.Run("a definite failure fails its own item alone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(many)
		w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
		w.finish("b", w.send(r, "b", of("y")), ledger.VerdictFailed, class(verdict.Logic))
		w.stands(r, ledger.RunAborted, verdict.Logic)
		if x, y := w.item("x"), w.item("y"); x.State != ledger.ItemOpen || y.State != ledger.ItemFailed || y.Cause != key("b").ID() {
			t.Errorf("items %+v and %+v", x, y)
		}
		next := w.open(many)
		if out := w.claim(next, "a", of("x")); out.Decision != ledger.DecideReplay {
			t.Errorf("the next run gets %q", out.Decision)
		}
	})
	t.Run("an unknown keeps it from being done", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(many)
		w.send(r, "a", of("x"))
		if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false); !errors.Is(err, ledger.ErrRunUnfinished) {
			t.Errorf("finished: %v", err)
		}
		if run := w.stands(r, ledger.RunRunning, ""); run.Closing != "" {
			t.Error("a run that could not be finished claims nothing any more")
		}
	})
	t.Run("its items stay open if they are to", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(many)
		w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
		_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, true)
		w.ok(err)
		if x := w.item("x"); x.State != ledger.ItemOpen || x.ActiveRun != "" {
			t.Errorf("item %+v", x)
		}
	})
	t.Run("an item that came to wait for a person goes on waiting", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(many)
		w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
		w.finish("b", w.send(r, "b", of("x")), ledger.VerdictApplied)
		if out := w.claim(nil, "a", of("x"), payload("other")); out.Decision != ledger.DecideMismatch {
			t.Fatalf("%q (%s)", out.Decision, out.Detail)
		}
		_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
		w.ok(err)
		if x := w.item("x"); x.State != ledger.ItemNeedsAttention || x.ActiveRun != "" || x.Cause != key("a").ID() {
			t.Errorf("item %+v", x)
		}
	})
	t.Run("an item with somebody else's sending stays open", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(many)
		w.finish("a", w.send(r, "a", of("x")), ledger.VerdictApplied)
		w.send(nil, "b", of("x"))
		_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
		w.ok(err)
		if x := w.item("x"); x.State != ledger.ItemOpen {
			t.Errorf("item %+v", x)
		}
	})
}

// A 202 that an earlier run got, and this one was given again, is waited for.
func TestARunOfManyItemsWaitsForWhatItWasGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open(many)
	d := w.send(first, "a", of("x"), func(q *ledger.Claim) { q.Record.Policy.WatchMax = time.Hour })
	w.finish("a", d, ledger.VerdictAccepted, func(f *ledger.EndDispatch) { f.Result = &ledger.Result{Status: 202} })
	_, err := w.EndRun(t.Context(), first.ID, verdict.Transient, "over", "person:ada")
	w.ok(err)
	second := w.open(many)
	if out := w.claim(second, "a", of("x")); out.Decision != ledger.DecideReplay {
		t.Fatalf("the next run gets %q", out.Decision)
	}
	w.Replayed(second.ID, w.mutation("a"), "", true)
	if _, err := w.FinishRun(t.Context(), second.ID, ledger.OutcomeDone, true); !errors.Is(err, ledger.ErrRunUnfinished) {
		t.Errorf("finished before it ended: %v", err)
	}
	w.see("a", ledger.SeenApplied)
	_, err = w.FinishRun(t.Context(), second.ID, ledger.OutcomeDone, true)
	w.ok(err)
}

func TestFinishingManyItemsGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(many)
	const n = 250
	for i := range n {
		name := fmt.Sprint("m", i)
		w.finish(name, w.send(r, name, of(fmt.Sprint("i", i))), ledger.VerdictApplied)
	}
	w.stopAfter = 4
	if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false); !errors.Is(err, errStopped) {
		t.Fatalf("the crash in the middle: %v", err)
	}
	w.stopAfter = 0
	w.restart()
	run := w.stands(r, ledger.RunRunning, "")
	if run.Closing == "" {
		t.Fatal("the crash left no trace")
	}
	if a := w.Gate(r.ID); a.Open || a.Problem != "run-aborted" {
		t.Errorf("a request meanwhile: %+v", a)
	}
	if out := w.claim(r, "late", of("late")); out.Problem != "run-aborted" {
		t.Errorf("a claim meanwhile: %q", out.Problem)
	}
	ended, err := w.ExpireRuns(t.Context())
	if ended != 1 || err != nil {
		t.Errorf("%d runs, %v", ended, err)
	}
	w.stands(r, ledger.RunFinished, "")
	for i := range n {
		if it := w.item(fmt.Sprint("i", i)); it.State != ledger.ItemDone || it.ActiveRun != "" {
			t.Errorf("item %d: %+v", i, it)
		}
	}
}

func TestTheGateLooksAtTheRequestsItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(many, func(o *ledger.OpenRun) { o.TokenSHA256 = "t" })
	one := w.open(item("x"))
	w.finish("a", w.send(one, "a", of("x"), func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockItem }), ledger.VerdictUncertain)
	if a := w.GateToken("t", "x"); a.Open || a.Problem != "blocked" {
		t.Errorf("the stopped item: %+v", a)
	}
	for _, name := range []string{"y", ""} {
		if a := w.GateToken("t", name); !a.Open {
			t.Errorf("item %q: %+v", name, a)
		}
	}
	w.stands(r, ledger.RunRunning, "")
}

func TestAnItemIsFailedByAMutationOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ends func(*world, *ledger.Run)
	}{
		{"the world no longer agrees with what it did", func(w *world, before *ledger.Run) {
			w.finish("a", w.send(before, "a", of("x")), ledger.VerdictApplied)
			_, err := w.EndRun(w.t.Context(), before.ID, verdict.Transient, "ended", "ada")
			w.ok(err)
			r := w.open(many)
			w.claim(r, "a", of("x"))
			_, _, err = w.Verified(w.t.Context(), ledger.Verified{
				Key: key("a"), Run: r.ID, Mode: ledger.VerifyStrict, Said: ledger.SaidDisagrees, Reason: "gone",
			})
			w.ok(err)
		}},
		{"its sending was joined, and failed", func(w *world, before *ledger.Run) {
			d := w.send(before, "a", of("x"))
			_, err := w.EndRun(w.t.Context(), before.ID, verdict.Transient, "ended", "ada")
			w.ok(err)
			r := w.open(many)
			w.claim(r, "a", of("x"))
			w.finish("a", d, ledger.VerdictFailed, class(verdict.Logic))
			_, err = w.Join(w.t.Context(), w.claimOf(r, "a", of("x")))
			w.ok(err)
			_, err = w.FailRun(w.t.Context(), r.ID, ledger.Failure{Key: key("a"), Digest: "payload", Class: verdict.Logic, Reason: "no"})
			w.ok(err)
		}},
		{"a stop ends its run in the grace after it", func(w *world, before *ledger.Run) {
			_, err := w.EndRun(w.t.Context(), before.ID, verdict.Transient, "ended", "ada")
			w.ok(err)
			r := w.open(many)
			w.finish("a", w.send(r, "a", of("x")), ledger.VerdictFailed, unauthorized)
			_, err = w.RefuseRun(w.t.Context(), r.ID, "refused because of a stop", "m-other")
			w.ok(err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.ends(w, w.open(item("x")))
			if i := w.item("x"); i.State != ledger.ItemFailed || i.Cause != key("a").ID() || i.ActiveRun != "" {
				t.Errorf("the item is %+v", i)
			}
		})
	}
}

// A claim that is to be made again changes nothing: a run of many items doesn't have the item yet.
func TestAStaleClaimChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open(item("x"))
	w.finish("a", w.send(first, "a", of("x")), ledger.VerdictApplied)
	_, err := w.FinishRun(t.Context(), first.ID, ledger.OutcomeFailed, false)
	w.ok(err)
	before := w.item("x")
	r := w.open(many)
	if out := w.claimBare(w.claimOf(r, "a", of("x"), payload("other"))); out.Decision != ledger.DecideStale {
		t.Fatalf("%s %s (%s), want stale", out.Decision, out.Problem, out.Detail)
	}
	if after := w.item("x"); after.Version != before.Version || after.ActiveRun == r.ID {
		t.Errorf("a stale claim took the item: %+v", after)
	}
}
