package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// restored opens a gap that began an hour ago, and recovers.
func (w *world) restored() ledger.Gap {
	w.t.Helper()
	since := w.now.Wall
	w.pass(time.Hour)
	w.use(w.store.Reopen(ledger.Process{ID: "p" + w.id(), Started: w.now}))
	g, err := w.Restored(w.t.Context(), since, "ada", "the disk died")
	w.ok(err)
	w.ok(w.MarkGaps(w.t.Context()))
	_, err = w.Recover(w.t.Context(), func(*ledger.Mutation) time.Time { return w.now.Wall })
	w.ok(err)
	w.pass(time.Second)
	return g
}

// began makes something happen before the gap, so that there is an event.
func (w *world) began() {
	w.t.Helper()
	_, err := w.FinishRun(w.t.Context(), w.open(item("before")).ID, "done", false)
	w.ok(err)
}

func TestWhatMayHaveBeenSentInAGapIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change []func(*ledger.Claim)
		want   ledger.State
	}{
		{"an operation that can be asked about", nil, ledger.NeedsReconcile},
		{"one that can't", []func(*ledger.Claim){noReconciler}, ledger.Indeterminate},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.began()
			g := w.restored()
			r := w.open()
			got := w.claim(r, "a", c.change...)
			if got.Decision != ledger.DecideBlocked || got.Dispatch != nil || !strings.Contains(got.Detail, "isn't known (restored)") {
				t.Fatalf("the claim is %+v", got)
			}
			m := w.is("a", c.want)
			if !m.CreatedAt.Equal(g.Since) || len(m.Dispatches) != 1 || m.Dispatches[0].Gap != g.Number || !m.ResendClosed {
				t.Errorf("the record is %+v", m)
			}
			if ledger.Settled(m, w.now, w.Process()) {
				t.Error("it counts as settled at once")
			}
		})
	}
}

func TestAfterItIsSettledAMutationOfAGapIsSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began()
	w.restored()
	w.claim(w.open(), "a")
	w.pass(ledger.DefaultSettle + time.Second)
	w.see("a", ledger.SeenAbsent)
	w.pass(ledger.DefaultSpacing + time.Second)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
	d := w.send(w.open(), "a")
	if d.Gap != 0 || d.Generation != 1 {
		t.Errorf("sent as %+v; want generation 1, as in the gap", d)
	}
	w.finish("a", d, ledger.VerdictApplied)
	w.is("a", ledger.Applied)
}

func TestWhatAGapDoesNotTouch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	w.finish("done", w.send(r, "done"), ledger.VerdictApplied)
	w.finish("failed", w.send(r, "failed"), ledger.VerdictFailed)
	g := w.restored()
	w.stands(r, ledger.RunPausedAttention, verdict.Indeterminate)
	r = w.open(returns)
	if got := w.claim(r, "done"); got.Decision != ledger.DecideReplay {
		t.Errorf("what was applied before: %+v", got)
	}
	if got := w.claim(w.open(returns, item("b")), "failed2"); got.Decision != ledger.DecideBlocked {
		t.Errorf("another item: %+v", got)
	}
	// It stops the workflow; what a person says of it lifts that.
	w.decide("failed2", ledger.OnDidNotHappen, force)
	r = w.open(returns, func(o *ledger.OpenRun) { o.Takeover = true })
	if got := w.claim(r, "failed"); got.Decision != ledger.DecideBlocked {
		t.Errorf("what failed before may have been done since: %+v", got)
	}
	m := w.is("failed", ledger.NeedsReconcile)
	if m.Generation != 2 || m.Current().Gap != g.Number {
		t.Errorf("generation %d, dispatch %+v", m.Generation, m.Current())
	}
	w.decide("failed", ledger.OnDidNotHappen, force)
	once := w.open(func(o *ledger.OpenRun) { o.Item, o.Attempt, o.Once = "", 0, true })
	if got := w.claim(once, "once", func(q *ledger.Claim) { q.Item = once.Item }); got.Decision != ledger.DecideDispatch {
		t.Errorf("an item whose name was drawn after the gap: %+v", got)
	}
}

