package admin_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"keep-proxy/admin"
	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// undoing plans an undo, as a rule with compensate does.
func undoing(c *admin.Config) {
	c.PlanUndo = func(_ context.Context, m *ledger.Mutation, object string) (ledger.Owed, error) {
		return ledger.Owed{Object: object, Record: ledger.Mutation{
			Intent: ledger.Intent{Operation: m.Operation + ledger.UndoSuffix, Target: "Undo " + object},
			Payload: ledger.Payload{
				PayloadDigest: digest(object), Policy: m.Policy,
				Request: ledger.Request{Method: http.MethodDelete, URL: "https://bank.example/transfers/" + object},
			},
		}}, nil
	}
}

// TestARefusedDecisionOnAnObligationNamesWhatWasAsked has no words of the mutation's own decisions,
// which neither the request nor the command line of an obligation knows.
func TestARefusedDecisionOnAnObligationNamesWhatWasAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, undoing)
	_, m := w.unknown("order-1")
	w.clock.advance(ledger.DefaultSettle * 2)
	decided, err := w.client.Resolve(t.Context(), m.ID, wire.Resolve{
		Action: wire.ActionHappened, NoResult: true, Compensate: true, Object: "tr_1", Reason: "x", Actor: "ada", Version: m.Version,
	})
	if err != nil || len(decided.Obligations) != 1 {
		t.Fatalf("decided %+v, %v", decided, err)
	}
	owed := func(more string) ask {
		list, err := w.client.Obligations(t.Context(), client.Filter{All: true})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("owed %+v, %v", list, err)
		}
		o := list.Items[0]
		return ask{
			method: http.MethodPost, path: "/v1/obligations/" + o.ID + "/" + more,
			body: `{"reason":"x","actor":"ada","version":` + strconv.FormatInt(o.Version, 10) + `}`,
		}
	}
	if got := w.do(owed("waive")); got.status != http.StatusOK {
		t.Fatalf("waived: %d %s", got.status, got.body)
	}
	for more, want := range map[string]string{
		"run":   "The obligation can't be run: it was waived already.",
		"waive": "The obligation can't be waived: it was waived already.",
	} {
		if p := w.refused(owed(more), http.StatusConflict, "not-allowed"); p.Detail != want || strings.Contains(p.Detail, "skip") {
			t.Errorf("%s: %q, want %q", more, p.Detail, want)
		}
	}
}
