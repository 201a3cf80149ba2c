package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestWhatTheWorldSaysBeforeAReplay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode   ledger.VerifyMode
		said   ledger.Said
		replay bool
		run    ledger.RunState
		class  verdict.Class
		item   ledger.ItemState
		asked  string
		count  int
	}{
		"strict, agrees":          {ledger.VerifyStrict, ledger.SaidAgrees, true, ledger.RunRunning, "", ledger.ItemOpen, "", 0},
		"strict, disagrees":       {ledger.VerifyStrict, ledger.SaidDisagrees, false, ledger.RunAborted, verdict.Precondition, ledger.ItemFailed, "", 1},
		"strict, nothing":         {ledger.VerifyStrict, ledger.SaidNothing, false, ledger.RunAborted, verdict.Transient, ledger.ItemOpen, "", 1},
		"strict, an unknown word": {ledger.VerifyStrict, "perhaps", false, ledger.RunAborted, verdict.Transient, ledger.ItemOpen, "", 1},
		"an unknown mode":         {"loose", ledger.SaidDisagrees, false, ledger.RunAborted, verdict.Precondition, ledger.ItemFailed, "", 1},
		"off, disagrees":          {ledger.VerifyOff, ledger.SaidDisagrees, true, ledger.RunRunning, "", ledger.ItemOpen, "", 0},
		"warn, nothing":           {ledger.VerifyWarn, ledger.SaidNothing, true, ledger.RunRunning, "", ledger.ItemOpen, "", 1},
		"human, agrees":           {ledger.VerifyHuman, ledger.SaidAgrees, true, ledger.RunRunning, "", ledger.ItemOpen, "", 0},
		"warn, disagrees":         {ledger.VerifyWarn, ledger.SaidDisagrees, true, ledger.RunRunning, "", ledger.ItemOpen, "", 1},
		"human, disagrees":        {ledger.VerifyHuman, ledger.SaidDisagrees, false, ledger.RunPausedAttention, verdict.Precondition, ledger.ItemNeedsAttention, ledger.EscalationVerify, 1},
		"human, nothing":          {ledger.VerifyHuman, ledger.SaidNothing, false, ledger.RunAborted, verdict.Transient, ledger.ItemOpen, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open()
			w.finish("a", w.send(r, "a"), ledger.VerdictApplied)
			replay, m, err := w.Verified(t.Context(), ledger.Verified{Key: key("a"), Run: r.ID, Mode: c.mode, Said: c.said, Reason: "because of a test"})
			w.ok(err)
			if replay != c.replay || m.State != ledger.Applied || m.ResultState != ledger.ResultKnown {
				t.Errorf("replay %v of %s", replay, m.State)
			}
			w.stands(r, c.run, c.class)
			w.escalated("a", c.asked)
			if got := w.item("i").State; got != c.item {
				t.Errorf("the item is %s, want %s", got, c.item)
			}
			if v := m.Verification; v == nil && c.count != 0 || v != nil && v.Count != c.count {
				t.Errorf("verification %+v", v)
			}
		})
	}
}

func TestAnAcknowledgedResultIsReplayedWhateverTheWorldSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a"), ledger.VerdictApplied)
	gone := ledger.Verified{Key: key("a"), Run: r.ID, Mode: ledger.VerifyHuman, Said: ledger.SaidDisagrees}
	if replay, _, err := w.Verified(t.Context(), gone); replay || err != nil {
		t.Fatalf("replay %v, %v", replay, err)
	}
	if said := w.consequence("a", ledger.OnAcknowledge); !strings.Contains(said, "later runs get the stored answer") {
		t.Errorf("a person is told %q", said)
	}
	w.decide("a", ledger.OnAcknowledge)
	if got := w.item("i").State; got != ledger.ItemOpen {
		t.Errorf("the item is %s", got)
	}
	gone.Run = w.open().ID
	if replay, m, err := w.Verified(t.Context(), gone); !replay || err != nil || m.Verification.Count != 1 {
		t.Errorf("replay %v, %v", replay, err)
	}
}

func TestOnlyAnAppliedMutationIsVerified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	_, _, err := w.Verified(t.Context(), ledger.Verified{Key: key("a"), Mode: ledger.VerifyWarn, Said: ledger.SaidDisagrees})
	if !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("got %v", err)
	}
}