// What was sent before the gap by a clock that was ahead was not sent after it.
func TestAGapIsNotToldByTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const ahead = 3 * time.Hour
	w.now.Wall = w.now.Wall.Add(ahead)
	w.finish("failed", w.send(w.open(returns), "failed"), ledger.VerdictFailed)
	w.now.Wall = w.now.Wall.Add(-ahead)
	w.restored()
	if got := w.claim(w.open(returns), "failed"); got.Decision != ledger.DecideBlocked {
		t.Fatalf("what may have been done in the gap: %+v", got)
	}
	w.decide("failed", ledger.OnDidNotHappen, force)
	r := w.open(returns, func(o *ledger.OpenRun) { o.Takeover = true })
	w.finish("failed", w.send(r, "failed"), ledger.VerdictFailed)
	if got := w.claim(r, "failed"); got.Decision != ledger.DecideDispatch {
		t.Errorf("what was sent after it: %+v", got)
	}
}

func TestUnresolvedMutationsMayHaveBeenSentAgainInAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.claim(w.open(), "flying")
	g := w.restored()
	m := w.is("flying", ledger.NeedsReconcile)
	if len(m.Dispatches) != 2 || m.Dispatches[1].Gap != g.Number || !m.Dispatches[0].Lost {
		t.Errorf("dispatches %+v", m.Dispatches)
	}
	if ledger.Settled(m, w.now, w.Process()) {
		t.Error("it counts as settled at once")
	}
	w.ok(w.MarkGaps(t.Context()))
	if again := w.mutation("flying"); again.Version != m.Version {
		t.Error("it was marked twice")
	}
}

// A person may have been asked in the gap too, and what they granted may have been sent.
func TestWhatAPersonWasAskedAboutMayHaveBeenSentAgainInAGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", noReconciler)
	w.pass(time.Hour)
	g := w.restored()
	if m := w.is("a", ledger.Indeterminate); m.Current().Gap != g.Number {
		t.Errorf("dispatches %+v", m.Dispatches)
	}
	if _, err := w.Resolve(t.Context(), w.decision("a", ledger.OnDidNotHappen)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("that it did not happen: %v", err)
	}
	w.pass(ledger.DefaultSettle)
	w.decide("a", ledger.OnDidNotHappen)
}

// Its vendor key may be that of a generation which ended in the gap.
func TestWhatWasUnknownBeforeAGapIsNotSentAgainToAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	w.pass(time.Hour)
	w.restored()
	m := w.is("a", ledger.NeedsReconcile)
	if ledger.ResendOpen(m, w.now, time.Second) {
		t.Error("it may be sent again to ask")
	}
	w.resendRefused("a", ledger.ErrNotAllowed, "after a gap")
}

// What was made in the first of them was not made before the claim.
func TestOfSeveralGapsTheFirstBeganFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began()
	first := w.restored()
	w.pass(time.Hour)
	second := w.restored()
	w.claim(w.open(), "a")
	if m := w.is("a", ledger.NeedsReconcile); !m.CreatedAt.Equal(first.Since) || second.Number != 2 {
		t.Errorf("it counts as claimed at %s; the gaps began at %s and %s", m.CreatedAt, first.Since, second.Since)
	}
	// Whoever knows what happened says so once.
	_, err := w.ConfirmGaps(t.Context(), ledger.ConfirmGap{Actor: "ada", Reason: "looked at the bank's list"})
	w.ok(err)
	w.decide("a", ledger.OnDidNotHappen, force)
	if got := w.claim(w.open(), "b"); got.Decision != ledger.DecideDispatch {
		t.Errorf("after both were confirmed: %+v", got)
	}
}

