package ledger_test

import (
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// To close a question alone leaves something behind in most cases. Who closes it is told what,
// and what ends it.
func TestWhoClosesAQuestionIsToldWhatWaitsOn(t *testing.T) {
	t.Parallel()
	failed := func(c verdict.Class) func(*world) {
		return func(w *world) { w.finish("a", w.send(w.open(), "a"), ledger.VerdictFailed, class(c)) }
	}
	for kind, c := range map[string]struct {
		before func(*world)
		told   string
	}{
		ledger.EscalationNoResult:     {states["applied, escalated"], "later runs are refused at it"},
		ledger.EscalationMismatch:     {states["applied, disputed"], "keep-proxy items reopen"},
		ledger.EscalationPermission:   {failed(verdict.Permission), "the next run that asks for the mutation sends it again"},
		ledger.EscalationPrecondition: {failed(verdict.Precondition), "the next run that asks for the mutation sends it again"},
		ledger.EscalationDuplicate: {func(w *world) {
			w.unknown("a")
			w.see("a", ledger.SeenDuplicate, strong, objects("o1", "o2"))
		}, "keep-proxy obligations list"},
		ledger.EscalationAmbiguous: {func(w *world) {
			w.applied("b", version("v1"))
			w.applied("a", version("v2", under("v1", "")))
			w.claim(w.open(), "a", version("v2", under("v1", "b")), allowDrift)
		}, "keep-proxy items new-attempt"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			w.escalated("a", kind)
			if said := w.consequence("a", ledger.OnAcknowledge); !strings.Contains(said, c.told) {
				t.Errorf("a person is told %q, without %q", said, c.told)
			}
		})
	}
}

// A script that gets an answer goes on. Whoever takes a decision to hold it back is told that the
// rule may have one for it.
func TestWhoLeavesNoResultIsToldThatTheRuleMayHaveOne(t *testing.T) {
	t.Parallel()
	for on, key := range map[ledger.Trigger]string{ledger.OnSkip: "on_skip", ledger.OnHappened: "on_no_result"} {
		w := newWorld(t)
		w.unknown("a")
		if said := w.consequence("a", on); !strings.Contains(said, "refused") || !strings.Contains(said, key) {
			t.Errorf("of %s a person is told %q", on, said)
		}
	}
}

func TestWhoIsAskedAboutAnUndoIsToldHowItIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, newer := w.owes("a")
	m, err := w.RunObligation(t.Context(), ledger.RunObligation{Key: newer.Key, Version: newer.Version, Actor: "ada", Reason: "twice"})
	w.ok(err)
	m, err = w.CallOffRedispatch(t.Context(), m.Key, m.Version, time.Time{}, "it can't be sent")
	w.ok(err)
	if m.Escalation.Kind != ledger.EscalationUndo {
		t.Fatalf("a person is asked about %q", m.Escalation.Kind)
	}
	for _, a := range w.Actions(m, w.now) {
		if a.Action == ledger.OnAcknowledge {
			if !strings.Contains(a.Consequence, "keep-proxy obligations run") {
				t.Errorf("a person is told %q", a.Consequence)
			}
			return
		}
	}
	t.Error("the question can't be closed")
}
