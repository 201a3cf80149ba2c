package admin_test

import (
	"math"
	"testing"

	"keep-proxy/ledger"
)

// What is counted for alerts is what status tells.
func TestCountsAreThoseOfStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	narrow := func(item string, n int, scope ledger.BlockScope, reconciler bool) intent {
		return intent{item: item, n: n, policy: ledger.Policy{BlockScope: scope, Reconciler: reconciler}, run: w.open(item).ID, body: "x"}
	}
	w.lose(w.claim(narrow("a", 1, ledger.BlockItem, false)))
	w.lose(w.claim(narrow("b", 2, ledger.BlockMutation, true)))
	// Two mutations of one workflow are one scope that stands still.
	run := w.open("c")
	first, second := transfer(&run.Run), transfer(&run.Run)
	second.n = 3
	// An item that waits, of a mutation whose effect is gone.
	gone := w.apply(w.claim(narrow("d", 4, ledger.BlockItem, false)), 201, "{}")
	if _, _, err := w.ledger.Verified(t.Context(), ledger.Verified{
		Key: gone.Key, Mode: ledger.VerifyHuman, Said: ledger.SaidDisagrees, Reason: "gone",
	}); err != nil {
		t.Fatal(err)
	}
	one, two := w.claim(first), w.claim(second)
	w.lose(one)
	w.lose(two)

	got, err := w.server.Count(t.Context(), math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	status, err := w.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Unresolved[ledger.Indeterminate] != 3 || got.Unresolved[ledger.NeedsReconcile] != 1 || status.Unknown != 4 {
		t.Errorf("unresolved %v, status says %d", got.Unresolved, status.Unknown)
	}
	if got.Escalations[ledger.EscalationIndeterminate] != 3 || got.Escalations[ledger.EscalationVerify] != 1 || status.Escalated != 4 {
		t.Errorf("escalations %v, status says %d", got.Escalations, status.Escalated)
	}
	if got.Stopped[ledger.BlockWorkflow] != 1 || got.Stopped[ledger.BlockItem] != 1 || got.Stopped[ledger.BlockMutation] != 1 {
		t.Errorf("scopes that stand still: %v", got.Stopped)
	}
	if got.Waiting != 1 || status.ItemsWaiting != 1 {
		t.Errorf("%d items wait, status says %d", got.Waiting, status.ItemsWaiting)
	}
	if few, err := w.server.Count(t.Context(), 2); err != nil || few.Escalations[ledger.EscalationIndeterminate] != 2 {
		t.Errorf("up to two: %+v, %v", few, err)
	}
}