func TestConfirmingGaps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		confirm ledger.ConfirmGap
		a, b    ledger.Decision
	}{
		{"an item", ledger.ConfirmGap{Workflow: "wf", Item: "a"}, ledger.DecideDispatch, ledger.DecideBlocked},
		{"another workflow", ledger.ConfirmGap{Workflow: "other"}, ledger.DecideBlocked, ledger.DecideBlocked},
		{"another workflow's item", ledger.ConfirmGap{Workflow: "other", Item: "a"}, ledger.DecideBlocked, ledger.DecideBlocked},
		{"everything", ledger.ConfirmGap{}, ledger.DecideDispatch, ledger.DecideDispatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.began()
			w.restored()
			a, b := w.open(item("a")), w.open(item("b"))
			c.confirm.Actor, c.confirm.Reason = "ada", "looked at the bank's list"
			if c.confirm.Workflow == "wf" {
				c.confirm.Workflow = a.Workflow
			}
			_, err := w.ConfirmGaps(t.Context(), c.confirm)
			w.ok(err)
			byItem := func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockItem }
			if got := w.claim(a, "a", byItem); got.Decision != c.a {
				t.Errorf("item a: %+v", got)
			}
			if got := w.claim(b, "b", byItem); got.Decision != c.b {
				t.Errorf("item b: %+v", got)
			}
			_, err = w.ConfirmGaps(t.Context(), ledger.ConfirmGap{Actor: "ada", Reason: "all of it"})
			if closed := c.name == "everything"; errors.Is(err, ledger.ErrInvalid) != closed {
				t.Errorf("confirming again: %v", err)
			}
		})
	}
}

func TestARestoreSaidAgainOpensNoOtherGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began()
	first := w.restored()
	w.pass(time.Hour)
	again, err := w.Restored(t.Context(), first.Asked, "ada", "the same command line")
	w.ok(err)
	if again.Number != first.Number || !again.Until.Equal(first.Until) {
		t.Errorf("%+v, and then %+v", first, again)
	}
	if _, err := w.Restored(t.Context(), w.now.Wall.Add(time.Hour), "ada", "r"); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a copy from the future: %v", err)
	}
	other, err := w.Restored(t.Context(), first.Asked.Add(30*time.Minute), "ada", "another")
	w.ok(err)
	if other.Number != 2 {
		t.Errorf("another restore: %+v", other)
	}
}

// A copy that is older than was said knows nothing of the time between.
func TestAGapBeginsWithTheLastEventAtTheLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began()
	last := w.now.Wall
	w.pass(24 * time.Hour)
	g := w.restored()
	if !g.Since.Equal(last) {
		t.Errorf("since %s, want %s", g.Since, last)
	}
}

// Where nothing says when the gap began, nothing tells what was made in it from what was
// there before.
func TestInAGapWithoutABeginningAPersonIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(w.store.Update(t.Context(), func(tx ledger.Tx) error {
		return tx.PutGaps([]ledger.Gap{{Number: 1, Until: w.now.Wall, Cause: ledger.GapLoss, Actor: "person:ada", Reason: "a test"}})
	}))
	w.pass(time.Minute)
	if out := w.claim(w.open(), "a"); out.Decision != ledger.DecideBlocked {
		t.Errorf("%q %q", out.Decision, out.Detail)
	}
	if m := w.is("a", ledger.Indeterminate); m.Policy.Reconciler || !m.ResendClosed {
		t.Errorf("it can be asked about: %+v", m.Policy)
	}
}

// What was sent within the gap, of which this copy knows, is no proof of what was sent after.
func TestASendingWithinAGapDoesNotEndIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.began()
	since := w.now.Wall
	w.pass(10 * time.Minute)
	w.finish("failed", w.send(w.open(returns), "failed"), ledger.VerdictFailed)
	w.pass(time.Hour)
	w.use(w.store.Reopen(ledger.Process{ID: "p" + w.id(), Started: w.now}))
	g, err := w.Restored(t.Context(), since, "ada", "the disk died")
	w.ok(err)
	w.ok(w.MarkGaps(t.Context()))
	w.pass(time.Second)
	if got := w.claim(w.open(returns), "failed"); got.Decision != ledger.DecideBlocked {
		t.Fatalf("the claim is %+v", got)
	}
	if m := w.is("failed", ledger.NeedsReconcile); m.Current().Gap != g.Number {
		t.Errorf("dispatch %+v", m.Current())
	}
}

