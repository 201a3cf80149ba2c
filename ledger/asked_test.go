package ledger_test

import (
	"slices"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// questions are the kinds that are open: the one that is shown, and before it those that it
// displaced.
func (w *world) questions(name string, want ...string) {
	w.t.Helper()
	m := w.mutation(name)
	var got []string
	for _, e := range m.Displaced {
		got = append(got, e.Kind)
	}
	if m.Escalated() {
		got = append(got, m.Escalation.Kind)
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("asked about %s is %q, want %q", name, got, want)
	}
}

func TestAQuestionThatIsDisplacedIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"))
	first := w.mutation("a").Escalation
	w.pass(time.Hour)
	w.claim(w.open(), "a", payload("other"))
	w.questions("a", ledger.EscalationDuplicate, ledger.EscalationMismatch)
	w.pass(time.Hour)
	w.decide("a", ledger.OnAccept)
	w.questions("a", ledger.EscalationDuplicate)
	again := w.mutation("a").Escalation
	if again.Number != 3 || again.ID != ledger.EscalationID(key("a").ID(), 3) || !again.OpenedAt.Equal(first.OpenedAt) || again.Why != first.Why ||
		!again.AskedAgain.Equal(w.now.Wall) {
		t.Errorf("asked again is %+v, first was %+v", again, first)
	}
	events, err := w.Events(t.Context(), key("a").ID(), 0, 100)
	w.ok(err)
	if e := events[len(events)-1]; e.Escalation != 3 || e.EscalationClosed {
		t.Errorf("the last event tells of escalation %d, closed %v", e.Escalation, e.EscalationClosed)
	}
	if i := w.item("i"); i.State != ledger.ItemOpen {
		t.Errorf("the item is %s", i.State)
	}
	w.decide("a", ledger.OnAcknowledge)
	w.questions("a")
}

func TestADriftTakesNoQuestionAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", drifting(ledger.DriftRefuse, "a"))
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"))
	w.claim(w.open(), "b", drifting(ledger.DriftRefuse, "b"))
	w.questions("a", ledger.EscalationDuplicate, ledger.EscalationDrift)
	w.decide("a", ledger.OnAcknowledge)
	w.questions("a", ledger.EscalationDuplicate)
	if i := w.item("i"); i.State != ledger.ItemOpen {
		t.Errorf("the item is %s", i.State)
	}
}

func TestOnlyItsAnswerClosesAQuestion(t *testing.T) {
	t.Parallel()
	followedAndRefused := func(w *world) {
		w.finish("a", w.send(w.open(), "a", watched), ledger.VerdictAccepted, status202)
		w.claim(w.open(takeover), "a", watched, payload("other"))
	}
	for _, c := range []struct {
		name   string
		before func(*world)
		want   []string
	}{
		{"a missing result doesn't say what the duplicates are", func(w *world) {
			w.unknown("a")
			w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"), withoutResult)
			w.decide("a", ledger.OnHappened, given)
		}, []string{ledger.EscalationDuplicate}},
		{"a missing result doesn't say what the payload means", func(w *world) {
			w.unknown("a")
			w.see("a", ledger.SeenApplied, withoutResult)
			w.claim(w.open(), "a", payload("other"))
			w.questions("a", ledger.EscalationNoResult, ledger.EscalationMismatch)
			w.decide("a", ledger.OnHappened, given)
		}, []string{ledger.EscalationMismatch}},
		{"what was accepted takes effect", func(w *world) {
			followedAndRefused(w)
			w.see("a", ledger.SeenApplied)
		}, []string{ledger.EscalationMismatch}},
		{"what was accepted fails", func(w *world) {
			followedAndRefused(w)
			w.see("a", ledger.SeenFailed)
		}, []string{ledger.EscalationMismatch, ledger.EscalationPrecondition}},
		{"what was accepted doesn't end, and is looked for again", func(w *world) {
			followedAndRefused(w)
			w.pass(2 * time.Hour)
			w.see("a", ledger.SeenRetry)
			w.is("a", ledger.Indeterminate)
			w.questions("a", ledger.EscalationMismatch, ledger.EscalationIndeterminate)
			w.decide("a", ledger.OnCheckAgain)
		}, []string{ledger.EscalationMismatch}},
		{"a question about the outcome takes the place of an earlier one", func(w *world) {
			w.finish("a", w.send(w.open(), "a", noReconciler), ledger.VerdictFailed, class(verdict.Permission))
			w.finish("a", w.send(w.open(), "a", noReconciler), ledger.VerdictUncertain)
		}, []string{ledger.EscalationIndeterminate}},
		{"what is skipped is asked about no more", func(w *world) {
			followedAndRefused(w)
			w.see("a", ledger.SeenFailed)
			w.decide("a", ledger.OnSkip)
		}, nil},
		{"the item lets runs in again", func(w *world) {
			followedAndRefused(w)
			w.see("a", ledger.SeenFailed)
			w.reopen("i")
		}, []string{ledger.EscalationPrecondition}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			w.questions("a", c.want...)
		})
	}
}

