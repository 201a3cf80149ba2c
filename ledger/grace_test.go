package ledger_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestTheGrace(t *testing.T) {
	t.Parallel()
	failing := func(t *testing.T) (*world, *ledger.Run) {
		t.Helper()
		w := newWorld(t)
		r := w.open()
		w.finish("a", w.send(r, "a"), ledger.VerdictFailed, unauthorized)
		w.stands(r, ledger.RunFailing, verdict.Permission)
		return w, r
	}
	t.Run("success restores the run", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		w.finish("a", w.send(r, "a"), ledger.VerdictApplied)
		if run := w.stands(r, ledger.RunRunning, ""); !reflect.ValueOf(run.Failing).IsZero() {
			t.Errorf("the grace left %+v", run)
		}
		w.escalated("a", "")
		w.send(r, "b")
	})
	t.Run("finished as failed, it is aborted for what it failed by", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		why := w.run(r.ID).Reason
		if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeFailed, false); err != nil {
			t.Fatal(err)
		}
		if run := w.stands(r, ledger.RunAborted, verdict.Permission); run.Reason != why || run.Cause != w.mutation("a").ID {
			t.Errorf("it says %q of %s, want %q", run.Reason, run.Cause, why)
		}
		if i := w.item("i"); i.State != ledger.ItemFailed || i.Reason != why {
			t.Errorf("the item is %s: %s", i.State, i.Reason)
		}
		// Its grace is over, too, and didn't heal it.
		w.escalated("a", ledger.EscalationPermission)
		if run, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeFailed, false); err != nil || run.State != ledger.RunAborted || run.Reason != why {
			t.Errorf("finished again: %+v, %v", run, err)
		}
		if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false); !errors.Is(err, ledger.ErrRunUnfinished) {
			t.Errorf("finished as done after that: %v", err)
		}
	})
	t.Run("a replayed success restores the run", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		w.finish("a", w.send(nil, "a"), ledger.VerdictApplied)
		w.stands(r, ledger.RunFailing, verdict.Permission)
		if out := w.claim(r, "a"); out.Decision != ledger.DecideReplay {
			t.Errorf("%q", out.Decision)
		}
		w.stands(r, ledger.RunRunning, "")
	})
	t.Run("another mutation's success doesn't restore the run", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open()
		a, b := w.send(r, "a"), w.send(r, "b")
		w.finish("a", a, ledger.VerdictFailed)
		w.finish("b", b, ledger.VerdictApplied)
		w.stands(r, ledger.RunFailing, verdict.Transient)
		if out := w.claim(r, "c"); out.Problem != "run-failing" || out.Wait != time.Second {
			t.Errorf("a new mutation after that: %q %q, after %v", out.Decision, out.Problem, out.Wait)
		}
	})
	t.Run("only the same key and payload may claim", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		for name, out := range map[string]ledger.Claimed{
			"another mutation": w.claim(r, "b"), "another payload": w.claim(r, "a", payload("other")),
		} {
			if out.Problem != "run-failing" || out.RunRefused || !strings.Contains(out.Detail, "because of a test") {
				t.Errorf("%s: %q (%s), run refused %v", name, out.Problem, out.Detail, out.RunRefused)
			}
		}
		if a := w.Gate(r.ID); !a.Open {
			t.Errorf("reads are refused: %+v", a)
		}
		w.send(r, "a")
	})
	t.Run("five tries, then it is over", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		for range 4 {
			w.finish("a", w.send(r, "a"), ledger.VerdictFailed, unauthorized)
			w.stands(r, ledger.RunFailing, verdict.Permission)
		}
		w.finish("a", w.send(r, "a"), ledger.VerdictFailed, unauthorized)
		w.stands(r, ledger.RunAborted, verdict.Permission)
		w.escalated("a", ledger.EscalationPermission)
	})
	t.Run("60 seconds, then it is over, at the next claim", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		w.pass(60 * time.Second)
		if out := w.claim(r, "a"); out.Problem != "run-aborted" || !out.RunRefused || out.Mutation.Version != w.mutation("a").Version {
			t.Errorf("%q, run refused %v", out.Problem, out.RunRefused)
		}
		w.stands(r, ledger.RunAborted, verdict.Permission)
		w.escalated("a", ledger.EscalationPermission)
		if i := w.item("i"); i.State != ledger.ItemFailed {
			t.Errorf("the item is %s", i.State)
		}
	})
	t.Run("60 seconds, then it is over, without a claim", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		w.pass(60*time.Second - 1)
		if n, err := w.ExpireRuns(t.Context()); n != 0 || err != nil {
			t.Errorf("too early: %d runs, %v", n, err)
		}
		w.pass(1)
		if n, err := w.ExpireRuns(t.Context()); n != 1 || err != nil {
			t.Errorf("%d runs, %v", n, err)
		}
		w.stands(r, ledger.RunAborted, verdict.Permission)
		w.escalated("a", ledger.EscalationPermission)
	})
	t.Run("further failures don't extend it", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		w.pass(59 * time.Second)
		d := w.send(r, "a")
		w.pass(2 * time.Second)
		w.finish("a", d, ledger.VerdictFailed, unauthorized)
		w.stands(r, ledger.RunAborted, verdict.Permission)
	})
	t.Run("another class ends it", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		w.finish("a", w.send(r, "a"), ledger.VerdictFailed, class(verdict.Logic))
		w.stands(r, ledger.RunAborted, verdict.Logic)
	})
	for how, stop := range map[string]func(w *world, r *ledger.Run) error{
		"a stop": func(w *world, r *ledger.Run) error {
			_, err := w.RefuseRun(w.t.Context(), r.ID, "it was stopped", "m-x")
			return err
		},
		"a person": func(w *world, r *ledger.Run) error {
			_, err := w.EndRun(w.t.Context(), r.ID, verdict.Transient, "stopped", "person:ada")
			return err
		},
		"a request in a stopped scope": func(w *world, r *ledger.Run) error {
			d := w.send(w.open(item("other")), "other")
			w.finish("other", d, ledger.VerdictUncertain)
			if out := w.claim(r, "a"); out.Decision != ledger.DecideBlocked || out.Mutation.Version != w.mutation("a").Version {
				w.t.Errorf("%q %q, version %d", out.Decision, out.Problem, out.Mutation.Version)
			}
			return nil
		},
		"another run": func(w *world, _ *ledger.Run) error {
			w.open(func(o *ledger.OpenRun) { o.Takeover = true })
			return nil
		},
	} {
		t.Run("a person is asked where "+how+" ends it", func(t *testing.T) {
			t.Parallel()
			w, r := failing(t)
			w.ok(stop(w, r))
			w.stands(r, ledger.RunAborted, verdict.Transient)
			w.escalated("a", ledger.EscalationPermission)
		})
	}
	t.Run("a run that is ended in it ends after a definite failure", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		_, err := w.EndRun(t.Context(), r.ID, verdict.Transient, "stopped", "person:ada")
		w.ok(err)
		if i := w.item("i"); i.State != ledger.ItemFailed {
			t.Errorf("the item is %s", i.State)
		}
	})
}