func TestWhatWasSeenBeforeAGapProvesNothingAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.pass(time.Hour)
	w.see("a", ledger.SeenAbsent)
	w.restored()
	w.pass(time.Hour)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.NeedsReconcile)
	w.pass(time.Minute)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.Failed)
}

// owedPolicies are how what is owed can be found out about, and the state that it has when a gap meets it.
var owedPolicies = []struct {
	name   string
	policy ledger.Policy
	state  ledger.State
}{
	{"it can be asked about", ledger.Policy{Reconciler: true, OnAbsent: ledger.AbsentFail}, ledger.NeedsReconcile},
	{"it can't", ledger.Policy{}, ledger.Indeterminate},
	{"sending it again changes nothing more", ledger.Policy{Reconciler: true, Resend: true, Idempotent: true}, ledger.InFlight},
}

// What is owed is a mutation of its own, and may have been taken back in the gap.
func TestWhatIsOwedMayHaveBeenUndoneInAGap(t *testing.T) {
	t.Parallel()
	for _, c := range owedPolicies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a")
			w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), owing("o2"), func(o *ledger.Observe) {
				o.Owed[0].Record.Policy = c.policy
			})
			owed := w.mutation("a").Obligations[0]
			g := w.restored()
			_, d, err := w.undo(w.byKey(owed))
			w.ok(err)
			m := w.byKey(owed)
			if m.State != c.state || (d != nil) != (c.state == ledger.InFlight) {
				t.Fatalf("it is %s, sent as %+v", m.State, d)
			}
			if d != nil {
				return
			}
			if m.Current().Gap != g.Number || !m.Current().Lost || !m.ResendClosed || ledger.Settled(m, w.now, w.Process()) {
				t.Errorf("resend closed %v, sending %+v", m.ResendClosed, m.Current())
			}
			if c.state == ledger.NeedsReconcile {
				w.undoneAfterAbsence(m)
			}
		})
	}
}

// undoneAfterAbsence has an undo believed not to be there, and wants it sent then.
func (w *world) undoneAfterAbsence(m *ledger.Mutation) {
	w.t.Helper()
	w.pass(ledger.DefaultSettle + time.Second)
	for range 2 {
		w.pass(ledger.DefaultSpacing + time.Second)
		seen := w.observation("a", ledger.SeenAbsent)
		seen.Key, seen.Version = m.Key, w.byKey(m.Key).Version
		_, err := w.Observe(w.t.Context(), seen)
		w.ok(err)
	}
	if m = w.byKey(m.Key); m.State != ledger.Failed || !m.Queued() || m.NextTryAt.IsZero() {
		w.t.Fatalf("it is %s, queued %v for %v", m.State, m.Queued(), m.NextTryAt)
	}
	if now, d := w.again(m); d == nil || d.Gap != 0 || now.Undo.Sent != 1 {
		w.t.Errorf("sent as %+v, %d times", d, now.Undo.Sent)
	}
}

// Nobody asks again for what is undone by itself: a restore doesn't take it from whom it waits for.
func TestWhatIsUndoneByItselfStaysSoAfterAGap(t *testing.T) {
	t.Parallel()
	for _, c := range owedPolicies {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a")
			w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), owing("o2"), func(o *ledger.Observe) {
				o.Owed[0].Auto, o.Owed[0].Record.Policy = true, c.policy
			})
			owed := w.mutation("a").Obligations[0]
			w.restored()
			if m := w.byKey(owed); !m.Queued() {
				t.Fatalf("it is %s, and waits for nothing", m.State)
			}
			if m, d := w.again(w.byKey(owed)); m.State != c.state || (d != nil) != (c.state == ledger.InFlight) {
				t.Errorf("it is %s, sent as %+v", m.State, d)
			}
		})
	}
}
