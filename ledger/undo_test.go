package ledger_test

import (
	"errors"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// owing plans the undoing of objects.
func owing(objects ...string) func(*ledger.Observe) {
	return func(o *ledger.Observe) {
		for _, object := range objects {
			o.Owed = append(o.Owed, ledger.Owed{Object: object, Record: ledger.Mutation{
				Payload: ledger.Payload{PayloadDigest: "undo " + object, Request: ledger.Request{Method: "DELETE", URL: "https://bank.test/" + object}},
			}})
		}
	}
}

func TestNothingIsOwedOfWhatIsOnlyAlike(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, objects("o1", "o2"), owing("o2"))
	if m := w.is("a", ledger.Indeterminate); len(m.Obligations) > 0 {
		t.Errorf("it owes %v", m.Obligations)
	}
	// That it happened is known of this one, and still not which object is whose.
	w = newWorld(t)
	w.unknown("a")
	head(w, "a")
	w.see("a", ledger.SeenDuplicate, objects("o1", "o2"), owing("o2"))
	if m := w.is("a", ledger.Applied); len(m.Obligations) > 0 {
		t.Errorf("what is committed owes %v", m.Obligations)
	}
}

func TestOnlyTheNewerObjectsAreOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	for _, wrong := range [][]string{{"o1"}, {"o1", "o2"}, {"o2"}, {"o3", "o2"}} {
		_, err := w.Observe(t.Context(), w.observation("a", ledger.SeenDuplicate, strong, objects("o1", "o2", "o3"), owing(wrong...)))
		if !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("owing %v of three: %v", wrong, err)
		}
	}
	w.is("a", ledger.NeedsReconcile)
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2", "o3"), owing("o2", "o3"))
	if m := w.is("a", ledger.Applied); len(m.Obligations) != 2 {
		t.Errorf("it owes %v", m.Obligations)
	}
}

func TestOnlyWhatTheRuleSaysIsUndoneByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2", "o3"), owing("o2", "o3"), func(o *ledger.Observe) { o.Owed[1].Auto = true })
	owed := w.mutation("a").Obligations
	if m := w.byKey(owed[0]); m.Queued() {
		t.Error("what waits for a person is queued to be sent")
	}
	if m := w.byKey(owed[1]); !m.Queued() {
		t.Error("what the rule has undone isn't queued")
	}
}

// The one effect that there is must not be taken back because it was counted twice.
func TestAnObjectIsNoDuplicateOfItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	for _, twice := range [][]string{{"o1", "o1"}, {"o1", "o2", "o1"}} {
		w.see("a", ledger.SeenDuplicate, strong, objects(twice...), owing(twice[1:]...))
		if m := w.is("a", ledger.NeedsReconcile); len(m.Obligations) > 0 {
			t.Errorf("of %v it owes %v", twice, m.Obligations)
		}
	}
}

func TestAPersonDoesNotUndoWhatIsAnothersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(item("other"))
	w.finish("other", w.send(r, "other"), ledger.VerdictUncertain)
	w.see("other", ledger.SeenApplied, objects("o1"))
	w.unknown("a")
	decision := w.decision("a", ledger.OnHappened, none, func(r *ledger.Resolve) {
		var planned ledger.Observe
		owing("o1")(&planned)
		r.Compensate = &planned.Owed[0]
	})
	if _, err := w.Resolve(t.Context(), decision); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("got %v, want a refusal", err)
	}
	if m := w.is("a", ledger.NeedsReconcile); len(m.Obligations) > 0 {
		t.Errorf("it owes %v", m.Obligations)
	}
}

// owes makes a mutation that owes the undoing of o2 and o3, which a person has done, and of
// which no sending can take effect any more.
func (w *world) owes(name string) (older, newer *ledger.Mutation) {
	w.t.Helper()
	w.unknown(name)
	w.see(name, ledger.SeenDuplicate, strong, objects("o1", "o2", "o3"), owing("o2", "o3"))
	w.pass(ledger.DefaultSettle)
	owed := w.mutation(name).Obligations
	return w.byKey(owed[0]), w.byKey(owed[1])
}

func (w *world) byKey(k ledger.Key) *ledger.Mutation {
	w.t.Helper()
	var m *ledger.Mutation
	w.ok(w.View(w.t.Context(), func(v ledger.View) (err error) {
		m, err = v.Mutation(k)
		return err
	}))
	return m
}

// undo has an obligation met by a person, and sends it.
func (w *world) undo(m *ledger.Mutation) (*ledger.Mutation, *ledger.Dispatch, error) {
	w.t.Helper()
	m, err := w.RunObligation(w.t.Context(), ledger.RunObligation{Key: m.Key, Version: m.Version, Actor: "ada", Reason: "twice"})
	if err != nil {
		return nil, nil, err
	}
	return w.Redispatch(w.t.Context(), ledger.Redispatch{Key: m.Key, Version: m.Version, DispatchID: w.id(), NextTryAt: w.now.Wall.Add(time.Minute)})
}

