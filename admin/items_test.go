package admin_test

import (
	"testing"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// theItem reads the only item.
func (w *world) theItem() *wire.Item {
	w.t.Helper()
	list, err := w.client.Items(w.t.Context(), client.Filter{})
	if err != nil || len(list.Items) != 1 {
		w.t.Fatalf("items: %+v, %v", list, err)
	}
	i, err := w.client.Item(w.t.Context(), list.Items[0].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

func TestAnItemsHistoryGoesByAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	m := w.apply(w.claim(transfer(&run.Run)), 201, "{}")
	if _, err := w.client.FinishRun(t.Context(), run.ID, wire.FinishRun{Outcome: "done"}); err != nil {
		t.Fatal(err)
	}
	i := w.theItem()
	if i.State != "done" || different(i.Actions, []string{"reopen", "new_attempt"}) != "" {
		t.Errorf("the item is %s and allows %v", i.State, i.Actions)
	}
	_, err := w.client.NewAttempt(t.Context(), i.ID, wire.NewAttempt{DecideItem: wire.DecideItem{Reason: "it came back", Actor: "ada", Version: i.Version}, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	second := w.open("order-1")
	i = w.theItem()
	if i.Attempt != 2 || i.ActiveRun != second.ID || len(i.Attempts) != 2 {
		t.Fatalf("item %+v", i)
	}
	first := i.Attempts[0]
	if first.Attempt != 1 || len(first.Runs) != 1 || first.Runs[0].ID != run.ID || first.Runs[0].State != "finished" ||
		len(first.Mutations) != 1 || first.Mutations[0].ID != m.ID || first.Mutations[0].Next != "none" {
		t.Errorf("attempt 1: %+v", first)
	}
	if a := i.Attempts[1]; a.Attempt != 2 || len(a.Runs) != 1 || a.Runs[0].ID != second.ID || len(a.Mutations) != 0 {
		t.Errorf("attempt 2: %+v", a)
	}
	if len(i.Changes) != 1 || i.Changes[0].Actor != "person:ada" || i.Changes[0].What != "new_attempt" || i.Changes[0].From != "done" {
		t.Errorf("changes %+v", i.Changes)
	}
}

// TestWhatARepairFinds is what somebody who mends a failed item sees: what was applied before
// it failed, and what a re-run will be given and what it will send.
func TestWhatARepairFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	first := transfer(&run.Run)
	second := first
	second.n = 2
	applied := w.apply(w.claim(first), 201, "{}")
	failed := w.claim(second)
	next := func() map[string]string {
		out := map[string]string{}
		for _, m := range w.theItem().Attempts[0].Mutations {
			out[m.ID] = m.State + ", " + m.Next
		}
		return out
	}
	if got := next(); got[applied.ID] != "applied, replay" || got[failed.ID] != "in_flight, wait" {
		t.Errorf("before it failed: %v", got)
	}
	w.finish(ledger.EndDispatch{Key: failed.Key, Dispatch: ledger.Dispatch{
		ID: failed.Current().ID, Verdict: ledger.VerdictFailed, Class: verdict.Precondition, Reason: "the account is empty",
		Wire: ledger.Wire{BytesWritten: 412, Head: true, Status: 422, BodyComplete: true},
	}})
	if got := next(); got[applied.ID] != "applied, replay" || got[failed.ID] != "failed, send" {
		t.Errorf("after it failed: %v", got)
	}
	if i := w.theItem(); i.State != "failed" || i.Cause != failed.ID || i.Reason != "the account is empty" {
		t.Errorf("the item is %s because of %s: %q", i.State, i.Cause, i.Reason)
	}
	// A copy that was restored doesn't know whether it was sent since.
	if _, err := w.ledger.Restored(t.Context(), w.clock.now().Wall, "ada", "the disk is gone"); err != nil {
		t.Fatal(err)
	}
	if got := next(); got[applied.ID] != "applied, replay" || got[failed.ID] != "failed, blocked" {
		t.Errorf("after a restore: %v", got)
	}
	again := w.open("order-1")
	second.run = again.ID
	if _, err := w.client.ConfirmGap(t.Context(), wire.ConfirmGap{Workflow: "billing", Reason: "it isn't there", Actor: "ada"}); err != nil {
		t.Fatal(err)
	}
	if got := next(); got[failed.ID] != "failed, send" {
		t.Errorf("once a person has looked: %v", got)
	}
	w.claim(second)
}

func TestARerunOfAMutation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	if got := w.theItem().Attempts[0].Mutations[0].Next; got != "blocked" {
		t.Errorf("an unknown one: %q", got)
	}
	if _, err := w.client.Resolve(t.Context(), m.ID, wire.Resolve{Action: "skip", Reason: "x", Actor: "ada", Version: m.Version}); err != nil {
		t.Fatal(err)
	}
	if got := w.theItem().Attempts[0].Mutations[0].Next; got != "refused" {
		t.Errorf("a skipped one: %q", got)
	}
	run := w.open("order-1")
	if a := ledger.ItemID("billing", "order-1"); a != w.theItem().ID {
		t.Errorf("the id is %s, not %s", w.theItem().ID, a)
	}
	_, err := w.client.CloseItem(t.Context(), w.theItem().ID, wire.DecideItem{Reason: "x", Actor: "ada"})
	problemIn(t, err, 409, "item-busy", run.ID)
}

func TestDecisionsOnItemsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.unknown("order-1")
	path := "/v1/items/" + w.theItem().ID
	for _, c := range []struct {
		name, path, body string
		status           int
		problem          string
		words            []string
	}{
		{"no reason", path + "/done", `{"actor":"ada"}`, 400, "bad-request", []string{"/reason: missing"}},
		{"no actor", path + "/reopen", `{"reason":"x"}`, 400, "bad-request", []string{"/actor: missing"}},
		{"no attempt", path + "/new-attempt", `{"reason":"x","actor":"ada"}`, 400, "bad-request", []string{"/attempt: missing"}},
		{"another attempt", path + "/new-attempt", `{"reason":"x","actor":"ada","attempt":2}`, 409, "attempt", []string{"attempt 1, not 2", "decide on what it says now"}},
		{"an unknown", path + "/done", `{"reason":"x","actor":"ada"}`, 409, "item-unresolved", []string{"indeterminate"}},
		{"a version that is not its own", path + "/skip", `{"reason":"x","actor":"ada","version":99,"with_mutations":true}`, 409, "version", nil},
		{"a key of another decision", path + "/done", `{"reason":"x","actor":"ada","with_mutations":true}`, 400, "bad-request", []string{"/with_mutations"}},
		{"no such item", "/v1/items/i-1/done", `{"reason":"x","actor":"ada"}`, 404, "not-found", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(ask{method: "POST", path: c.path, body: c.body}, c.status, c.problem, c.words...)
		})
	}
}

