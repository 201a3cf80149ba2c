package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// applied makes mutation a applied by an earlier, finished run.
func (w *world) applied(name string, change ...func(*ledger.Claim)) {
	w.t.Helper()
	r := w.open()
	w.finish(name, w.send(r, name, change...), ledger.VerdictApplied)
	_, err := w.FinishRun(w.t.Context(), r.ID, ledger.OutcomeDone, true)
	w.ok(err)
}

func TestReplayTable(t *testing.T) {
	t.Parallel()
	failed := func(change ...func(*ledger.EndDispatch)) func(w *world) {
		return func(w *world) {
			r := w.open(returns)
			w.finish("a", w.send(r, "a"), ledger.VerdictFailed, change...)
			_, err := w.EndRun(w.t.Context(), r.ID, "", "over", "person:ada")
			w.ok(err)
		}
	}
	openGeneration := func(w *world) {
		w.unknown("a", nativeKey)
		w.decide("a", ledger.OnDidNotHappen, force)
	}
	minor := func(q *ledger.Claim) { q.Record.PayloadDigest = "payload, spelt differently" }
	for _, c := range []struct {
		name     string
		before   func(w *world)
		change   []func(*ledger.Claim)
		decision ledger.Decision
		problem  string
		run      ledger.RunState
		item     ledger.ItemState
	}{
		{"applied, same payload", func(w *world) { w.applied("a") }, nil,
			ledger.DecideReplay, "", ledger.RunRunning, ledger.ItemOpen},
		{"applied, minor difference", func(w *world) { w.applied("a") }, []func(*ledger.Claim){minor},
			ledger.DecideReplay, "", ledger.RunRunning, ledger.ItemOpen},
		{"applied, significant difference", func(w *world) { w.applied("a") }, []func(*ledger.Claim){payload("other")},
			ledger.DecideMismatch, "payload-mismatch", ledger.RunPausedAttention, ledger.ItemNeedsAttention},
		{"applied, no significant digest given", func(w *world) { w.applied("a") },
			[]func(*ledger.Claim){payload("other"), func(q *ledger.Claim) { q.Record.SignificantDigest = "" }},
			ledger.DecideMismatch, "payload-mismatch", ledger.RunPausedAttention, ledger.ItemNeedsAttention},
		{"applied, no result", func(w *world) { w.unknown("a"); w.decide("a", ledger.OnHappened, none) }, nil,
			ledger.DecideRefused, "no-result", ledger.RunRunning, ledger.ItemOpen},
		{"failed, same payload", failed(), nil, ledger.DecideDispatch, "", ledger.RunRunning, ledger.ItemOpen},
		{"failed, other payload", failed(), []func(*ledger.Claim){payload("other")},
			ledger.DecideDispatch, "", ledger.RunRunning, ledger.ItemOpen},
		{"failed in an open generation, same payload", openGeneration, nil,
			ledger.DecideDispatch, "", ledger.RunRunning, ledger.ItemOpen},
		{"failed in an open generation, other payload", openGeneration, []func(*ledger.Claim){payload("other")},
			ledger.DecideMismatch, "payload-mismatch", ledger.RunPausedAttention, ledger.ItemNeedsAttention},
		{"failed in an open generation, minor difference", openGeneration, []func(*ledger.Claim){minor},
			ledger.DecideMismatch, "payload-mismatch", ledger.RunPausedAttention, ledger.ItemNeedsAttention},
		{"failed, a new key granted, other payload", func(w *world) { openGeneration(w); w.decide("a", ledger.OnNewKey) },
			[]func(*ledger.Claim){payload("other")}, ledger.DecideDispatch, "", ledger.RunRunning, ledger.ItemOpen},
		{"failed for certain under a native key, other payload", func(w *world) {
			r := w.open(returns)
			w.finish("a", w.send(r, "a", nativeKey), ledger.VerdictFailed)
			_, err := w.EndRun(w.t.Context(), r.ID, "", "over", "person:ada")
			w.ok(err)
		}, []func(*ledger.Claim){payload("other"), nativeKey}, ledger.DecideDispatch, "", ledger.RunRunning, ledger.ItemOpen},
		{"denied without a native key, other payload", func(w *world) { w.unknown("a"); w.decide("a", ledger.OnDidNotHappen, force) },
			[]func(*ledger.Claim){payload("other")}, ledger.DecideDispatch, "", ledger.RunRunning, ledger.ItemOpen},
		{"skipped", func(w *world) { failed()(w); w.decide("a", ledger.OnSkip) }, nil,
			ledger.DecideRefused, "skipped", ledger.RunRunning, ledger.ItemOpen},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			r := w.open()
			before := len(w.mutation("a").Dispatches)
			out := w.claim(r, "a", c.change...)
			if out.Decision != c.decision || out.Problem != c.problem {
				t.Fatalf("%q, problem %q (%s), want %q, %q", out.Decision, out.Problem, out.Detail, c.decision, c.problem)
			}
			sent := len(w.mutation("a").Dispatches) - before
			if want := c.decision == ledger.DecideDispatch; (sent == 1) != want || (out.Dispatch != nil) != want {
				t.Errorf("%d dispatches were added, dispatch %+v", sent, out.Dispatch)
			}
			if got := w.run(r.ID).State; got != c.run || out.RunRefused != got.Ended() {
				t.Errorf("the run is %s, refused %v; want %s", got, out.RunRefused, c.run)
			}
			if got := w.item("i"); got.State != c.item {
				t.Errorf("the item is %s (%s), want %s", got.State, got.Reason, c.item)
			}
			if out.Decision != ledger.DecideDispatch && out.Decision != ledger.DecideReplay && out.Detail == "" {
				t.Error("the refusal says nothing to the script's author")
			}
		})
	}
}

