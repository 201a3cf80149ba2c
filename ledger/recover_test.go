package ledger_test

import (
	"errors"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestRecoveryMovesWhatLostItsOwner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		until  func(w *world, r *ledger.Run)
		state  ledger.State
		counts ledger.RecoverCounts
		run    ledger.RunState
		class  verdict.Class
	}{
		{"being sent, with a reconciler", func(w *world, r *ledger.Run) { w.send(r, "a") },
			ledger.NeedsReconcile, ledger.RecoverCounts{NeedsReconcile: 1}, ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"being sent, no reconciler", func(w *world, r *ledger.Run) { w.send(r, "a", noReconciler) },
			ledger.Indeterminate, ledger.RecoverCounts{Indeterminate: 1}, ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"committed, with a reconciler", func(w *world, r *ledger.Run) { w.send(r, "a"); head(w, "a") },
			ledger.NeedsReconcile, ledger.RecoverCounts{NeedsReconcile: 1}, ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"committed, no reconciler", func(w *world, r *ledger.Run) { w.send(r, "a", noReconciler); head(w, "a") },
			ledger.Applied, ledger.RecoverCounts{Applied: 1}, ledger.RunRunning, ""},
		{"during the inline try", func(w *world, r *ledger.Run) {
			w.finish("a", w.send(r, "a"), ledger.VerdictUncertain, pending)
		}, ledger.NeedsReconcile, ledger.RecoverCounts{NeedsReconcile: 1}, ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"during an inline resend", func(w *world, r *ledger.Run) {
			w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictUncertain, pending)
			w.resend("a")
		}, ledger.NeedsReconcile, ledger.RecoverCounts{NeedsReconcile: 1}, ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"applied", func(w *world, r *ledger.Run) { w.finish("a", w.send(r, "a"), ledger.VerdictApplied) },
			ledger.Applied, ledger.RecoverCounts{}, ledger.RunRunning, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open()
			c.until(w, r)
			if counts := w.restart(); counts != c.counts {
				t.Errorf("counts %+v, want %+v", counts, c.counts)
			}
			w.is("a", c.state)
			w.stands(r, c.run, c.class)
			if counts := w.restart(); counts != (ledger.RecoverCounts{}) {
				t.Errorf("a second recovery moves %+v", counts)
			}
			w.is("a", c.state)
		})
	}
}

func TestRecoveryLeavesOwnDispatchesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send(w.open(), "a")
	counts, err := w.Recover(t.Context(), func(*ledger.Mutation) time.Time { return w.now.Wall })
	if err != nil || counts != (ledger.RecoverCounts{}) {
		t.Errorf("recovery of its own: %+v, %v", counts, err)
	}
	w.finish("a", d, ledger.VerdictApplied)
	w.is("a", ledger.Applied)
}

func TestRecoveryOfManyRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	names := make([]string, 150)
	for i := range names {
		names[i] = "m" + w.id()
		w.send(r, names[i])
	}
	if counts := w.restart(); counts.NeedsReconcile != len(names) {
		t.Errorf("counts %+v", counts)
	}
	for _, name := range names {
		if m := w.is(name, ledger.NeedsReconcile); !m.Current().Lost || m.Current().Ended != (ledger.Stamp{}) {
			t.Fatalf("dispatch of %s: %+v", name, m.Current())
		}
	}
}