func TestSkippingAnItemWithItsMutations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	i, err := w.client.SkipItem(t.Context(), w.theItem().ID, wire.SkipItem{DecideItem: wire.DecideItem{Reason: "never mind", Actor: "ada"}, WithMutations: true})
	if err != nil || i.State != "skipped" || i.Attempts[0].Mutations[0].State != "skipped" {
		t.Fatalf("item %+v, %v", i, err)
	}
	shown, err := w.client.Mutation(t.Context(), m.ID)
	if err != nil || shown.Reason != "never mind" {
		t.Errorf("mutation %+v, %v", shown, err)
	}
	if _, err := w.client.ReopenItem(t.Context(), i.ID, wire.DecideItem{Reason: "after all", Actor: "ada"}); err != nil {
		t.Error(err)
	}
}

// An item that is tried again and again has more runs than a page holds.
func TestAnItemShowsAllOfItsRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const tried = 1001
	for range tried {
		_, err := w.ledger.OpenRun(t.Context(), ledger.OpenRun{Workflow: "billing", Item: "order-1", Takeover: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	i := w.theItem()
	seen := map[string]bool{}
	for _, id := range i.Runs {
		seen[id] = true
	}
	if len(seen) != tried || len(i.Runs) != tried || len(i.Attempts[0].Runs) != tried {
		t.Errorf("%d runs, %d of them different, and %d of the attempt", len(i.Runs), len(seen), len(i.Attempts[0].Runs))
	}
}

func TestARerunOfWhatIsFollowedOrForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	followed := transfer(&run.Run)
	followed.policy.Reconciler, followed.policy.WatchEvery, followed.policy.WatchMax = true, time.Second, time.Hour
	m := w.claim(followed)
	w.finish(ledger.EndDispatch{
		Key: m.Key, Dispatch: ledger.Dispatch{ID: m.Current().ID, Verdict: ledger.VerdictAccepted, Wire: ledger.Wire{Head: true, Status: 202, BodyComplete: true}},
		Result: &ledger.Result{Status: 202},
	})
	next := func() string { return w.theItem().Attempts[0].Mutations[0].Next }
	if got := next(); got != "replay" {
		t.Errorf("a 202 that is followed to its end: %q", got)
	}
	other := newWorld(t, nil)
	run = other.open("order-1")
	m = other.apply(other.claim(transfer(&run.Run)), 201, "{}")
	if _, err := other.client.FinishRun(t.Context(), run.ID, wire.FinishRun{Outcome: "done", KeepOpen: true}); err != nil {
		t.Fatal(err)
	}
	other.clock.advance(2 * time.Hour)
	counts, err := other.ledger.Forget(t.Context(), []ledger.Key{m.Key}, ledger.Retention{Keep: time.Hour})
	if err != nil || counts.Dropped != 1 {
		t.Fatalf("%+v, %v", counts, err)
	}
	if got := other.theItem().Attempts[0].Mutations[0].Next; got != "refused" {
		t.Errorf("what retention dropped the answer of: %q", got)
	}
}
