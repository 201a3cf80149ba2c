package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// states bring mutation a into each state in which a person may decide.
var states = map[string]func(w *world){
	"needs_reconcile":                func(w *world) { w.unknown("a") },
	"needs_reconcile, committed":     func(w *world) { w.unknown("a"); head(w, "a") },
	"indeterminate":                  func(w *world) { w.unknown("a", noReconciler) },
	"indeterminate, with reconciler": func(w *world) { w.unknown("a"); w.exhaust("a") },
	"failed": func(w *world) {
		w.finish("a", w.send(w.open(), "a"), ledger.VerdictFailed, class(verdict.Logic))
	},
	"failed, with a native key": func(w *world) {
		w.finish("a", w.send(w.open(), "a", nativeKey), ledger.VerdictFailed, class(verdict.Logic))
	},
	"failed, escalated": func(w *world) {
		w.finish("a", w.send(w.open(), "a"), ledger.VerdictFailed, class(verdict.Permission))
	},
	"in_flight":          func(w *world) { w.send(w.open(), "a") },
	"applied":            func(w *world) { w.applied("a") },
	"applied, no result": func(w *world) { w.unknown("a"); w.decide("a", ledger.OnHappened, none) },
	"applied, escalated": func(w *world) {
		w.finish("a", w.send(w.open(), "a", noReconciler), ledger.VerdictCommitted)
	},
	"applied, disputed": func(w *world) { w.applied("a"); w.claim(w.open(), "a", payload("other")) },
	"skipped":           func(w *world) { w.unknown("a"); w.decide("a", ledger.OnSkip) },
}

func (w *world) exhaust(name string) {
	w.t.Helper()
	m := w.mutation(name)
	_, err := w.Exhaust(w.t.Context(), m.Key, m.Version, "no strategy is left")
	w.ok(err)
}

func TestDecisionsInEachState(t *testing.T) {
	t.Parallel()
	const (
		again, did, not, newKey    = ledger.OnCheckAgain, ledger.OnHappened, ledger.OnDidNotHappen, ledger.OnNewKey
		skip, accept, acknowledged = ledger.OnSkip, ledger.OnAccept, ledger.OnAcknowledge
	)
	open := map[string]map[ledger.Trigger]ledger.State{
		"needs_reconcile": {again: ledger.NeedsReconcile, did: ledger.Applied, not: ledger.Failed, skip: ledger.Skipped},
		"needs_reconcile, committed": {
			again: ledger.NeedsReconcile, did: ledger.Applied, skip: ledger.Skipped,
		},
		"indeterminate": {did: ledger.Applied, not: ledger.Failed, skip: ledger.Skipped},
		"indeterminate, with reconciler": {
			again: ledger.NeedsReconcile, did: ledger.Applied, not: ledger.Failed, skip: ledger.Skipped,
		},
		"failed":                    {skip: ledger.Skipped},
		"failed, with a native key": {newKey: ledger.Failed, skip: ledger.Skipped},
		"failed, escalated":         {skip: ledger.Skipped, acknowledged: ledger.Failed},
		"in_flight":                 {},
		"applied":                   {},
		"applied, no result":        {did: ledger.Applied},
		"applied, escalated":        {did: ledger.Applied, acknowledged: ledger.Applied},
		"applied, disputed":         {accept: ledger.Applied, acknowledged: ledger.Applied},
		"skipped":                   {},
	}
	for name, before := range states {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, action := range ledger.PersonTriggers() {
				w := newWorld(t)
				before(w)
				m := w.mutation("a")
				actions := w.Actions(m, w.now)
				want, allowed := open[name][action]
				offered := slices.ContainsFunc(actions, func(a ledger.Action) bool { return a.Action == action })
				if offered != allowed {
					t.Errorf("%s is offered: %v, want %v", action, offered, allowed)
				}
				_, err := w.Resolve(t.Context(), w.decision("a", action, func(r *ledger.Resolve) {
					if r.Force = action == not; action == did {
						given(r)
					}
				}))
				if !allowed {
					w.refusedDecision(err, m, actions)
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", action, err)
					continue
				}
				w.is("a", want)
			}
		})
	}
}