func TestCrashWindows(t *testing.T) {
	t.Parallel()
	t.Run("before the claim is durable, nothing is known and a retry dispatches", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open()
		w.store.FailBefore()
		if out, err := w.Claim(t.Context(), w.claimOf(r, "a")); !errors.Is(err, ledger.ErrUnavailable) || out.Decision != ledger.DecideRefused {
			t.Fatalf("a claim that isn't kept: %q, %v", out.Decision, err)
		}
		w.checked = history{}
		w.restart()
		w.send(w.run(r.ID), "a")
	})
	t.Run("a claim that was kept unacknowledged is reconciled", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open()
		w.store.FailAfter()
		if out, err := w.Claim(t.Context(), w.claimOf(r, "a")); !errors.Is(err, ledger.ErrUnavailable) || out.Decision != ledger.DecideRefused {
			t.Fatalf("an ambiguous claim: %q, %v", out.Decision, err)
		}
		w.restart()
		w.is("a", ledger.NeedsReconcile)
	})
	t.Run("answered, nothing durable: reconciled", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		d := w.send(w.open(), "a")
		w.store.FailBefore()
		before := *w.checked[key("a")]
		if _, err := w.EndDispatch(t.Context(), end("a", d, ledger.VerdictApplied)); !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatal(err)
		}
		w.checked[key("a")] = &before
		w.restart()
		w.is("a", ledger.NeedsReconcile)
		w.see("a", ledger.SeenApplied)
		w.is("a", ledger.Applied)
	})
	t.Run("outcome durable, script not answered: replayed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open()
		d := w.send(r, "a")
		w.store.FailAfter()
		if _, err := w.EndDispatch(t.Context(), end("a", d, ledger.VerdictApplied)); !errors.Is(err, ledger.ErrUnavailable) {
			t.Fatal(err)
		}
		w.restart()
		if out := w.claim(w.run(r.ID), "a", redelivery); out.Decision != ledger.DecideReplay || out.Mutation.Result.Status != 201 {
			t.Errorf("%q: %s", out.Decision, out.Detail)
		}
	})
	t.Run("a delivery that isn't known to be durable counts as not delivered", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open()
		w.finish("a", w.send(r, "a"), ledger.VerdictApplied)
		w.Deliver(r.ID, w.mutation("a"), "")
		w.restart()
		if out := w.claim(r, "a", redelivery); out.Decision != ledger.DecideReplay {
			t.Errorf("after the loss of the delivery: %q", out.Decision)
		}
		w.Deliver(r.ID, w.mutation("a"), "")
		if out := w.claim(r, "a", redelivery); out.Decision != ledger.DecideRepeated {
			t.Errorf("after a delivery: %q", out.Decision)
		}
	})
}

// A resend of the runner leaves its record where it is, to be looked at when the
// resend's deadline is over; nobody waits for that end after a restart.
// A job that failed says nothing of an earlier sending that was lost.
func TestAFailedJobDoesNotAnswerForALostSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(w.open(), "a", nativeKey, func(q *ledger.Claim) { q.Record.Policy.WatchMax = time.Hour })
	w.restart()
	w.is("a", ledger.NeedsReconcile)
	w.finish("a", w.resend("a"), ledger.VerdictAccepted, func(f *ledger.EndDispatch) { f.Result = &ledger.Result{Status: 202} })
	if m := w.is("a", ledger.NeedsReconcile); !m.Watching {
		t.Fatal("the 202 is not followed")
	}
	w.see("a", ledger.SeenFailed)
	w.is("a", ledger.Indeterminate)
}

// A wall clock that is set back, or a machine that sleeps, doesn't prolong the time for which
// what was accepted is followed.
func TestAWatchEndsByTheClockThatPassedMore(t *testing.T) {
	t.Parallel()
	for name, wall := range map[string]time.Duration{"the wall clock was set back": -time.Hour, "the wall clock ran": time.Hour} {
		w := newWorld(t)
		d := w.send(w.open(), "a", func(q *ledger.Claim) { q.Record.Policy.WatchMax = time.Hour })
		w.finish("a", d, ledger.VerdictAccepted, func(f *ledger.EndDispatch) { f.Result = &ledger.Result{Status: 202} })
		w.now.Wall, w.now.Boot = w.now.Wall.Add(wall), w.now.Boot+time.Hour-time.Second
		if wall < 0 {
			w.see("a", ledger.SeenRetry)
			if m := w.is("a", ledger.NeedsReconcile); !m.Watching {
				t.Errorf("%s: it ends a second early", name)
			}
			w.now.Boot += time.Second
		}
		w.see("a", ledger.SeenRetry)
		w.is("a", ledger.Indeterminate)
	}
}