// What is owed is nobody's mutation: the run that made too much goes on, and finishes.
func TestARunFinishesOverWhatIsOwed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a"), ledger.VerdictUncertain, pending)
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), owing("o2"))
	if u := w.byKey(w.is("a", ledger.Applied).Obligations[0]); u.State != ledger.Failed || u.Run != "" {
		t.Fatalf("the obligation is %s, of run %q", u.State, u.Run)
	}
	finished, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, true)
	if w.ok(err); finished.State != ledger.RunFinished {
		t.Errorf("the run is %s", finished.State)
	}
}

func TestTheNewestEffectIsTakenBackFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	older, newer := w.owes("a")
	if _, _, err := w.undo(older); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Fatalf("the older one first: %v", err)
	}
	_, d, err := w.undo(newer)
	w.ok(err)
	if _, _, err := w.undo(w.byKey(older.Key)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Fatalf("the older one beside it: %v", err)
	}
	end := ledger.EndDispatch{Key: newer.Key, Dispatch: *d, Result: &ledger.Result{Status: 204}}
	end.Dispatch.Verdict = ledger.VerdictApplied
	_, err = w.EndDispatch(t.Context(), end)
	w.ok(err)
	if _, d, err := w.undo(w.byKey(older.Key)); err != nil || d == nil {
		t.Errorf("after it: %v, %v", d, err)
	}
}

// Both are queued at once, and the older one may be taken up first.
func TestTheOlderOfTwoThatAreQueuedWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2", "o3"), owing("o2", "o3"), func(o *ledger.Observe) {
		o.Owed[0].Auto, o.Owed[1].Auto = true, true
	})
	w.pass(ledger.DefaultSettle)
	owed := w.mutation("a").Obligations
	older, d := w.again(w.byKey(owed[0]))
	if d != nil || !older.Queued() || !older.NextTryAt.Equal(w.now.Wall.Add(time.Minute)) {
		t.Fatalf("the older one is sent as %+v, queued %v for %v", d, older.Queued(), older.NextTryAt)
	}
	if newer, d := w.again(w.byKey(owed[1])); d == nil || newer.State != ledger.InFlight {
		t.Errorf("the newer one is %s, sent as %+v", newer.State, d)
	}
}

// What is there too often is there whatever became of the item.
func TestAnUndoNeedsNoOpenItem(t *testing.T) {
	t.Parallel()
	for _, action := range []ledger.ItemAction{ledger.ItemClose, ledger.ItemSkip, ledger.ItemNewAttempt} {
		w := newWorld(t)
		_, newer := w.owes("a")
		_, err := w.decideItem(action)
		w.ok(err)
		if now, d, err := w.undo(newer); err != nil || d == nil {
			t.Errorf("%s: it is %s, %v", action, now.State, err)
		}
	}
}

func TestAnUndoThatFailsForGoodWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for class, queued := range map[verdict.Class]bool{
		verdict.Transient: true, verdict.Permission: false, verdict.Precondition: false, verdict.Logic: false,
	} {
		w := newWorld(t)
		_, newer := w.owes("a")
		_, d, err := w.undo(newer)
		w.ok(err)
		end := ledger.EndDispatch{Key: newer.Key, Dispatch: *d, NextTryAt: w.now.Wall.Add(time.Minute)}
		end.Dispatch.Verdict, end.Dispatch.Class = ledger.VerdictFailed, class
		_, err = w.EndDispatch(t.Context(), end)
		w.ok(err)
		m := w.byKey(newer.Key)
		if asked := m.Escalated() && m.Escalation.Kind == ledger.EscalationUndo; m.Queued() != queued || asked == queued {
			t.Errorf("%s: queued %v, a person asked %v", class, m.Queued(), asked)
		}
	}
}

// What was waived is never undone, so that nothing of it may be under way.
func TestAnUndoThatMayStillTakeEffectIsNotWaived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), owing("o2"), func(o *ledger.Observe) {
		o.Owed[0].Record.Policy.Reconciler = true
	})
	w.pass(ledger.DefaultSettle)
	m, d, err := w.undo(w.byKey(w.mutation("a").Obligations[0]))
	w.ok(err)
	waive := func() error {
		now := w.byKey(m.Key)
		_, err := w.Resolve(t.Context(), ledger.Resolve{Key: now.Key, Version: now.Version, Action: ledger.OnSkip, Actor: "ada", Reason: "leave it"})
		return err
	}
	end := ledger.EndDispatch{Key: m.Key, Dispatch: *d, NextTryAt: w.now.Wall.Add(time.Minute)}
	end.Dispatch.Verdict, end.Dispatch.Ended = ledger.VerdictUncertain, w.now
	_, err = w.EndDispatch(t.Context(), end)
	w.ok(err)
	if err := waive(); !errors.Is(err, ledger.ErrNotAllowed) || w.byKey(m.Key).State != ledger.NeedsReconcile {
		t.Errorf("within settle: %v", err)
	}
	w.pass(ledger.DefaultSettle)
	if err := waive(); err != nil || w.byKey(m.Key).State != ledger.Skipped {
		t.Errorf("after settle: %v", err)
	}
	// Who says it once more isn't told that something may still take effect.
	if refusal, ok := errors.AsType[*ledger.NotAllowedError](waive()); !ok || refusal.Reason != "it was waived" {
		t.Errorf("once more: %+v", refusal)
	}
}