func TestUnresolvedMutationBlocksItsOwnKey(t *testing.T) {
	t.Parallel()
	for _, scope := range []ledger.BlockScope{ledger.BlockMutation, ledger.BlockItem, ledger.BlockWorkflow, "galaxy", ""} {
		for _, state := range []ledger.State{ledger.NeedsReconcile, ledger.Indeterminate} {
			w := newWorld(t)
			w.unknown("a", func(q *ledger.Claim) {
				q.Record.Policy.BlockScope = scope
				q.Record.Policy.Reconciler = state == ledger.NeedsReconcile
			})
			out := w.claim(nil, "a")
			if out.Decision != ledger.DecideBlocked || out.Problem != "blocked" || len(out.Blockers) != 1 || out.Blockers[0].State != state {
				t.Errorf("scope %q: %q %q, blockers %+v", scope, out.Decision, out.Problem, out.Blockers)
			}
		}
	}
}

func TestNoResultIsEscalatedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a")
	w.decide("a", ledger.OnHappened, none)
	w.escalated("a", "")
	r := w.open()
	w.claim(r, "a")
	w.escalated("a", ledger.EscalationNoResult)
	first := w.mutation("a").Escalation.ID
	w.decide("a", ledger.OnAcknowledge)
	version := w.mutation("a").Version
	w.claim(r, "a")
	if m := w.mutation("a"); m.Version != version || m.Escalation.ID != first || m.Escalated() {
		t.Errorf("asked again: version %d after %d, escalation %+v", m.Version, version, m.Escalation)
	}
}