// What is verified is a result that is known, and such a result stays: what a person said of
// it can't come to hold for another one.
func TestAResultThatWasVerifiedIsNotReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a"), ledger.VerdictApplied)
	gone := ledger.Verified{Key: key("a"), Run: r.ID, Mode: ledger.VerifyHuman, Said: ledger.SaidDisagrees}
	if replay, _, err := w.Verified(t.Context(), gone); replay || err != nil {
		t.Fatalf("replay %v, %v", replay, err)
	}
	other := w.decision("a", ledger.OnHappened, func(r *ledger.Resolve) { r.Result = &ledger.Result{Status: 204} })
	if _, err := w.Resolve(t.Context(), other); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("another result: %v", err)
	}
	if m := w.mutation("a"); m.Result.Status != 201 || m.Verification == nil || m.Verification.Acknowledged {
		t.Errorf("the result is %+v, verified as %+v", m.Result, m.Verification)
	}
	w.escalated("a", ledger.EscalationVerify)
}

// While the API was asked, a person may have decided on the item, for good.
func TestALateQuestionLeavesTheItemAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(w *world)
		left      ledger.ItemState
		attempt   int
	}{
		"skipped": {func(w *world) {
			_, err := w.decideItem(ledger.ItemSkip)
			w.ok(err)
		}, ledger.ItemSkipped, 1},
		"closed": {func(w *world) {
			_, err := w.decideItem(ledger.ItemClose)
			w.ok(err)
		}, ledger.ItemDone, 1},
		"at another attempt": {func(w *world) {
			_, err := w.decideItem(ledger.ItemNewAttempt)
			w.ok(err)
		}, ledger.ItemOpen, 2},
		"waiting already": {func(w *world) {
			w.claim(w.open(), "b", payload("other"))
			w.escalated("b", ledger.EscalationMismatch)
		}, ledger.ItemNeedsAttention, 1},
	} {
		w := newWorld(t)
		w.applied("a")
		w.applied("b")
		r := w.open()
		if out := w.claim(r, "a"); out.Decision != ledger.DecideReplay {
			t.Fatalf("%q", out.Decision)
		}
		_, err := w.EndRun(t.Context(), r.ID, verdict.Transient, "over", "ada")
		w.ok(err)
		over := w.run(r.ID)
		c.meanwhile(w)
		before := *w.item("i")
		replay, _, err := w.Verified(t.Context(), ledger.Verified{Key: key("a"), Run: r.ID, Mode: ledger.VerifyHuman, Said: ledger.SaidDisagrees})
		w.ok(err)
		w.escalated("a", ledger.EscalationVerify)
		if after := w.run(r.ID); after.Version != over.Version {
			t.Errorf("%s: the run that was over is %s (%s)", name, after.State, after.Reason)
		}
		for _, when := range []string{"once it is asked", "once it is answered"} {
			i := w.item("i")
			if replay || i.State != c.left || i.Attempt != c.attempt || i.Cause != before.Cause || i.Reason != before.Reason {
				t.Errorf("%s, %s: replay %v, the item is %s at attempt %d because of %q (%s)", name, when, replay, i.State, i.Attempt, i.Cause, i.Reason)
			}
			if w.mutation("a").Escalated() {
				w.decide("a", ledger.OnAcknowledge)
			}
		}
	}
}

// The question may come of another run than the one that works on the item.
// Who closes a question about something else has not said that the stored result is to be given.
func TestAnotherQuestionsEndAcknowledgesNoResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"))
	gone := ledger.Verified{Key: key("a"), Mode: ledger.VerifyWarn, Said: ledger.SaidDisagrees, Reason: "it is gone"}
	_, _, err := w.Verified(t.Context(), gone)
	w.ok(err)
	w.escalated("a", ledger.EscalationDuplicate)
	w.decide("a", ledger.OnAcknowledge)
	gone.Mode = ledger.VerifyStrict
	if replay, m, err := w.Verified(t.Context(), gone); err != nil || replay || m.Verification.Acknowledged {
		t.Errorf("replayed %v, %+v, %v", replay, m.Verification, err)
	}
}