// refusedDecision checks that the error names the open actions and that nothing changed.
func (w *world) refusedDecision(err error, before *ledger.Mutation, actions []ledger.Action) {
	w.t.Helper()
	var refused *ledger.NotAllowedError
	if !errors.As(err, &refused) || refused.State != before.State || refused.Reason == "" {
		w.t.Errorf("%v, want a refusal that names %s", err, before.State)
		return
	}
	if len(refused.Open) != len(actions) {
		w.t.Errorf("the refusal names %v, open are %v", refused.Open, actions)
	}
	if after := w.mutation("a"); after.Version != before.Version {
		w.t.Errorf("the refused decision changed the record")
	}
}

func TestEveryActionSaysWhatFollows(t *testing.T) {
	t.Parallel()
	seen := map[ledger.Trigger]bool{}
	for name, before := range states {
		w := newWorld(t)
		before(w)
		for _, a := range w.Actions(w.mutation("a"), w.now) {
			seen[a.Action] = true
			if !strings.HasSuffix(a.Consequence, ".") {
				t.Errorf("%s: %s leads to %q", name, a.Action, a.Consequence)
			}
			if wants := a.Action == ledger.OnDidNotHappen; a.NeedsForce != wants || strings.Contains(a.Consequence, "force") != wants {
				t.Errorf("%s: %s needs force: %v (%s)", name, a.Action, a.NeedsForce, a.Consequence)
			}
		}
	}
	if len(seen) != len(ledger.PersonTriggers()) {
		t.Errorf("only %v were offered", seen)
	}
	if ledger.OpenActions(nil, ledger.Stamp{}, ledger.Process{}) != nil {
		t.Error("there are actions on no record")
	}
}

func TestDidNotHappenNeedsForceWhileASendingMayCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.pass(299 * time.Second)
	_, err := w.Resolve(t.Context(), w.decision("a", ledger.OnDidNotHappen))
	var refused *ledger.NotAllowedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "force") || !slices.Contains(refused.Open, ledger.OnDidNotHappen) {
		t.Errorf("before settle is over: %v", err)
	}
	until := w.now.Wall.Add(time.Second).UTC().Format(time.RFC3339)
	if refused != nil && !strings.Contains(refused.Reason, "may still take effect until "+until+"; ") {
		t.Errorf("a second before it, which is %s, a person is told %q", until, refused.Reason)
	}
	if said := w.consequence("a", ledger.OnDidNotHappen); !strings.Contains(said, "until "+until+"; ") {
		t.Errorf("the decision says %q", said)
	}
	w.pass(time.Second)
	if a := w.Actions(w.mutation("a"), w.now); slices.ContainsFunc(a, func(a ledger.Action) bool { return a.NeedsForce }) {
		t.Errorf("after settle: %+v", a)
	}
	w.decide("a", ledger.OnDidNotHappen)
	if m := w.is("a", ledger.Failed); m.Unresolved() || !m.Current().Resolved {
		t.Error("the dispatch is still unresolved")
	}
}

func TestDidNotHappenIsClosedOnceCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	states["needs_reconcile, committed"](w)
	w.pass(time.Hour)
	_, err := w.Resolve(t.Context(), w.decision("a", ledger.OnDidNotHappen, force))
	var refused *ledger.NotAllowedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "known to have happened") {
		t.Errorf("%v", err)
	}
}

func TestDecisionsThatAreIncomplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	for name, r := range map[string]ledger.Resolve{
		"no action":                           w.decision("a", ""),
		"the proxy's trigger":                 w.decision("a", ledger.OnSuccess),
		"no actor":                            w.decision("a", ledger.OnSkip, func(r *ledger.Resolve) { r.Actor = "" }),
		"no reason":                           w.decision("a", ledger.OnSkip, func(r *ledger.Resolve) { r.Reason = "" }),
		"happened, and nothing on the result": w.decision("a", ledger.OnHappened),
		"happened, with both":                 w.decision("a", ledger.OnHappened, given, none),
		"skip with a result":                  w.decision("a", ledger.OnSkip, given),
		"skip with a new key":                 w.decision("a", ledger.OnSkip, newKey),
		"denied, and to be undone": w.decision("a", ledger.OnDidNotHappen, force, func(r *ledger.Resolve) {
			r.Compensate = &ledger.Owed{Object: "o1", Record: ledger.Mutation{
				Payload: ledger.Payload{PayloadDigest: "undo", Request: ledger.Request{Method: "DELETE", URL: "https://bank.test/o1"}},
			}}
		}),
		"a result that is no answer": w.decision("a", ledger.OnHappened, func(r *ledger.Resolve) {
			r.Result = &ledger.Result{Status: 100}
		}),
	} {
		if _, err := w.Resolve(t.Context(), r); !errors.Is(err, ledger.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stale := w.decision("a", ledger.OnSkip)
	w.see("a", ledger.SeenRetry)
	if _, err := w.Resolve(t.Context(), stale); !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("a stale version: %v", err)
	}
	w.is("a", ledger.NeedsReconcile)
}

func TestHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	body := []byte("done")
	out := w.decide("a", ledger.OnHappened, func(r *ledger.Resolve) {
		r.Result, r.Body = &ledger.Result{Status: 200, Body: bodyOf(body)}, body
	})
	if m := out.Mutation; m.ResultState != ledger.ResultKnown || m.Result.Source != "person" || m.Reason != "looked" {
		t.Errorf("result %+v, reason %q", m.Result, m.Reason)
	}
	if out := w.claim(w.open(), "a"); out.Decision != ledger.DecideReplay || out.Mutation.Result.Body.Size != 4 {
		t.Errorf("%q", out.Decision)
	}
}

// What travels with a command is named by the ledger, and by who sends it only rightly.
func TestContentIsNamedWhereItIsStored(t *testing.T) {
	t.Parallel()
	body := []byte("done")
	for name, c := range map[string]struct {
		named ledger.Body
		ok    bool
	}{
		"not named":      {ledger.Body{}, true},
		"named":          {bodyOf(body), true},
		"another digest": {bodyOf([]byte("gone")), false},
		"another size":   {ledger.Body{SHA256: bodyOf(body).SHA256, Size: 5}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a")
			q := w.decision("a", ledger.OnHappened)
			q.Result, q.Body = &ledger.Result{Status: 200, Body: c.named}, body
			out, err := w.Resolve(t.Context(), q)
			if c.ok != (err == nil) {
				t.Fatalf("resolved: %v", err)
			}
			if c.ok && out.Mutation.Result.Body != bodyOf(body) {
				t.Errorf("named %+v", out.Mutation.Result.Body)
			}
		})
	}
}

func TestHappenedGivesAMissingResultLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	states["applied, escalated"](w)
	w.decide("a", ledger.OnHappened, given)
	w.escalated("a", "")
	if m := w.is("a", ledger.Applied); m.ResultState != ledger.ResultKnown {
		t.Errorf("result %q", m.ResultState)
	}
	_, err := w.Resolve(t.Context(), w.decision("a", ledger.OnHappened, given))
	if !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("replacing a known result: %v", err)
	}
	w = newWorld(t)
	states["applied, escalated"](w)
	if _, err := w.Resolve(t.Context(), w.decision("a", ledger.OnHappened, none)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("giving no result to what has none: %v", err)
	}
}

func TestCheckAgainBeginsAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.pass(time.Hour)
	for range 8 {
		w.see("a", ledger.SeenRetry, func(o *ledger.Observe) { o.Ran = time.Hour })
	}
	w.escalated("a", ledger.EscalationIndeterminate)
	at := w.now.Wall.Add(time.Minute)
	w.decide("a", ledger.OnCheckAgain, func(r *ledger.Resolve) { r.NextTryAt = at })
	m := w.is("a", ledger.NeedsReconcile)
	if m.Tries != 0 || m.RunningAge != 0 || !m.NextTryAt.Equal(at) {
		t.Errorf("tries %d, age %s, due %s", m.Tries, m.RunningAge, m.NextTryAt)
	}
	w.escalated("a", "")
	if m.Escalation.ClosedBy != "person:ada" {
		t.Errorf("closed by %q", m.Escalation.ClosedBy)
	}
}

func TestAcceptPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	states["applied, disputed"](w)
	w.escalated("a", ledger.EscalationMismatch)
	if i := w.item("i"); i.State != ledger.ItemNeedsAttention || i.Cause != key("a").ID() || i.ActiveRun != "" {
		t.Errorf("item %+v", i)
	}
	w.decide("a", ledger.OnAccept)
	w.escalated("a", "")
	if i := w.item("i"); i.State != ledger.ItemOpen || i.Cause != "" {
		t.Errorf("item %+v", i)
	}
	r := w.open()
	if out := w.claim(r, "a", payload("other")); out.Decision != ledger.DecideReplay {
		t.Errorf("the accepted payload: %q", out.Decision)
	}
	if out := w.claim(r, "a", payload("a third")); out.Decision != ledger.DecideMismatch {
		t.Errorf("a third payload: %q", out.Decision)
	}
}

// consequence is what a person is told of a decision.
func (w *world) consequence(name string, on ledger.Trigger) string {
	w.t.Helper()
	actions := w.Actions(w.mutation(name), w.now)
	i := slices.IndexFunc(actions, func(a ledger.Action) bool { return a.Action == on })
	if i < 0 {
		w.t.Fatalf("%s isn't open, but %v", on, actions)
	}
	return actions[i].Consequence
}

func TestAcknowledgeDecidesNothingAboutTheItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	states["applied, disputed"](w)
	if said := w.consequence("a", ledger.OnAcknowledge); !strings.Contains(said, "goes on waiting") {
		t.Errorf("a person is told %q", said)
	}
	w.decide("a", ledger.OnAcknowledge)
	w.escalated("a", "")
	if i := w.item("i"); i.State != ledger.ItemNeedsAttention {
		t.Errorf("the item is %s", i.State)
	}
	w.decide("a", ledger.OnAccept)
	if i := w.item("i"); i.State != ledger.ItemOpen {
		t.Errorf("the item is %s", i.State)
	}
}

func TestNewKeyOpensTheItemOfADisputedGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	before := w.mutation("a").VendorKey
	w.decide("a", ledger.OnDidNotHappen, force)
	w.claim(w.open(), "a", payload("other"))
	w.escalated("a", ledger.EscalationMismatch)
	w.decide("a", ledger.OnNewKey)
	if m := w.is("a", ledger.Failed); m.VendorKey == before || m.Disputed != "" {
		t.Errorf("key %s after %s, disputed %q", m.VendorKey, before, m.Disputed)
	}
	d := w.send(w.open(), "a", payload("other"))
	if d.Generation != 2 {
		t.Errorf("generation %d", d.Generation)
	}
}

func TestEventsTellTheStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.see("a", ledger.SeenRetry, func(o *ledger.Observe) {
		o.Observation.Evidence = strings.Repeat("é", 4000)
	})
	w.decide("a", ledger.OnSkip)
	w.Refuse(ledger.Event{What: "blocked", Mutation: key("a").ID()})
	w.Replayed("r", w.mutation("a"), "", true)
	w.ok(w.Update(t.Context(), func(ledger.Tx) error { return nil }))
	events, err := w.Events(t.Context(), key("a").ID(), 0, 0)
	w.ok(err)
	var story []string
	for _, e := range events {
		story = append(story, e.Actor+" "+e.What+" "+string(e.From)+">"+string(e.To))
		if len(e.Evidence) > 4096 || !strings.HasPrefix(e.Evidence+"é", "é") || e.At.IsZero() {
			t.Errorf("event %+v", e)
		}
	}
	want := []string{
		"proxy claim >in_flight", "proxy unknown in_flight>needs_reconcile", "proxy run_paused:reconciliation >",
		"runner retry needs_reconcile>needs_reconcile", "person:ada skip needs_reconcile>skipped",
		"proxy blocked >", "proxy replayed >",
	}
	slices.Sort(story)
	slices.Sort(want)
	if !slices.Equal(story, want) {
		t.Errorf("the story is\n%s\nwant\n%s", strings.Join(story, "\n"), strings.Join(want, "\n"))
	}
}
