package admin_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"keep-proxy/admin"
	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// TestOverTheEmbeddedLedger follows one question from its run to its answer over
// the store that the program uses.
func TestOverTheEmbeddedLedger(t *testing.T) {
	t.Parallel()
	var ids atomic.Int64
	newID := func() string { return fmt.Sprintf("e%d", ids.Add(1)) }
	hands := &clock{}
	store := badgerstore.OpenForTest(t, badgerstore.Config{Dir: filepath.Join(t.TempDir(), "ledger"), Now: hands.now, NewID: newID})
	commands := ledger.New(store, ledger.Config{Now: hands.now, NewID: newID})
	w := newWorld(t, func(c *admin.Config) { c.Ledger, c.Now = commands, hands.now })
	w.ledger, w.clock = commands, hands

	for _, item := range []string{"order-1", "order-2", "order-3"} {
		run := w.open(item)
		w.apply(w.claim(transfer(&run.Run)), 201, `{"id":"`+item+`"}`)
		if _, err := w.client.FinishRun(t.Context(), run.ID, wire.FinishRun{Outcome: "done"}); err != nil {
			t.Fatal(err)
		}
	}
	run, m := w.unknown("order-4")

	var listed []string
	f := client.Filter{Limit: 3}
	for {
		page, err := w.client.Mutations(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Items {
			listed = append(listed, m.Item)
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	if slices.Sort(listed); !slices.Equal(listed, []string{"order-1", "order-2", "order-3", "order-4"}) {
		t.Errorf("listed %v", listed)
	}
	w.refused(ask{path: "/v1/mutations?cursor=zz"}, 400, "bad-request", "query:cursor")
	w.refused(ask{path: "/v1/mutations/m-nothing"}, 404, "not-found")

	questions, err := w.client.Escalations(t.Context(), client.Filter{})
	if err != nil || len(questions.Items) != 1 || questions.Items[0].Mutation != m.ID || questions.Items[0].Run != run.ID {
		t.Fatalf("escalations: %+v, %v", questions, err)
	}
	if status, err := w.client.Status(t.Context()); err != nil || status.Unknown != 1 || status.Escalated != 1 || len(status.Stopped) != 1 || status.LedgerID != store.ID() {
		t.Errorf("status: %+v, %v", status, err)
	}
	_, err = w.client.OpenRun(t.Context(), wire.OpenRun{Workflow: "billing", Item: "order-5"}, "")
	problemIn(t, err, 423, "blocked", m.ID)

	answer := strings.Repeat("long answer ", 10_000)
	got, err := w.client.Resolve(t.Context(), m.ID, wire.Resolve{
		Action: wire.ActionHappened, Actor: "ann", Reason: "it is in the books", Version: questions.Items[0].Version,
		Result: &wire.Result{Status: 201, Body: wire.Text(answer)},
	})
	if err != nil || got.State != "applied" || string(got.Result.Body.Content) != answer {
		t.Fatalf("resolve: %v", err)
	}
	w.open("order-5")
	item, err := w.client.Item(t.Context(), ledger.ItemID("billing", "order-4"))
	if err != nil || len(item.Mutations) != 1 || !slices.Equal(item.Runs, []string{run.ID}) {
		t.Errorf("item: %+v, %v", item, err)
	}
	last := w.historyOf(commands)
	var seq uint64
	err = w.client.Events(t.Context(), 0, func(e wire.Event) error {
		if seq++; e.Seq != seq {
			t.Errorf("event %d after %d", e.Seq, seq-1)
		}
		if e.Seq == last {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("events ended with %v", err)
	}
}

// historyOf is the number of the ledger's newest event.
func (w *world) historyOf(l *ledger.Ledger) uint64 {
	w.t.Helper()
	events, err := l.Events(w.t.Context(), "", 0, 1000)
	if err != nil || len(events) == 0 {
		w.t.Fatalf("events: %d, %v", len(events), err)
	}
	return events[len(events)-1].Seq
}
