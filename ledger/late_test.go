package ledger_test

import (
	"errors"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// A resend may be on its way still when a person has denied the mutation and a run has it sent
// anew: how that resend ends tells nothing of the newer sending, which is being carried out.
func TestTheEndOfAnOlderSendingTellsNothingOfANewerOne(t *testing.T) {
	t.Parallel()
	for _, v := range []ledger.Verdict{ledger.VerdictFailed, ledger.VerdictNotSent, ledger.VerdictUncertain} {
		w := newWorld(t)
		w.unknown("a", nativeKey)
		older := w.resend("a")
		w.decide("a", ledger.OnDidNotHappen, force)
		r := w.open()
		newer := w.send(r, "a", nativeKey)
		w.finish("a", older, v)
		if m := w.is("a", ledger.InFlight); m.Dispatch(older.ID).Verdict != v {
			t.Errorf("%s: the end of the older one is not kept: %q", v, m.Dispatch(older.ID).Verdict)
		}
		w.stands(r, ledger.RunRunning, "")
		w.finish("a", newer, ledger.VerdictApplied)
		w.is("a", ledger.Applied)
	}
}

// What comes of a sending of a run that somebody has taken over, or ended, changes nothing of
// that run: it stays over, for the reason that it was told.
func TestARunThatIsOverStaysSoWhateverItsSendingComesTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict ledger.Verdict
		change  []func(*ledger.EndDispatch)
		many    bool
	}{
		"a failure for now":              {verdict: ledger.VerdictFailed},
		"a failure for good":             {verdict: ledger.VerdictFailed, change: []func(*ledger.EndDispatch){class(verdict.Logic)}},
		"an unknown":                     {verdict: ledger.VerdictUncertain},
		"a success without its answer":   {verdict: ledger.VerdictCommitted},
		"a failure for now, many items":  {verdict: ledger.VerdictFailed, many: true},
		"a failure for good, many items": {verdict: ledger.VerdictFailed, change: []func(*ledger.EndDispatch){class(verdict.Logic)}, many: true},
		"an unknown outcome, many items": {verdict: ledger.VerdictUncertain, many: true},
	} {
		w := newWorld(t)
		var r *ledger.Run
		if c.many {
			r = w.open(many)
		} else {
			r = w.open()
		}
		d := w.send(r, "a", of("i"))
		over, err := w.EndRun(t.Context(), r.ID, verdict.Transient, "somebody ended it", "ada")
		w.ok(err)
		w.finish("a", d, c.verdict, c.change...)
		after := w.run(r.ID)
		if after.State != ledger.RunAborted || after.Class != verdict.Transient || after.Reason != "somebody ended it" || after.Version != over.Version {
			t.Errorf("%s: the run is %s, class %s (%s), at version %d, want that of %d", name, after.State, after.Class, after.Reason, after.Version, over.Version)
		}
		if out := w.claim(r, "b", of("i")); out.Problem != "run-aborted" {
			t.Errorf("%s: the run claims another: %q, problem %q", name, out.Decision, out.Problem)
		}
	}
}

// An unmanaged client may have asked for something that makes the item wait while a run works on
// it: that run's failure must not let the next one in before a person has answered.
func TestAFailureLetsNobodyIntoAnItemThatWaits(t *testing.T) {
	t.Parallel()
	for name, open := range map[string][]func(*ledger.OpenRun){"of a run": nil, "of a run of many items": {many}} {
		w := newWorld(t)
		w.finish("a", w.send(nil, "a"), ledger.VerdictApplied)
		r := w.open(open...)
		d := w.send(r, "b", of("i"))
		if out := w.claim(nil, "a", payload("other")); out.Decision != ledger.DecideMismatch {
			t.Fatalf("%q (%s)", out.Decision, out.Detail)
		}
		w.finish("b", d, ledger.VerdictFailed, class(verdict.Logic))
		w.stands(r, ledger.RunAborted, verdict.Logic)
		if i := w.item("i"); i.State != ledger.ItemNeedsAttention || i.Cause != key("a").ID() {
			t.Errorf("%s: the item is %s because of %q", name, i.State, i.Cause)
		}
		if out := w.claim(nil, "c"); out.Problem != "item-attention" {
			t.Errorf("%s: another mutation of the item: %q, problem %q", name, out.Decision, out.Problem)
		}
	}
}

