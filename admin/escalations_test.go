package admin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/admin"
	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

func TestEscalationsSayAllThatIsNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run, m := w.unknown("order-1")
	w.clock.advance(90*time.Minute + 400*time.Millisecond)
	list, err := w.client.Escalations(t.Context(), client.Filter{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("escalations: %+v, %v", list, err)
	}
	got := list.Items[0]
	want := wire.Escalation{
		ID: m.Escalation.ID, Mutation: m.ID, Version: m.Version, State: "indeterminate", Kind: "indeterminate",
		OpenedAt: start.Add(1500 * time.Millisecond), Waits: wire.Duration(90 * time.Minute),
		Connector: "bank", Operation: "transfer", Account: "acct-1", Target: "Transfer 7 to Ann",
		Attempted: "Transfer 7 to Ann: POST https://bank.example/transfers as acct-1, sent once.",
		Asked:     m.Escalation.Why,
		WhyUnknown: "Sending 1 at 2026-03-01 12:00:00.000Z: 412 bytes written, no answer (reset: connection reset by peer), ended after 1.5s. " +
			"It may have taken effect or not (the connection broke before an answer).",
		Evidence: got.Evidence, Observations: []wire.Observation{},
		Probed:       "Nothing was asked: the rule knows no way to ask this API.",
		CannotVerify: "The rule knows no way to ask this API.",
		ManualCheck:  "Look for transfer 7 in the bank's books.",
		Actions:      got.Actions,
		Workflow:     "billing", Item: "order-1", Attempt: 1, Run: run.ID, ResumeHint: "make bill ITEM=order-1",
		Blocks: &wire.Blocks{Scope: "workflow", Name: "billing"},
	}
	if diff := different(got, want); diff != "" {
		t.Error(diff)
	}
	if len(got.Evidence) != 1 || got.Evidence[0].BytesWritten != 412 {
		t.Errorf("evidence %+v", got.Evidence)
	}
	if len(got.Actions) == 0 || got.Asked == "" {
		t.Errorf("actions %+v, asked %q", got.Actions, got.Asked)
	}
	for _, a := range got.Actions {
		if a.Consequence == "" || a.NeedsForce {
			t.Errorf("action %+v: nothing needs force once no sending can take effect any more", a)
		}
	}
}

func TestEscalationsEndWithTheirDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	if _, err := w.client.Resolve(t.Context(), m.ID, wire.Resolve{Action: wire.ActionSkip, Actor: "ann", Reason: "r", Version: m.Version}); err != nil {
		t.Fatal(err)
	}
	if got := w.do(ask{path: "/v1/escalations"}).body; got != `{"items":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestEscalationsWithoutARule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		rule rule
		text string
		logs string
	}{
		{"the rule gives no check", rule{}, "The rule gives no manual check: look in bank whether this is there: Transfer 7 to Ann.", ""},
		{"the rules fail", rule{err: errors.New("compiled to nothing")}, "The rule gives no manual check: look in bank", "compiled to nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(config *admin.Config) { config.Explainer = c.rule })
			w.unknown("order-1")
			list, err := w.client.Escalations(t.Context(), client.Filter{})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("a question must be shown without its check: %+v, %v", list, err)
			}
			if !strings.Contains(list.Items[0].ManualCheck, c.text) {
				t.Errorf("manual check %q", list.Items[0].ManualCheck)
			}
			if !strings.Contains(w.log.String(), c.logs) {
				t.Errorf("the log doesn't say %q: %s", c.logs, w.log.String())
			}
		})
	}
}

func TestEscalationsOfAnAPIThatWasAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	i := transfer(&run.Run)
	i.policy = ledger.Policy{Reconciler: true, BlockScope: ledger.BlockItem, Settle: time.Minute, Confirmations: 1, OnAbsent: ledger.AbsentEscalate}
	m := w.lose(w.claim(i))
	w.clock.advance(time.Hour)
	done, err := w.ledger.Observe(t.Context(), ledger.Observe{
		Key: m.Key, Version: m.Version, Reached: true, AbsenceIsProof: true,
		Observation: ledger.Observation{At: w.clock.now(), Strategy: "probe", Seen: ledger.SeenAbsent, Reason: "the listing is complete without it"},
	})
	if err != nil || done.Mutation.State != ledger.Indeterminate {
		t.Fatalf("observe: %+v, %v", done.Mutation, err)
	}
	list, err := w.client.Escalations(t.Context(), client.Filter{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("escalations: %+v, %v", list, err)
	}
	got := list.Items[0]
	if got.Probed != "2026-03-01 13:00:01.500Z probe: it isn't there (the listing is complete without it)." {
		t.Errorf("probed %q", got.Probed)
	}
	if !got.CanVerify || got.CannotVerify != "" || len(got.Observations) != 1 {
		t.Errorf("can_verify %t %q, observations %+v", got.CanVerify, got.CannotVerify, got.Observations)
	}
	blocks := wire.Blocks{Scope: "item", Name: "billing/order-1"}
	if got.Blocks == nil || *got.Blocks != blocks {
		t.Errorf("blocks %+v", got.Blocks)
	}
	shown, err := w.client.Mutation(t.Context(), m.ID)
	if err != nil || shown.CanVerify == nil || !*shown.CanVerify || shown.ManualCheck != got.ManualCheck || shown.Blocks == nil || *shown.Blocks != blocks {
		t.Errorf("the mutation shows %+v, %v", shown, err)
	}
	status, err := w.client.Status(t.Context())
	if err != nil || len(status.Stopped) != 1 || status.Stopped[0].Reason != "the listing is complete without it" {
		t.Errorf("status %+v, %v", status, err)
	}
}

// While settle runs no try counts towards the last one. It is told all the same.
func TestStatusTellsEachTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	i := transfer(&run.Run)
	i.policy = ledger.Policy{Reconciler: true, Settle: time.Minute}
	m := w.lose(w.claim(i))
	w.clock.advance(time.Second)
	if _, err := w.ledger.Observe(t.Context(), ledger.Observe{
		Key: m.Key, Version: m.Version, Reached: true,
		Observation: ledger.Observation{At: w.clock.now(), Strategy: "probe", Seen: ledger.SeenRetry},
	}); err != nil {
		t.Fatal(err)
	}
	if status, err := w.client.Status(t.Context()); err != nil || len(status.Stopped) != 1 || status.Stopped[0].Tries != 1 {
		t.Errorf("status %+v, %v", status, err)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	clean, err := w.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	serves := &wire.Mode{Mode: wire.ModeServing}
	if diff := different(clean, wire.Status{LedgerID: w.store.ID(), Healthy: true, Stopped: []wire.Stopped{}, Mode: serves}); diff != "" {
		t.Error(diff)
	}
	_, m := w.unknown("order-1")
	w.clock.advance(time.Hour)
	got, err := w.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := start.Add(1500 * time.Millisecond)
	want := wire.Status{
		Mode:     serves,
		LedgerID: w.store.ID(), Healthy: true, Unknown: 1, Escalated: 1, Since: at,
		Stopped: []wire.Stopped{{Blocks: wire.Blocks{Scope: "workflow", Name: "billing"}, Mutation: m.ID, State: "indeterminate", Since: at, Reason: m.Reason, Target: m.Target}},
	}
	if diff := different(got, want); diff != "" {
		t.Error(diff)
	}
	w.store.FailBefore()
	w.do(ask{method: "POST", path: "/v1/runs", body: `{"workflow":"w","once":true}`})
	broken, err := w.client.Status(t.Context())
	if err != nil || broken.Healthy || broken.Health == "" {
		t.Errorf("status of a broken ledger: %+v, %v", broken, err)
	}
}
