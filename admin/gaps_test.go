package admin_test

import "testing"

// What is confirmed and isn't in the ledger is sent: less must not become more.
func TestConfirmingAGapRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct{ name, body, words string }{
		{"nothing named", `{"reason":"x","actor":"ada"}`, "/workflow: missing"},
		{"everything, and a workflow", `{"all":true,"workflow":"billing","reason":"x","actor":"ada"}`, "/all: given with a workflow"},
		{"an item without its workflow", `{"all":true,"item":"order-1","reason":"x","actor":"ada"}`, "/item: given without its workflow"},
		{"an item that is empty, where without one all of the workflow is confirmed", `{"workflow":"billing","item":"","reason":"x","actor":"ada"}`, "/item: empty; give a value, or leave it out"},
		{"no reason", `{"workflow":"billing","actor":"ada"}`, "/reason: missing"},
		{"no actor", `{"workflow":"billing","reason":"x"}`, "/actor: missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(ask{method: "POST", path: "/v1/ledger/confirm", body: c.body}, 400, "bad-request", c.words)
		})
	}
}