// That a person says, with force, that it did not happen ends no sending.
func TestAnUndoThatIsCalledFailedIsNotWaivedWhileItIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), owing("o2"), func(o *ledger.Observe) {
		o.Owed[0].Record.Policy = ledger.Policy{Reconciler: true, Resend: true, Idempotent: true}
	})
	w.pass(ledger.DefaultSettle)
	m, d, err := w.undo(w.byKey(w.mutation("a").Obligations[0]))
	w.ok(err)
	end := func(d *ledger.Dispatch) {
		t.Helper()
		f := ledger.EndDispatch{Key: m.Key, Dispatch: *d, NextTryAt: w.now.Wall.Add(time.Minute)}
		f.Dispatch.Verdict, f.Dispatch.Ended = ledger.VerdictUncertain, w.now
		_, err := w.EndDispatch(t.Context(), f)
		w.ok(err)
	}
	resolve := func(action ledger.Trigger) error {
		t.Helper()
		now := w.byKey(m.Key)
		_, err := w.Resolve(t.Context(), ledger.Resolve{
			Key: now.Key, Version: now.Version, Action: action, Force: action == ledger.OnDidNotHappen, Actor: "ada", Reason: "looked",
		})
		return err
	}
	end(d)
	m, again, err := w.Resend(t.Context(), ledger.Resend{Key: m.Key, Version: w.byKey(m.Key).Version, DispatchID: w.id(), Deadline: time.Minute})
	w.ok(err)
	w.ok(resolve(ledger.OnDidNotHappen))
	w.pass(time.Hour)
	if err := resolve(ledger.OnSkip); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("while it is sent: %v", err)
	}
	end(again)
	w.pass(ledger.DefaultSettle - 1)
	if err := resolve(ledger.OnSkip); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("before settle is over: %v", err)
	}
	w.pass(1)
	if err := resolve(ledger.OnSkip); err != nil || w.byKey(m.Key).State != ledger.Skipped {
		t.Errorf("after settle: %v", err)
	}
}

func TestWhatAPersonWantsUndoneIsQueued(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.decide("a", ledger.OnHappened, none, func(r *ledger.Resolve) {
		var planned ledger.Observe
		owing("o1")(&planned)
		r.Compensate = &planned.Owed[0]
	})
	if m := w.byKey(w.is("a", ledger.Applied).Obligations[0]); !m.Queued() || m.Undo.Auto {
		t.Errorf("queued %v, auto %v", m.Queued(), m.Undo.Auto)
	}
}

// What is under way behind an undo would stand although it counts as taken back.
func TestAnUndoWaitsForWhatItTakesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", func(q *ledger.Claim) { q.Record.Policy.Resend, q.Record.Policy.Natural = true, true })
	w.pass(ledger.DefaultSettle)
	again := w.resend("a")
	w.decide("a", ledger.OnHappened, none, func(r *ledger.Resolve) {
		var planned ledger.Observe
		owing("o1")(&planned)
		r.Compensate = &planned.Owed[0]
	})
	undo := w.mutation("a").Obligations[0]
	waits := func(when string) {
		t.Helper()
		m, d := w.again(w.byKey(undo))
		if d != nil || !m.Queued() || len(m.Dispatches) != 0 || !m.NextTryAt.Equal(w.now.Wall.Add(time.Minute)) {
			t.Errorf("%s it is %s, sent as %+v, queued %v for %v", when, m.State, d, m.Queued(), m.NextTryAt)
		}
	}
	w.pass(time.Hour)
	waits("while another sending is under way")
	again.Ended = w.now
	w.finish("a", again, ledger.VerdictUncertain)
	w.pass(ledger.DefaultSettle - 1)
	waits("before settle is over")
	w.pass(1)
	if m, d := w.again(w.byKey(undo)); d == nil || m.State != ledger.InFlight {
		t.Errorf("after settle it is %s, sent as %+v", m.State, d)
	}
}