func (w *world) reopen(item string) {
	w.t.Helper()
	_, err := w.DecideItem(w.t.Context(), ledger.DecideItem{
		Workflow: "w", Item: item, Action: ledger.ItemReopen, Actor: "ada", Reason: "the script is mended",
	})
	w.ok(err)
}

// While the item waits for a person, one must be able to find the question.
func TestTheEndOfAWatchLeavesAPersonsQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("a", w.send(w.open(), "a", watched), ledger.VerdictAccepted, status202)
	w.claim(w.open(takeover), "a", watched, payload("other"))
	w.see("a", ledger.SeenApplied)
	w.escalated("a", ledger.EscalationMismatch)
	if i := w.item("i"); i.State != ledger.ItemNeedsAttention {
		t.Errorf("the item is %s", i.State)
	}
	w.decide("a", ledger.OnAccept)
	if out := w.claim(w.open(), "a", watched, payload("other")); out.Decision != ledger.DecideReplay {
		t.Errorf("the accepted payload: %q", out.Decision)
	}
}

func TestARefusedPayloadIsNoAnswerToAnotherQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", drifting(ledger.DriftRefuse, "a"))
	w.claim(w.open(), "a", payload("other"), drifting(ledger.DriftRefuse, "a"))
	w.reopen("i")
	if m := w.mutation("a"); m.Disputed != "" {
		t.Errorf("disputed is %q, although the item was opened", m.Disputed)
	}
	w.claim(w.open(), "b", drifting(ledger.DriftRefuse, "b"))
	w.escalated("a", ledger.EscalationDrift)
	if w.offers("a", ledger.OnAccept) {
		t.Error("a payload can be accepted, where a drift is asked about")
	}
	w.reopen("i")
	w.claim(w.open(), "a", payload("other"), drifting(ledger.DriftRefuse, "a"))
	w.questions("a", ledger.EscalationDrift, ledger.EscalationMismatch)
	w.decide("a", ledger.OnAccept)
	w.questions("a", ledger.EscalationDrift)
	if i := w.item("i"); i.State != ledger.ItemNeedsAttention {
		t.Errorf("the item is %s, although a drift is asked about", i.State)
	}
	w.decide("a", ledger.OnAcknowledge)
	if i := w.item("i"); i.State != ledger.ItemOpen {
		t.Errorf("the item is %s", i.State)
	}
}

// offers reports whether a person may take the decision now.
func (w *world) offers(name string, on ledger.Trigger) bool {
	return slices.ContainsFunc(w.Actions(w.mutation(name), w.now), func(a ledger.Action) bool { return a.Action == on })
}

func TestAWorldThatDisagreesTakesNoQuestionAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"))
	r := w.open()
	_, _, err := w.Verified(t.Context(), ledger.Verified{
		Key: key("a"), Run: r.ID, Mode: ledger.VerifyHuman, Said: ledger.SaidDisagrees, Reason: "gone",
	})
	w.ok(err)
	w.questions("a", ledger.EscalationDuplicate, ledger.EscalationVerify)
	w.decide("a", ledger.OnAcknowledge)
	w.questions("a", ledger.EscalationDuplicate)
	if m := w.mutation("a"); !m.Verification.Acknowledged || w.item("i").State != ledger.ItemOpen {
		t.Errorf("acknowledged %v, the item is %s", m.Verification.Acknowledged, w.item("i").State)
	}
}

func TestToAcknowledgeTakesNothingOutOfTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", redispatches, nativeKey)
	was := w.absent("a")
	w.claim(w.open(), "a", redispatches, nativeKey, payload("other"))
	w.escalated("a", ledger.EscalationMismatch)
	w.decide("a", ledger.OnAcknowledge)
	if m := w.is("a", ledger.Failed); !m.Queued() || !m.RedispatchSince.Equal(was.RedispatchSince) || !m.NextTryAt.Equal(was.NextTryAt) {
		t.Errorf("queued %v since %v, next try %v; was since %v, next try %v", m.Queued(), m.RedispatchSince, m.NextTryAt, was.RedispatchSince, was.NextTryAt)
	}
}

// What is sent again needs nobody's word on a sending before the last one.
func TestWhatIsQueuedIsAskedAboutNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	more := func(q *ledger.Claim) { q.Record.Policy.MaxDispatches = 3 }
	w.finish("a", w.send(w.open(), "a", redispatches, more), ledger.VerdictFailed, class(verdict.Permission))
	w.escalated("a", ledger.EscalationPermission)
	w.finish("a", w.send(w.open(), "a", redispatches, more), ledger.VerdictUncertain)
	w.escalated("a", ledger.EscalationPermission)
	if m := w.absent("a"); !m.Queued() || m.Escalated() || m.Escalation.ClosedBy != ledger.ActorRunner {
		t.Errorf("queued %v, escalated %v: %+v", m.Queued(), m.Escalated(), m.Escalation)
	}
}