// Nobody here has the answer of what another process sends, or sent.
func TestASendingOfAnotherProcessIsNotJoined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(w.open(), "a")
	w.use(w.store.Reopen(ledger.Process{ID: "another", Started: w.now}))
	if out := w.claim(nil, "a"); out.Decision != ledger.DecideBlocked || out.Problem != "blocked" {
		t.Errorf("%q %q", out.Decision, out.Detail)
	}
}

// What is said of an end counts only as far as the rest of it bears it out: an answer that isn't there
// can neither be replayed nor followed.
func TestAnEndIsReadAsStrictlyAsItsAnswerAllows(t *testing.T) {
	t.Parallel()
	withoutAnswer := func(f *ledger.EndDispatch) { f.Result = nil }
	for name, c := range map[string]struct {
		says   ledger.Verdict
		change func(*ledger.EndDispatch)
		reads  ledger.Verdict
		state  ledger.State
	}{
		"applied without its answer":             {ledger.VerdictApplied, withoutAnswer, ledger.VerdictCommitted, ledger.NeedsReconcile},
		"committed, with what came of an answer": {ledger.VerdictCommitted, status202, ledger.VerdictCommitted, ledger.NeedsReconcile},
		"accepted without its answer":            {ledger.VerdictAccepted, withoutAnswer, ledger.VerdictUncertain, ledger.NeedsReconcile},
		"accepted by an answer over the limit": {
			ledger.VerdictAccepted, func(f *ledger.EndDispatch) { status202(f); f.TooLarge = true }, ledger.VerdictUncertain, ledger.NeedsReconcile,
		},
	} {
		w := newWorld(t)
		r := w.open()
		d := w.send(r, "a", watched)
		w.finish("a", d, c.says, c.change)
		m := w.is("a", c.state)
		if got := m.Dispatch(d.ID).Verdict; got != c.reads || m.Watching || m.ResultState == ledger.ResultKnown {
			t.Errorf("%s: read as %s, watching %v, result %q", name, got, m.Watching, m.ResultState)
		}
		w.stands(r, ledger.RunPausedReconciliation, verdict.Indeterminate)
	}
}

// Who decides and why is in the history of each decision.
func TestEachDecisionNeedsAnActorAndAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	ctx, none := t.Context(), time.Time{}
	_, err := w.Restored(ctx, none, "ada", "a backup of before")
	w.ok(err)
	for _, by := range [][2]string{{"", "because"}, {"ada", ""}} {
		actor, why := by[0], by[1]
		for name, decide := range map[string]func() error{
			"ending a run": func() error { _, err := w.EndRun(ctx, r.ID, verdict.Transient, why, actor); return err },
			"deciding on an item": func() error {
				_, err := w.DecideItem(ctx, ledger.DecideItem{Workflow: "w", Item: "i", Action: ledger.ItemSkip, Actor: actor, Reason: why})
				return err
			},
			"confirming a gap": func() error { _, err := w.ConfirmGaps(ctx, ledger.ConfirmGap{Actor: actor, Reason: why}); return err },
			"a restore":        func() error { _, err := w.Restored(ctx, none, actor, why); return err },
			"running an obligation": func() error {
				_, err := w.RunObligation(ctx, ledger.RunObligation{Key: key("a"), Actor: actor, Reason: why})
				return err
			},
		} {
			if err := decide(); !errors.Is(err, ledger.ErrInvalid) {
				t.Errorf("%s by %q, because of %q: %v", name, actor, why, err)
			}
		}
	}
}

// A script that lost the answer on the way does not know of the failure: its run is not done.
func TestAFailureWhoseAnswerWasLostKeepsItsRunFromFinishing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	w.finish("a", w.send(r, "a"), ledger.VerdictFailed, class(verdict.Logic))
	w.Answering(r.ID, key("a"))
	w.Undelivered(r.ID, key("a"))
	if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, true); !errors.Is(err, ledger.ErrRunUnfinished) {
		t.Fatalf("finished: %v", err)
	}
	w.Deliver(r.ID, w.mutation("a"), "")
	if done, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, true); err != nil || done.State != ledger.RunFinished {
		t.Errorf("once it was told of it: %+v, %v", done, err)
	}
}
