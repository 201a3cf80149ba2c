package reconcilers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// viaCancel takes a thing back by a request that the API knows again by its key alone.
const viaCancel = viaNone + `    compensate:
      post: /things/{object}/cancellations
      json: {of: {cel: object}}
      native_key: {header: Idempotency-Key, format: uuid, window: 24h}
      reconcile:
        - resend: {}
        - none: "a cancellation can't be read back"
`

// owed has a person say that m happened as this object, and have it undone.
func (w *world) owed(m *ledger.Mutation, object string) *ledger.Mutation {
	w.Helper()
	plan, err := w.r.PlanUndo(w.Context(), m, object)
	if err != nil {
		w.Fatal(err)
	}
	out, err := w.ledger.Resolve(w.Context(), ledger.Resolve{
		Key: m.Key, Version: m.Version, Action: ledger.OnHappened, NoResult: true, Actor: "ada", Reason: "it is there", Compensate: &plan,
	})
	if err != nil || len(out.Mutation.Obligations) != 1 {
		w.Fatalf("it owes %v, %v", out.Mutation, err)
	}
	undo, err := w.r.read(w.Context(), out.Mutation.Obligations[0])
	if err != nil {
		w.Fatal(err)
	}
	return undo
}

// After a failure an undo goes out under a new vendor key, as any mutation does. What is
// sent again because its answer was lost must carry that same key, or the API does it twice.
func TestEachSendingOfAnUndoCarriesTheKeyOfItsGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaCancel)
	undo := w.owed(w.unknown("a"), "t1")
	var keys, recorded []string
	done := map[string]int{}
	w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/things/t1/cancellations" {
			return false
		}
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		recorded = append(recorded, w.read(undo).VendorKey)
		if len(keys) == 1 {
			rw.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		done[keys[len(keys)-1]]++
		if len(keys) == 2 {
			panic(http.ErrAbortHandler)
		}
		rw.WriteHeader(http.StatusCreated)
		return true
	})
	for n := 0; n < 10 && w.read(undo).State != ledger.Applied; n++ {
		w.after(2 * time.Minute)
	}
	now := w.wants(undo, ledger.Applied, "")
	if len(keys) != 3 || len(done) != 1 {
		t.Errorf("sent under %q, which the API takes for %d cancellations", keys, len(done))
	}
	for i := range keys {
		if keys[i] != recorded[i] {
			t.Errorf("sending %d carried %q while the record said %q", i+1, keys[i], recorded[i])
		}
	}
	if now.Generation != 2 {
		t.Errorf("generation %d", now.Generation)
	}
}

// What another account doesn't hold is not there either, which would pass for undone.
func TestAnUndoIsNotSentUnderAnotherAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaCancel)
	undo := w.owed(w.unknown("a"), "t1")
	w.creds = fixed{header: "X-Account", value: "acct_2"}
	w.api.answering(http.StatusNotFound, nil, "{}")
	w.after(0)
	now := w.wants(undo, ledger.Failed, "")
	if posts, _, _ := w.api.counts(); posts != 0 || len(now.Dispatches) != 0 {
		t.Errorf("%d sendings, of which %d are recorded", posts, len(now.Dispatches))
	}
	if now.Queued() || !now.Escalated() || !strings.Contains(now.Escalation.Why, "another account") {
		t.Errorf("queued %v, a person is asked %+v", now.Queued(), now.Escalation)
	}
}

// While it isn't known whether an effect was taken back, what its mutation would stop stands
// still.
func TestAnUndoStopsWhatItsMutationWould(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaCancel)
	m := w.unknown("a")
	for _, scope := range []ledger.BlockScope{ledger.BlockWorkflow, ledger.BlockItem, ledger.BlockMutation, ""} {
		m.Policy.BlockScope = scope
		plan, err := w.r.PlanUndo(t.Context(), m, "t1")
		if err != nil {
			t.Fatal(err)
		}
		if got := plan.Record.Policy.BlockScope; got != scope {
			t.Errorf("the undo stops %q, its mutation %q", got, scope)
		}
	}
}

// How often an undo may be sent is said by the rule's words about it, not by those about what it
// takes back. What the API knows again by its key alone is sent again only while it remembers that.
func TestAnUndoIsBoundByItsOwnRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaCancel)
	m := w.unknown("a")
	m.Policy.MaxDispatches = 3
	plan, err := w.r.PlanUndo(t.Context(), m, "t1")
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Record.Policy
	if p.MaxDispatches != ledger.DefaultUndoTries {
		t.Errorf("it may be sent %d times, want %d", p.MaxDispatches, ledger.DefaultUndoTries)
	}
	if p.Idempotent || !p.Resend || !p.NativeKey || p.KeyWindow != 24*time.Hour {
		t.Errorf("%+v", p)
	}
}