// A question that was answered is asked anew when its cause comes again.
func TestAPayloadThatIsRefusedOnceMoreIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a")
	for n := 1; n <= 2; n++ {
		if out := w.claim(w.open(), "a", payload("other")); out.Decision != ledger.DecideMismatch {
			t.Fatalf("%q", out.Decision)
		}
		w.escalated("a", ledger.EscalationMismatch)
		if e := w.mutation("a").Escalation; e.Number != n {
			t.Errorf("it is question %d, want %d", e.Number, n)
		}
		_, err := w.DecideItem(t.Context(), ledger.DecideItem{Workflow: "w", Item: "i", Action: ledger.ItemReopen, Actor: "ada", Reason: "looked"})
		w.ok(err)
		w.escalated("a", "")
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	delivered := func(k string) func(*world, *ledger.Run) {
		return func(w *world, r *ledger.Run) {
			w.finish("a", w.send(r, "a", clientKey(k)), ledger.VerdictApplied)
			w.Deliver(r.ID, w.mutation("a"), k)
		}
	}
	undelivered := func(k string) func(*world, *ledger.Run) {
		return func(w *world, r *ledger.Run) { w.finish("a", w.send(r, "a", clientKey(k)), ledger.VerdictApplied) }
	}
	inFlight := func(k string) func(*world, *ledger.Run) {
		return func(w *world, r *ledger.Run) { w.send(r, "a", clientKey(k)) }
	}
	failureDeliveredAndSent := func(w *world, r *ledger.Run) {
		w.finish("a", w.send(r, "a"), ledger.VerdictFailed, passedOn)
		w.Deliver(r.ID, w.mutation("a"), "")
		w.send(r, "a")
	}
	failureDelivered := func(w *world, r *ledger.Run) {
		failureDeliveredAndSent(w, r)
		w.finish("a", w.mutation("a").Current(), ledger.VerdictApplied)
	}
	failureThatSucceeded := func(w *world, r *ledger.Run) {
		d := w.send(r, "a")
		w.finish("a", d, ledger.VerdictUncertain, pending)
		w.finish("a", d, ledger.VerdictApplied)
		w.Deliver(r.ID, &ledger.Mutation{
			Intent:  ledger.Intent{Key: key("a")},
			Outcome: ledger.Outcome{State: ledger.Failed, Dispatches: w.mutation("a").Dispatches},
		}, "")
	}
	followed := func(w *world, r *ledger.Run) {
		out := w.finish("a", w.send(r, "a", watched), ledger.VerdictAccepted, status202)
		w.Deliver(r.ID, out.Mutation, "")
	}
	followedToItsEnd := func(w *world, r *ledger.Run) {
		followed(w, r)
		w.see("a", ledger.SeenApplied)
	}
	replay := func(q *ledger.Claim) { q.RepeatReplay = true }
	for _, c := range []struct {
		name   string
		before func(*world, *ledger.Run)
		change []func(*ledger.Claim)
		want   ledger.Decision
	}{
		{"delivered, asked again", delivered(""), nil, ledger.DecideRepeated},
		{"delivered, asked again by a new connection", delivered(""), []func(*ledger.Claim){redelivery}, ledger.DecideRepeated},
		{"delivered, another payload", delivered(""), []func(*ledger.Claim){payload("other")}, ledger.DecideRepeated},
		{"delivered, the same client key", delivered("k"), []func(*ledger.Claim){clientKey("k")}, ledger.DecideReplay},
		{"delivered, another client key", delivered("k"), []func(*ledger.Claim){clientKey("l")}, ledger.DecideRepeated},
		{"delivered without a client key, asked with one", delivered(""), []func(*ledger.Claim){clientKey("k")}, ledger.DecideRepeated},
		{"delivered, the rule says repeat: replay", delivered(""), []func(*ledger.Claim){replay}, ledger.DecideReplay},
		{"delivered was an earlier failure, and the success after it was not", failureDelivered, []func(*ledger.Claim){redelivery}, ledger.DecideReplay},
		{"delivered was an earlier failure, and the sending after it is in flight", failureDeliveredAndSent, []func(*ledger.Claim){redelivery}, ledger.DecideJoin},
		{"delivered was a failure that turned out a success", failureThatSucceeded, []func(*ledger.Claim){redelivery}, ledger.DecideReplay},
		{"delivered was a 202 that is followed", followed, []func(*ledger.Claim){redelivery}, ledger.DecideRepeated},
		{"delivered was a 202, and what it accepted was applied since", followedToItsEnd, []func(*ledger.Claim){redelivery}, ledger.DecideRepeated},
		{"being delivered", undelivered(""), nil, ledger.DecideRepeated},
		{"being delivered, the same client key", undelivered("k"), []func(*ledger.Claim){clientKey("k")}, ledger.DecideReplay},
		{"its answer was lost on the way", func(w *world, r *ledger.Run) {
			undelivered("")(w, r)
			w.Undelivered(r.ID, key("a"))
		}, []func(*ledger.Claim){redelivery}, ledger.DecideReplay},
		{"its caller has gone", undelivered(""), []func(*ledger.Claim){redelivery}, ledger.DecideReplay},
		{"in flight for a connected caller", inFlight(""), nil, ledger.DecideRepeated},
		{"in flight, the same client key", inFlight("k"), []func(*ledger.Claim){clientKey("k")}, ledger.DecideJoin},
		{"in flight, the rule says repeat: replay", inFlight(""), []func(*ledger.Claim){replay}, ledger.DecideJoin},
		{"in flight, its caller has gone", inFlight(""), []func(*ledger.Claim){redelivery}, ledger.DecideJoin},
		{"in flight, its caller has gone, another payload", inFlight(""),
			[]func(*ledger.Claim){redelivery, payload("other")}, ledger.DecideJoin},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open()
			c.before(w, r)
			out := w.claim(r, "a", c.change...)
			if out.Decision != c.want {
				t.Fatalf("%q (%s), want %q", out.Decision, out.Detail, c.want)
			}
			if out.Decision == ledger.DecideRepeated && !strings.Contains(out.Detail, "subkey") {
				t.Errorf("the advice is missing: %s", out.Detail)
			}
			if again := strings.HasSuffix(c.name, "another payload") && c.want == ledger.DecideJoin; out.Again != again {
				t.Errorf("claim again: %v, want %v", out.Again, again)
			}
			w.stands(r, ledger.RunRunning, "")
		})
	}
}