func TestAQuestionAboutAnItemOutlivesTheEndOfItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a")
	r := w.open(func(o *ledger.OpenRun) { o.Takeover = true })
	replay, _, err := w.Verified(t.Context(), ledger.Verified{Key: key("a"), Mode: ledger.VerifyHuman, Said: ledger.SaidDisagrees, Reason: "it is gone"})
	if w.ok(err); replay {
		t.Fatal("it is replayed")
	}
	finished, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
	if w.ok(err); finished.State != ledger.RunFinished {
		t.Errorf("the run is %s", finished.State)
	}
	if i := w.item("i"); i.State != ledger.ItemNeedsAttention || i.ActiveRun != "" {
		t.Errorf("the item is %+v", i)
	}
}

// twice says that the world has several objects, the oldest first, and plans the undoing of the newer ones, which the
// rule would send by itself.
func twice(mode ledger.VerifyMode, names ...string) ledger.Verified {
	var planned ledger.Observe
	owing(names[1:]...)(&planned)
	for i := range planned.Owed {
		planned.Owed[i].Auto = true
	}
	return ledger.Verified{Key: key("a"), Mode: mode, Said: ledger.SaidDisagrees, Reason: "there are several", Objects: names, Owed: planned.Owed}
}

// What is there twice before a replay is told once, and taken back once a person says so.
func TestWhatIsThereTwiceBeforeAReplayIsOwed(t *testing.T) {
	t.Parallel()
	for mode, questions := range map[ledger.VerifyMode][]string{
		ledger.VerifyOff: nil, ledger.VerifyWarn: {ledger.EscalationDuplicate}, ledger.VerifyStrict: {ledger.EscalationDuplicate},
		ledger.VerifyHuman: {ledger.EscalationDuplicate, ledger.EscalationVerify},
	} {
		w := newWorld(t)
		w.applied("a")
		for range 2 {
			_, _, err := w.Verified(t.Context(), twice(mode, "o1", "o2"))
			w.ok(err)
		}
		w.questions("a", questions...)
		owed := w.mutation("a").Obligations
		if want := min(1, len(questions)); len(owed) != want {
			t.Fatalf("%s: it owes %v, want %d", mode, owed, want)
		}
		if len(owed) == 0 {
			continue
		}
		if m := w.byKey(owed[0]); m.Queued() || m.Undo.Auto || m.Undo.Object != "o2" {
			t.Errorf("%s: it is queued %v, by itself %v, to undo %s", mode, m.Queued(), m.Undo.Auto, m.Undo.Object)
		}
		w.pass(ledger.DefaultSettle)
		if m, d, err := w.undo(w.byKey(owed[0])); err != nil || d == nil || m.State != ledger.InFlight {
			t.Errorf("%s: a person has it undone: %v", mode, err)
		}
	}
}

// Another object that comes later is told of, and owed, without what was told before.
func TestAnotherObjectBeforeALaterReplayIsOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), owing("o2"))
	w.decide("a", ledger.OnAcknowledge)
	for _, names := range [][]string{{"o1", "o2"}, {"o1", "o9", "o9"}} {
		_, _, err := w.Verified(t.Context(), twice(ledger.VerifyWarn, names...))
		w.ok(err)
		w.questions("a")
	}
	_, _, err := w.Verified(t.Context(), twice(ledger.VerifyWarn, "o1", "o2", "o3"))
	w.ok(err)
	w.questions("a", ledger.EscalationDuplicate)
	owed := w.mutation("a").Obligations
	if len(owed) != 2 || w.byKey(owed[1]).Undo.Object != "o3" {
		t.Errorf("it owes %v", owed)
	}
}

// What is another mutation's evidence is never owed.
func TestAnothersObjectBeforeAReplayIsNotOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("b")
	w.see("b", ledger.SeenApplied, objects("o2"))
	w.applied("a")
	_, _, err := w.Verified(t.Context(), twice(ledger.VerifyWarn, "o1", "o2"))
	w.ok(err)
	w.questions("a")
	if owed := w.mutation("a").Obligations; len(owed) > 0 {
		t.Errorf("it owes %v", owed)
	}
}