// The answer that comes late is that of what is taken back: nobody is told that it stands.
func TestNoAnswerIsKeptOfWhatIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	again := w.resend("a")
	w.decide("a", ledger.OnHappened, none, func(r *ledger.Resolve) {
		var planned ledger.Observe
		owing("o1")(&planned)
		r.Compensate = &planned.Owed[0]
	})
	w.finish("a", again, ledger.VerdictApplied)
	if m := w.is("a", ledger.Applied); m.ResultState == ledger.ResultKnown || m.Result != nil {
		t.Errorf("result %q: %+v", m.ResultState, m.Result)
	}
}

// Its question is a person's to answer, and isn't closed by asking for another sending.
func TestAnUndoOfUnknownOutcomeIsNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, newer := w.owes("a")
	m, d, err := w.undo(newer)
	w.ok(err)
	end := ledger.EndDispatch{Key: m.Key, Dispatch: *d}
	end.Dispatch.Verdict = ledger.VerdictUncertain
	_, err = w.EndDispatch(t.Context(), end)
	w.ok(err)
	if _, _, err := w.undo(w.byKey(m.Key)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("got %v, want a refusal", err)
	}
	if m := w.byKey(m.Key); m.State != ledger.Indeterminate || !m.Escalated() {
		t.Errorf("it is %s, a person is asked: %v", m.State, m.Escalated())
	}
}

func TestWhatIsOwedIsNotSkippedWithItsItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	older, newer := w.owes("a")
	r := w.open(returns)
	w.finish("b", w.send(r, "b"), ledger.VerdictFailed)
	_, err := w.EndRun(t.Context(), r.ID, verdict.Logic, "over", "ada")
	w.ok(err)
	_, err = w.DecideItem(t.Context(), ledger.DecideItem{
		Workflow: "w", Item: "i", Action: ledger.ItemSkip, WithMutations: true, Actor: "ada", Reason: "leave it",
	})
	w.ok(err)
	w.is("b", ledger.Skipped)
	for _, m := range []*ledger.Mutation{older, newer} {
		if now := w.byKey(m.Key); now.State != ledger.Failed {
			t.Errorf("what takes back %s is %s", now.Undo.Object, now.State)
		}
	}
}

// That a person is asked about the newer one doesn't mean that it is given up: it may be under way.
func TestAnOlderEffectWaitsForANewerUndoOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	older, newer := w.owes("a")
	_, d, err := w.undo(newer)
	w.ok(err)
	end := ledger.EndDispatch{Key: newer.Key, Dispatch: *d}
	end.Dispatch.Verdict = ledger.VerdictUncertain
	_, err = w.EndDispatch(t.Context(), end)
	w.ok(err)
	if m := w.byKey(newer.Key); m.State != ledger.Indeterminate || !m.Escalated() {
		t.Fatalf("the newer one is %s, a person is asked: %v", m.State, m.Escalated())
	}
	if _, _, err := w.undo(older); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("the older one: %v", err)
	}
}

// Who acknowledges that an undo was given up doesn't hold up the older ones, of which nobody
// would be asked; who has it sent again does.
func TestAnOlderEffectDoesNotWaitForAnUndoThatIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	older, newer := w.owes("a")
	giveUp := func() *ledger.Mutation {
		t.Helper()
		m, err := w.RunObligation(t.Context(), ledger.RunObligation{Key: newer.Key, Version: w.byKey(newer.Key).Version, Actor: "ada", Reason: "twice"})
		w.ok(err)
		if _, _, err := w.undo(w.byKey(older.Key)); !errors.Is(err, ledger.ErrNotAllowed) {
			t.Fatalf("while the newer one is queued: %v", err)
		}
		m, err = w.CallOffRedispatch(t.Context(), m.Key, m.Version, time.Time{}, "it can't be sent")
		w.ok(err)
		w.pass(time.Minute)
		return m
	}
	for range 2 {
		m := giveUp()
		_, err := w.Resolve(t.Context(), ledger.Resolve{Key: m.Key, Version: m.Version, Action: ledger.OnAcknowledge, Actor: "ada", Reason: "seen"})
		w.ok(err)
		w.pass(time.Minute)
	}
	if m, d, err := w.undo(w.byKey(older.Key)); err != nil || d == nil {
		t.Errorf("after it was acknowledged: %v, %+v", err, m)
	}
}

// An undo needs no open item, but nothing goes on in a scope that is stopped.
func TestAnUndoWaitsForItsScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, newer := w.owes("a")
	w.unknown("b")
	m, d, err := w.undo(newer)
	w.ok(err)
	if d != nil || !m.Queued() || len(m.Dispatches) != 0 {
		t.Fatalf("it is %s, sent as %+v", m.State, d)
	}
	w.decide("b", ledger.OnHappened, given)
	if m, d := w.again(m); d == nil || m.State != ledger.InFlight {
		t.Errorf("afterwards it is %s", m.State)
	}
}