func TestAnotherRunJoinsAndReplays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open()
	d := w.send(first, "a")
	second := w.open(func(o *ledger.OpenRun) { o.Takeover = true })
	w.stands(first, ledger.RunAborted, verdict.Transient)
	if out := w.claim(second, "a"); out.Decision != ledger.DecideJoin || out.Again {
		t.Errorf("in flight for another run: %q", out.Decision)
	}
	w.finish("a", d, ledger.VerdictApplied)
	if out := w.claim(second, "a"); out.Decision != ledger.DecideReplay {
		t.Errorf("applied for another run: %q", out.Decision)
	}
	if out := w.claim(first, "a"); out.Problem != "run-aborted" || out.RunRefused {
		t.Errorf("a run that is over: %q", out.Problem)
	}
}

func TestUnmanagedScopesAreNotCheckedForRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("a", w.send(nil, "a"), ledger.VerdictApplied)
	for range 2 {
		if out := w.claim(nil, "a"); out.Decision != ledger.DecideReplay || out.Run != nil {
			t.Errorf("%q, run %v", out.Decision, out.Run)
		}
	}
	if out := w.claim(nil, "a", payload("other")); out.Decision != ledger.DecideMismatch || out.RunRefused {
		t.Errorf("%q, run refused %v", out.Decision, out.RunRefused)
	}
	if got := w.item("i").State; got != ledger.ItemNeedsAttention {
		t.Errorf("the item is %s", got)
	}
	if out := w.claim(nil, "b"); out.Problem != "item-attention" {
		t.Errorf("the next mutation of the item: %q", out.Problem)
	}
}