func TestRecoveryLooksAtOnceAtALostResend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send(w.open(), "a", nativeKey)
	w.finish("a", d, ledger.VerdictUncertain)
	w.is("a", ledger.NeedsReconcile)
	again := w.resend("a")
	if m := w.mutation("a"); !m.NextTryAt.After(w.now.Wall) {
		t.Fatalf("due at %s during the resend", m.NextTryAt)
	}
	w.restart()
	m := w.is("a", ledger.NeedsReconcile)
	if !m.Dispatch(again.ID).Lost || m.NextTryAt.After(w.now.Wall) {
		t.Errorf("lost: %t, due at %s, now is %s", m.Dispatch(again.ID).Lost, m.NextTryAt, w.now.Wall)
	}
	w.restart()
	if after := w.mutation("a"); after.Version != m.Version {
		t.Error("a second recovery changed the record")
	}
}

func inSteps(q *ledger.Claim) { q.Record.Policy.Prepares = true }

// Before what the first step gave is kept, the step that takes effect was not sent:
// a lost sender proves a failure there, and nothing after it.
func TestRecoveryOfASendingInSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		kept   bool
		change func(*ledger.Claim)
		state  ledger.State
		run    ledger.RunState
		class  verdict.Class
	}{
		{"nothing kept, with a reconciler", false, nil, ledger.Failed, ledger.RunFailing, verdict.Transient},
		{"nothing kept, no reconciler", false, noReconciler, ledger.Failed, ledger.RunFailing, verdict.Transient},
		{"kept, with a reconciler", true, nil, ledger.NeedsReconcile, ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"kept, no reconciler", true, noReconciler, ledger.Indeterminate, ledger.RunPausedReconciliation, verdict.Indeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open()
			changes := []func(*ledger.Claim){inSteps}
			if c.change != nil {
				changes = append(changes, c.change)
			}
			d := w.send(r, "a", changes...)
			if c.kept {
				_, err := w.Prepared(t.Context(), key("a"), d.ID, map[string]string{"draft": `"d1"`})
				w.ok(err)
			}
			w.restart()
			m := w.is("a", c.state)
			w.stands(r, c.run, c.class)
			if got := m.Kept["draft"] == `"d1"`; got != c.kept {
				t.Errorf("kept %v", m.Kept)
			}
			if c.kept {
				if d := m.Current(); d.Resolved || d.Verdict != "" || !d.Lost {
					t.Errorf("of the lost sending more is said than that: %+v", d)
				}
				return
			}
			if d := m.Current(); !d.Resolved || d.Verdict != ledger.VerdictNotSent {
				t.Errorf("the lost sending is %+v", d)
			}
			w.send(r, "a", changes...)
		})
	}
}

func TestPreparedIsForTheDispatchThatIsBeingPrepared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	kept := map[string]string{"draft": `"d1"`}
	plain := w.send(r, "plain")
	_, err := w.Prepared(t.Context(), key("plain"), plain.ID, kept)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ledger.ErrNotAllowed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a sending without steps", err)
	d := w.send(r, "a", inSteps)
	_, err = w.Prepared(t.Context(), key("a"), d.ID, map[string]string{"draft": string(make([]byte, 17<<10))})
	if !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("too much to keep: %v", err)
	}
	_, err = w.Prepared(t.Context(), key("a"), d.ID, kept)
	w.ok(err)
	_, err = w.Prepared(t.Context(), key("a"), d.ID, kept)
	refused("a second time", err)
	w.finish("a", d, ledger.VerdictFailed)
	_, err = w.Prepared(t.Context(), key("a"), d.ID, kept)
	refused("after its end", err)
	again := w.send(r, "a", inSteps)
	if len(w.is("a", ledger.InFlight).Kept) != 0 || again.Prepared {
		t.Error("what an earlier sending was given is still kept")
	}
	w.finish("a", again, ledger.VerdictNotSent)
	_, err = w.Prepared(t.Context(), key("a"), again.ID, kept)
	refused("after an end before anything was kept", err)
	w.send(r, "a", inSteps)
	_, err = w.Prepared(t.Context(), key("a"), again.ID, kept)
	refused("when another sending is being prepared", err)
}

// A sending whose outcome its own process lost before anything was kept did not happen.
func TestAnUncertainEndBeforeAnythingIsKeptIsNoUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a", inSteps), ledger.VerdictUncertain)
	if m := w.is("a", ledger.Failed); m.Current().Verdict != ledger.VerdictNotSent || m.Class != verdict.Transient {
		t.Errorf("%+v", m.Current())
	}
}
