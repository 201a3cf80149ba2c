package ledger_test

import (
	"errors"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestJoin(t *testing.T) {
	t.Parallel()
	one := func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsOne }
	applied := func(w *world, _ *ledger.Run) { w.finish("a", w.send(nil, "a"), ledger.VerdictApplied) }
	for _, c := range []struct {
		name    string
		open    func(*ledger.OpenRun)
		before  func(*world, *ledger.Run)
		want    ledger.Decision
		problem string
	}{
		{"an answer", nil, applied, ledger.DecideJoin, ""},
		{"a failure, which is not sent again", nil,
			func(w *world, _ *ledger.Run) { w.finish("a", w.send(nil, "a"), ledger.VerdictFailed) }, ledger.DecideJoin, ""},
		{"what is in flight", nil, func(w *world, _ *ledger.Run) { w.send(nil, "a") }, ledger.DecideJoin, ""},
		{"what was delivered before", nil, func(w *world, r *ledger.Run) {
			applied(w, r)
			w.Deliver(r.ID, w.mutation("a"), "")
		}, ledger.DecideRepeated, "repeated"},
		{"a 202 that was delivered before", nil, func(w *world, r *ledger.Run) {
			out := w.finish("a", w.send(nil, "a", watched), ledger.VerdictAccepted, status202)
			w.Deliver(r.ID, out.Mutation, "")
		}, ledger.DecideRepeated, "repeated"},
		{"by a run that may read only", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsNone }, applied,
			ledger.DecideRefused, "read-only-run"},
		{"by a run that has made its one mutation", one, func(w *world, r *ledger.Run) {
			applied(w, r)
			w.finish("b", w.send(r, "b"), ledger.VerdictApplied)
		}, ledger.DecideRefused, "one-mutation"},
		{"by a run that is failing on another", nil, func(w *world, r *ledger.Run) {
			applied(w, r)
			w.finish("b", w.send(r, "b"), ledger.VerdictFailed)
		}, ledger.DecideRefused, "run-failing"},
		{"by a run that is over", nil, func(w *world, r *ledger.Run) {
			applied(w, r)
			_, err := w.EndRun(w.t.Context(), r.ID, verdict.Transient, "enough", "ada")
			w.ok(err)
		}, ledger.DecideRefused, "run-aborted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			change := []func(*ledger.OpenRun){}
			if c.open != nil {
				change = append(change, c.open)
			}
			r := w.open(change...)
			c.before(w, r)
			sent := len(w.mutation("a").Dispatches)
			out, err := w.Join(t.Context(), w.claimOf(r, "a"))
			w.ok(err)
			if out.Decision != c.want || out.Problem != c.problem {
				t.Errorf("%q %q (%s), want %q %q", out.Decision, out.Problem, out.Detail, c.want, c.problem)
			}
			if got := len(w.mutation("a").Dispatches); got != sent {
				t.Errorf("%d dispatches, want %d", got, sent)
			}
		})
	}
	t.Run("counts as the run's one mutation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(one)
		applied(w, r)
		_, err := w.Join(t.Context(), w.claimOf(r, "a"))
		w.ok(err)
		if out := w.claim(r, "b"); out.Problem != "one-mutation" {
			t.Errorf("another mutation: %q %q", out.Decision, out.Problem)
		}
	})
	t.Run("takes the item of a run of many", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r, late := w.open(many), w.open(many)
		w.send(nil, "a", of("x"))
		q := w.claimOf(r, "a")
		of("x")(&q)
		out, err := w.Join(t.Context(), q)
		w.ok(err)
		if i := w.item("x"); out.Decision != ledger.DecideJoin || i.ActiveRun != r.ID {
			t.Errorf("%q %q, item %+v", out.Decision, out.Problem, i)
		}
		q = w.claimOf(late, "a")
		of("x")(&q)
		out, err = w.Join(t.Context(), q)
		w.ok(err)
		if out.Problem != "item-busy" || out.RunRefused {
			t.Errorf("a third: %q (%s)", out.Problem, out.Detail)
		}
		w.stands(late, ledger.RunRunning, "")
	})
	t.Run("nothing to wait for", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open()
		if _, err := w.Join(t.Context(), w.claimOf(r, "a")); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}

// Whoever waited gets no answer where two records fit: it may be the other one's.
func TestNobodyJoinsOneOfTwoRecordsThatFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", version("v1"))
	w.applied("b", version("v2", under("v1", "")), allowDrift)
	r := w.open()
	out, err := w.Join(t.Context(), w.claimOf(r, "b", version("v2", under("v1", "a")), allowDrift))
	w.ok(err)
	if out.Decision != ledger.DecideRefused || out.Problem != "ambiguous-record" || !out.RunRefused {
		t.Errorf("%q %q (%s)", out.Decision, out.Problem, out.Detail)
	}
	w.escalated("b", ledger.EscalationAmbiguous)
}