func TestTheGateInsideTheClaim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		scope ledger.BlockScope
		item  string
		want  ledger.Decision
	}{
		{"workflow, another item", ledger.BlockWorkflow, "j", ledger.DecideBlocked},
		{"an unknown scope, another item", "galaxy", "j", ledger.DecideBlocked},
		{"item, the same item", ledger.BlockItem, "i", ledger.DecideBlocked},
		{"item, another item", ledger.BlockItem, "j", ledger.DecideDispatch},
		{"mutation, the same item", ledger.BlockMutation, "i", ledger.DecideDispatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			bystander := w.open(item("j"))
			r := w.open(item("i"))
			d := w.send(r, "a", func(q *ledger.Claim) { q.Record.Policy.BlockScope = c.scope })
			w.finish("a", d, ledger.VerdictUncertain)
			w.stands(r, ledger.RunPausedReconciliation, verdict.Indeterminate)
			if c.item == "i" {
				bystander = nil
			}
			out := w.claim(bystander, "b", held)
			if out.Decision != c.want {
				t.Fatalf("held: %q (%s)", out.Decision, out.Detail)
			}
			if c.want == ledger.DecideDispatch || bystander == nil {
				return
			}
			w.stands(bystander, ledger.RunRunning, "")
			out = w.claim(bystander, "b")
			if !out.RunRefused || out.Blockers[0].Key != key("a") {
				t.Errorf("refused: %v, blockers %+v", out.RunRefused, out.Blockers)
			}
			if run := w.stands(bystander, ledger.RunAborted, verdict.Transient); run.Cause != key("a").ID() {
				t.Errorf("the run's cause is %q", run.Cause)
			}
			w.see("a", ledger.SeenApplied)
			if out := w.claim(bystander, "b"); out.Problem != "run-aborted" {
				t.Errorf("after the stop is lifted: %q", out.Problem)
			}
			w.send(w.open(item("j")), "b")
		})
	}
}

func TestJoiningTheInlineTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	d := w.send(r, "a")
	w.finish("a", d, ledger.VerdictUncertain, pending)
	if out := w.claim(r, "a", redelivery, held); out.Decision != ledger.DecideJoin {
		t.Errorf("the same mutation: %q", out.Decision)
	}
	if out := w.claim(r, "b", held); out.Decision != ledger.DecideBlocked || out.Blockers[0].State != ledger.InFlight {
		t.Errorf("another mutation: %q, %+v", out.Decision, out.Blockers)
	}
	w.see("a", ledger.SeenApplied)
	w.send(r, "b")
}

func TestAllowances(t *testing.T) {
	t.Parallel()
	allow := func(m ledger.Mutations) func(*ledger.OpenRun) { return func(o *ledger.OpenRun) { o.Mutations = m } }
	t.Run("none admits no mutation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(allow(ledger.MutationsNone))
		if out := w.claim(r, "a"); out.Problem != "read-only-run" || !out.RunRefused {
			t.Errorf("%q", out.Problem)
		}
		w.stands(r, ledger.RunAborted, verdict.Logic)
	})
	t.Run("one admits the same mutation only", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open(allow(ledger.MutationsOne), returns)
		w.finish("a", w.send(r, "a"), ledger.VerdictApplied)
		if out := w.claim(r, "a", redelivery); out.Decision != ledger.DecideReplay {
			t.Errorf("the same one: %q", out.Decision)
		}
		if out := w.claim(r, "b"); out.Problem != "one-mutation" || out.RunRefused {
			t.Errorf("a second one under on_failure return: %q, refused %v", out.Problem, out.RunRefused)
		}
	})
	t.Run("a replayed one is the one", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.applied("a")
		r := w.open(allow(ledger.MutationsOne))
		w.claim(r, "a")
		if out := w.claim(r, "b"); out.Problem != "one-mutation" || !out.RunRefused {
			t.Errorf("a second one: %q", out.Problem)
		}
		w.stands(r, ledger.RunAborted, verdict.Logic)
	})
}

func TestClaimsOfTheWrongItemOrAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	wrong := func(q *ledger.Claim) { q.Attempt = 2 }
	if out := w.claim(nil, "a", wrong); out.Problem != "attempt" || out.Decision != ledger.DecideRefused {
		t.Errorf("attempt 2 of an item at 1: %q", out.Problem)
	}
	_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, false)
	w.ok(err)
	if out := w.claim(nil, "a"); out.Problem != "item-done" {
		t.Errorf("a mutation of a done item: %q", out.Problem)
	}
}

func TestClaimsThatAreWrongInThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	for name, change := range map[string]func(*ledger.Claim){
		"no key":              func(q *ledger.Claim) { q.Key = ledger.Key{} },
		"no dispatch id":      func(q *ledger.Claim) { q.DispatchID = "" },
		"no workflow":         func(q *ledger.Claim) { q.Workflow = "" },
		"no item":             func(q *ledger.Claim) { q.Item = "" },
		"no attempt":          func(q *ledger.Claim) { q.Attempt = 0 },
		"no payload digest":   func(q *ledger.Claim) { q.Record.PayloadDigest = "" },
		"another run's item":  func(q *ledger.Claim) { q.Item = "j" },
		"a vendor key's form": func(q *ledger.Claim) { q.Record.Policy.NativeKey = true },
	} {
		out, err := w.Claim(t.Context(), w.claimOf(r, "a", change))
		if err == nil || out.Decision != ledger.DecideRefused {
			t.Errorf("%s: %q, %v", name, out.Decision, err)
		}
	}
	q := w.claimOf(nil, "a")
	q.Run = "nobody's"
	if _, err := w.Claim(t.Context(), q); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
	d := w.send(r, "a")
	w.finish("a", d, ledger.VerdictFailed)
	same := w.claimOf(r, "a", func(q *ledger.Claim) { q.DispatchID = d.ID })
	if _, err := w.Claim(t.Context(), same); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a dispatch id used twice: %v", err)
	}
	other := w.claimOf(nil, "a", func(q *ledger.Claim) { q.Workflow = "v" })
	if _, err := w.Claim(t.Context(), other); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a key of another scope: %v", err)
	}
}

func TestARecordIsPinnedToTheRuleThatSentIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	w.finish("a", w.send(r, "a"), ledger.VerdictFailed)
	d := w.send(r, "a", payload("other"), func(q *ledger.Claim) {
		q.Record.ConnectorHash, q.Record.Policy.Settle, q.Record.Target = "new", time.Nanosecond, "new words"
		q.Record.Account, q.Record.Subkey = "another name of acme", "other words"
		q.Record.State, q.Record.Committed, q.Record.Version = ledger.Applied, true, 7
	})
	m := w.is("a", ledger.InFlight)
	if m.Policy.Settle != time.Nanosecond || m.ConnectorHash != "new" || m.Committed {
		t.Errorf("policy %+v, hash %q, committed %v", m.Policy, m.ConnectorHash, m.Committed)
	}
	if m.Account != "another name of acme" || m.Subkey != "other words" {
		t.Errorf("account %q, subkey %q", m.Account, m.Subkey)
	}
	if m.Target != "new words" || m.PayloadDigest != "other" || d.PayloadDigest != "other" {
		t.Errorf("target %q, payload %q", m.Target, m.PayloadDigest)
	}
}

// Settings change what the same rule file asks for.
func TestARecordThatIsSentAgainHasTheSettingsOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	w.finish("a", w.send(r, "a"), ledger.VerdictFailed)
	w.send(r, "a", func(q *ledger.Claim) {
		q.Record.Policy.Settle, q.Record.Policy.Confirmations, q.Record.Policy.OnAbsent = time.Hour, 7, ledger.AbsentEscalate
	})
	if p := w.is("a", ledger.InFlight).Policy; p.Settle != time.Hour || p.Confirmations != 7 || p.OnAbsent != ledger.AbsentEscalate {
		t.Errorf("the policy is %+v", p)
	}
}

// A run whose mutation stopped nothing else failed; the next one has its own scope.
func TestARecordThatIsSentAgainStopsWhatItsNewRunSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow := func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation }
	first := w.open()
	w.finish("a", w.send(first, "a", narrow), ledger.VerdictFailed)
	w.finish("a", w.send(w.open(func(o *ledger.OpenRun) { o.Takeover = true }), "a"), ledger.VerdictUncertain)
	if m := w.is("a", ledger.NeedsReconcile); m.Policy.BlockScope != ledger.BlockWorkflow {
		t.Errorf("it stops its %s", m.Policy.BlockScope)
	}
	_, err := w.OpenRun(t.Context(), ledger.OpenRun{Workflow: "w", Item: "other", TTL: time.Hour})
	if _, blocked := errors.AsType[*ledger.BlockedError](err); !blocked {
		t.Errorf("another item's run: %v", err)
	}
}
