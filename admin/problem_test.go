package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

func TestProblemOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		err    error
		status int
		kind   string
		says   string
		silent string
	}{
		{"a problem stays itself", refuse("role", "No."), 403, "role", "No.", ""},
		{"a problem that was wrapped", fmt.Errorf("x: %w", BadRequest("/a", "b", "c")), 400, "bad-request", "/a: b; c", "x:"},
		{"no record", ledger.ErrNotFound, 404, "not-found", "no such record", ""},
		{"a wrong command", fmt.Errorf("%w: a decision needs an actor", ledger.ErrInvalid), 400, "bad-request", "a decision needs an actor", ""},
		{"a version", fmt.Errorf("m-1: %w", ledger.ErrVersion), 409, "version", "read it again", "m-1"},
		{"a done item", fmt.Errorf("%w: item \"7\" is skipped", ledger.ErrItemDone), 409, "item-done", `item "7" is skipped`, ""},
		{"a busy item", ledger.ErrItemBusy, 409, "item-busy", "takeover", ""},
		{"an item that waits", ledger.ErrItemAttention, 409, "item-attention", "GET /v1/escalations", ""},
		{"an attempt", ledger.ErrAttempt, 409, "attempt", "leave attempt out", ""},
		{"an unfinished run", ledger.ErrRunUnfinished, 409, "run-unfinished", "can't finish as done", ""},
		{"a run that is over", ledger.ErrRunEnded, 409, "run-ended", "open a new one", ""},
		{"a dropped body", ledger.ErrBodyDropped, 410, "body-dropped", "its digest is kept", ""},
		{"damage", fmt.Errorf("/data/1.sst: %w", ledger.ErrDamaged), 500, "ledger-damaged", "ledger verify", "/data"},
		{"a later program's", fmt.Errorf("/data: %w", ledger.ErrFormat), 503, "ledger-unavailable", "version that ran on it last", "/data"},
		{"little space", fmt.Errorf("/data: %w", ledger.ErrLowSpace), 503, "ledger-unavailable", "nothing was changed", "/data"},
		{"a store that broke", fmt.Errorf("/data: %w", ledger.ErrUnavailable), 503, "ledger-unavailable", "after a restart", "/data"},
		{"what the table doesn't hold", ledger.ErrNotAllowed, 409, "not-allowed", "doesn't allow", ""},
		{"a caller that has gone", context.Canceled, 500, "internal", "log has the cause", "canceled"},
		{"anything else", errors.New("password is hunter2"), 500, "internal", "log has the cause", "hunter2"},
		{"a stop without its cause", &ledger.BlockedError{}, 423, "blocked", "keep-proxy status", ""},
		{"a stop", &ledger.BlockedError{Blockers: []ledger.Blocker{{ID: "m-1", Item: "7", Run: "r-1", State: ledger.NeedsReconcile}}}, 423, "blocked",
			`Mutation m-1 of item "7" is unresolved (needs_reconcile) and stops the workflow`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := problemOf(c.err)
			if p.Status != c.status || p.Name() != c.kind || p.Title == "" {
				t.Errorf("got %d %s, want %d %s", p.Status, p.Type, c.status, c.kind)
			}
			if !strings.Contains(p.Detail, c.says) {
				t.Errorf("detail %q doesn't say %q", p.Detail, c.says)
			}
			if c.silent != "" && strings.Contains(p.Detail, c.silent) {
				t.Errorf("detail %q says %q", p.Detail, c.silent)
			}
		})
	}
}

func TestProblemOfAStopNamesTheMutation(t *testing.T) {
	t.Parallel()
	p := problemOf(&ledger.BlockedError{Blockers: []ledger.Blocker{{ID: "m-1", Item: "7", Run: "r-1", State: ledger.Indeterminate}}})
	if p.Mutation == nil || *p.Mutation != (wire.MutationRef{ID: "m-1", State: "indeterminate"}) || p.Run != "r-1" || p.Item != "7" || p.Class != "indeterminate" {
		t.Errorf("got %+v", p)
	}
}

func TestProblemOfARefusedDecisionNamesOpenActions(t *testing.T) {
	t.Parallel()
	p := problemOf(fmt.Errorf("resolve: %w", &ledger.NotAllowedError{
		State: ledger.Applied, On: ledger.OnSkip, Reason: "it happened", Open: []ledger.Trigger{ledger.OnAcknowledge},
	}))
	if p.Name() != "not-allowed" || p.Detail != "skip isn't possible while the mutation is applied: it happened." || len(p.Actions) != 1 || p.Actions[0].Action != "acknowledge" {
		t.Errorf("got %+v", p)
	}
}
