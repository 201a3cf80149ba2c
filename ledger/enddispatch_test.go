package ledger_test

import (
	"errors"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestSuccessIsApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	d := w.send(r, "a")
	if m := w.is("a", ledger.InFlight); m.Unresolved() || m.Run != r.ID || d.Owner != w.Process().ID {
		t.Errorf("in flight: unresolved %v, run %q, owner %q", m.Unresolved(), m.Run, d.Owner)
	}
	w.finish("a", d, ledger.VerdictApplied)
	m := w.is("a", ledger.Applied)
	if m.ResultState != ledger.ResultKnown || m.Result.Status != 201 || m.Result.Source != "answer" || !m.Committed {
		t.Errorf("the result is %s %+v", m.ResultState, m.Result)
	}
	w.stands(r, ledger.RunRunning, "")
}

func TestSuccessOverTheLimitIsAppliedWithoutItsBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	w.finish("a", w.send(r, "a"), ledger.VerdictApplied, tooLarge)
	if m := w.is("a", ledger.Applied); m.ResultState != ledger.ResultTooLarge || m.Result != nil {
		t.Errorf("the result is %s %+v", m.ResultState, m.Result)
	}
	w.stands(r, ledger.RunRunning, "")
}

func TestDefiniteFailureIsFailed(t *testing.T) {
	t.Parallel()
	for _, v := range []ledger.Verdict{ledger.VerdictFailed, ledger.VerdictNotSent} {
		w := newWorld(t)
		r := w.open(returns)
		w.finish("a", w.send(r, "a"), v, class(verdict.Precondition))
		if m := w.is("a", ledger.Failed); m.Class != verdict.Precondition || m.Reason != "because of a test" {
			t.Errorf("%s: class %s, reason %q", v, m.Class, m.Reason)
		}
		w.escalated("a", ledger.EscalationPrecondition)
	}
}

func TestUncertainEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		verdict ledger.Verdict
		claim   []func(*ledger.Claim)
		head    bool
		state   ledger.State
		result  ledger.ResultState
		kind    string
		run     ledger.RunState
		class   verdict.Class
	}{
		{"uncertain, with a reconciler", ledger.VerdictUncertain, nil, false,
			ledger.NeedsReconcile, "", "", ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"a verdict that nobody knows", "perhaps", nil, false,
			ledger.NeedsReconcile, "", "", ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"no verdict", "", nil, false,
			ledger.NeedsReconcile, "", "", ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"uncertain, no reconciler", ledger.VerdictUncertain, []func(*ledger.Claim){noReconciler}, false,
			ledger.Indeterminate, "", ledger.EscalationIndeterminate, ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"a cut body, with a reconciler", ledger.VerdictCommitted, nil, false,
			ledger.NeedsReconcile, "", "", ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"a cut body, no reconciler", ledger.VerdictCommitted, []func(*ledger.Claim){noReconciler}, false,
			ledger.Applied, ledger.ResultUnknown, ledger.EscalationNoResult, ledger.RunRunning, ""},
		{"uncertain after the head said success, no reconciler", ledger.VerdictUncertain, []func(*ledger.Claim){noReconciler}, true,
			ledger.Applied, ledger.ResultUnknown, ledger.EscalationNoResult, ledger.RunRunning, ""},
		{"failed after the head said success, with a reconciler", ledger.VerdictFailed, nil, true,
			ledger.NeedsReconcile, "", "", ledger.RunPausedReconciliation, verdict.Indeterminate},
		{"failed after the head said success, no reconciler", ledger.VerdictFailed, []func(*ledger.Claim){noReconciler}, true,
			ledger.Applied, ledger.ResultUnknown, ledger.EscalationNoResult, ledger.RunRunning, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open()
			d := w.send(r, "a", c.claim...)
			if c.head {
				m, err := w.MarkCommitted(t.Context(), key("a"), d.ID, 200)
				w.ok(err)
				if !m.Committed || m.State != ledger.InFlight {
					t.Fatalf("after the head: %s, committed %v", m.State, m.Committed)
				}
			}
			w.finish("a", d, c.verdict)
			m := w.is("a", c.state)
			if m.ResultState != c.result || m.Class != c.class {
				t.Errorf("result %q, class %q, want %q, %q", m.ResultState, m.Class, c.result, c.class)
			}
			w.escalated("a", c.kind)
			w.stands(r, c.run, c.class)
		})
	}
}

func TestASuccessWithoutItsAnswerStopsItsScopeDuringTheInlineTry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	d := w.send(r, "a")
	w.finish("a", d, ledger.VerdictCommitted, pending)
	if m := w.is("a", ledger.InFlight); !m.Committed || !m.Unresolved() {
		t.Errorf("committed %v, unresolved %v", m.Committed, m.Unresolved())
	}
	if out := w.claim(r, "b", held); out.Decision != ledger.DecideBlocked {
		t.Errorf("another mutation beside it: %q", out.Decision)
	}
}

func TestInlineTryKeepsTheRecordInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	d := w.send(r, "a")
	w.finish("a", d, ledger.VerdictUncertain, pending)
	if m := w.is("a", ledger.InFlight); !m.Unresolved() {
		t.Error("a judged record stops nothing")
	}
	w.stands(r, ledger.RunRunning, "")
	next := w.now.Wall.Add(time.Second)
	out, err := w.Park(t.Context(), key("a"), d.ID, next, "the inline try saw nothing")
	w.ok(err)
	if m := w.is("a", ledger.NeedsReconcile); !m.NextTryAt.Equal(next) || m.UnknownSince != w.now {
		t.Errorf("due at %s, unknown since %+v", m.NextTryAt, m.UnknownSince)
	}
	if out.Run == nil || out.Run.State != ledger.RunPausedReconciliation {
		t.Errorf("the run is %+v", out.Run)
	}
	again, err := w.Park(t.Context(), key("a"), d.ID, next, "again")
	if err != nil || again.Mutation.Version != w.mutation("a").Version {
		t.Errorf("parking twice: %+v, %v", again.Mutation, err)
	}
}

func TestParkWithoutAVerdictIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send(w.open(), "a")
	if _, err := w.Park(t.Context(), key("a"), d.ID, w.now.Wall, "too early"); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("parking what is being sent: %v", err)
	}
	w.is("a", ledger.InFlight)
}

func TestInlineTryWithoutAReconcilerIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish("a", w.send(w.open(), "a", noReconciler), ledger.VerdictUncertain, pending)
	w.is("a", ledger.Indeterminate)
}

func TestInlineResend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		verdict ledger.Verdict
		state   ledger.State
		closed  bool
	}{
		{"its success settles the record", ledger.VerdictApplied, ledger.Applied, false},
		{"its failure proves nothing about the first sending", ledger.VerdictFailed, ledger.NeedsReconcile, true},
		{"proven not sent proves nothing and uses nothing up", ledger.VerdictNotSent, ledger.NeedsReconcile, false},
		{"its uncertain end leaves it unknown", ledger.VerdictUncertain, ledger.NeedsReconcile, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.send(w.open(), "a", nativeKey)
			w.finish("a", d, ledger.VerdictUncertain, pending)
			again := w.resend("a")
			if m := w.is("a", ledger.InFlight); !m.Unresolved() || m.VendorKey == "" || again.Generation != d.Generation {
				t.Errorf("during the resend: unresolved %v, generation %d after %d", m.Unresolved(), again.Generation, d.Generation)
			}
			w.finish("a", again, c.verdict)
			if m := w.is("a", c.state); m.ResendClosed != c.closed {
				t.Errorf("resends closed: %v, want %v", m.ResendClosed, c.closed)
			}
		})
	}
}

// resend sends the mutation again by the resend strategy.
func (w *world) resend(name string) *ledger.Dispatch {
	w.t.Helper()
	m := w.mutation(name)
	_, d, err := w.Resend(w.t.Context(), ledger.Resend{
		Key: m.Key, Version: m.Version, DispatchID: w.id(), Deadline: time.Minute,
	})
	w.ok(err)
	return d
}

// When it was sent, by whom and under which key is the claim's word: windows count from there,
// whatever who ends it thinks.
func TestAnEndChangesNothingThatTheClaimRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send(w.open(), "a", nativeKey, clientKey("k"), inSteps)
	_, err := w.Prepared(t.Context(), key("a"), d.ID, map[string]string{"draft": `"d1"`})
	w.ok(err)
	claimed := *w.mutation("a").Current()
	w.pass(time.Hour)
	w.finish("a", &ledger.Dispatch{
		ID: d.ID, Owner: "somebody", Run: "another", Generation: 7, Resend: true, Redispatch: true, PayloadDigest: "other",
		ClientKey: "other", Started: w.now, Lost: true,
	}, ledger.VerdictUncertain)
	ended := *w.is("a", ledger.NeedsReconcile).Current()
	claimed.Ended, claimed.Verdict, claimed.Reason = ended.Ended, ended.Verdict, ended.Reason
	if ended != claimed {
		t.Errorf("recorded was %+v\nnow it is     %+v", claimed, ended)
	}
}

func TestLateSuccess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		until func(w *world, d *ledger.Dispatch)
		state ledger.State
	}{
		{"of what needs reconciling", func(w *world, d *ledger.Dispatch) { w.finish("a", d, ledger.VerdictUncertain) },
			ledger.NeedsReconcile},
		{"of what automation gave up", func(w *world, d *ledger.Dispatch) {
			w.finish("a", d, ledger.VerdictUncertain)
			m := w.mutation("a")
			_, err := w.Exhaust(w.t.Context(), m.Key, m.Version, "no strategy left")
			w.ok(err)
		}, ledger.Indeterminate},
		{"of what a person denied", func(w *world, d *ledger.Dispatch) {
			w.finish("a", d, ledger.VerdictUncertain)
			w.decide("a", ledger.OnDidNotHappen, force)
		}, ledger.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.send(w.open(), "a")
			c.until(w, d)
			w.is("a", c.state)
			w.finish("a", d, ledger.VerdictApplied)
			if m := w.is("a", ledger.Applied); m.ResultState != ledger.ResultKnown {
				t.Errorf("result %q", m.ResultState)
			}
			w.escalated("a", "")
		})
	}
}

func TestLateSuccessWhileANewerDispatchIsInFlight(t *testing.T) {
	t.Parallel()
	for _, v := range []ledger.Verdict{
		ledger.VerdictApplied, ledger.VerdictFailed, ledger.VerdictUncertain, ledger.VerdictCommitted, "lost",
	} {
		t.Run("the newer one ends "+string(v), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.send(w.open(), "a")
			w.finish("a", first, ledger.VerdictUncertain)
			w.decide("a", ledger.OnDidNotHappen, force)
			second := w.send(w.open(), "a")
			w.finish("a", first, ledger.VerdictApplied)
			if m := w.is("a", ledger.InFlight); !m.Committed {
				t.Fatal("the late success didn't make it committed")
			}
			if v == "lost" {
				w.restart()
			} else {
				w.finish("a", second, v)
			}
			if m := w.is("a", ledger.Applied); m.ResultState != ledger.ResultKnown || m.Result.Status != 201 {
				t.Errorf("the answer of the late success is lost: %s", m.ResultState)
			}
		})
	}
}

func TestLateSuccessWithoutItsAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		claim []func(*ledger.Claim)
		state ledger.State
	}{
		{"is asked for where that can be", nil, ledger.NeedsReconcile},
		{"is applied, and a person asked, where it can't", []func(*ledger.Claim){noReconciler}, ledger.Applied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.send(w.open(), "a", c.claim...)
			w.finish("a", d, ledger.VerdictUncertain)
			w.decide("a", ledger.OnDidNotHappen, force)
			m, err := w.MarkCommitted(t.Context(), key("a"), d.ID, 200)
			w.ok(err)
			if m.State != c.state || !m.Committed {
				t.Fatalf("after the head: %s, committed %v", m.State, m.Committed)
			}
			w.finish("a", d, ledger.VerdictApplied)
			if m := w.is("a", ledger.Applied); m.ResultState != ledger.ResultKnown {
				t.Errorf("result %q", m.ResultState)
			}
			w.escalated("a", "")
		})
	}
}

func TestALateSuccessWithoutItsAnswerIsNotForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.send(w.open(), "a")
	w.finish("a", first, ledger.VerdictUncertain)
	w.decide("a", ledger.OnDidNotHappen, force)
	second := w.send(w.open(), "a")
	w.finish("a", first, ledger.VerdictCommitted)
	if m := w.is("a", ledger.InFlight); !m.Committed {
		t.Error("the late success didn't make it committed")
	}
	w.finish("a", second, ledger.VerdictFailed)
	w.is("a", ledger.NeedsReconcile)
	w.pass(time.Hour)
	w.see("a", ledger.SeenAbsent)
	w.pass(time.Minute)
	w.see("a", ledger.SeenAbsent)
	w.is("a", ledger.NeedsReconcile)
}

func TestOtherLateVerdictsAreFencedOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.send(w.open(), "a")
	w.finish("a", first, ledger.VerdictUncertain)
	w.decide("a", ledger.OnDidNotHappen, force)
	second := w.send(w.open(), "a")
	for _, v := range []ledger.Verdict{ledger.VerdictFailed, ledger.VerdictNotSent, ledger.VerdictUncertain} {
		if _, err := w.EndDispatch(t.Context(), end("a", first, v)); !errors.Is(err, ledger.ErrNotAllowed) {
			t.Errorf("%s after an uncertain verdict: %v", v, err)
		}
	}
	w.is("a", ledger.InFlight)
	w.finish("a", second, ledger.VerdictApplied)
	if _, err := w.EndDispatch(t.Context(), end("a", second, ledger.VerdictApplied)); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("a second verdict: %v", err)
	}
	third := w.send(w.open(takeover), "b")
	w.finish("b", third, ledger.VerdictFailed)
	for _, v := range []ledger.Verdict{ledger.VerdictApplied, ledger.VerdictCommitted, ledger.VerdictAccepted, ledger.VerdictUncertain} {
		if _, err := w.EndDispatch(t.Context(), end("b", third, v, status202)); !errors.Is(err, ledger.ErrNotAllowed) {
			t.Errorf("%s after a failure: %v", v, err)
		}
	}
	w.is("b", ledger.Failed)
}

func TestOnlyTheOwnerFinishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send(w.open(), "a")
	w.restart()
	for _, v := range []ledger.Verdict{ledger.VerdictApplied, ledger.VerdictFailed} {
		if _, err := w.EndDispatch(t.Context(), end("a", d, v)); !errors.Is(err, ledger.ErrNotAllowed) {
			t.Errorf("%s by another process: %v", v, err)
		}
	}
	if _, err := w.MarkCommitted(t.Context(), key("a"), d.ID, 200); !errors.Is(err, ledger.ErrNotAllowed) {
		t.Errorf("the head by another process: %v", err)
	}
	if _, err := w.EndDispatch(t.Context(), end("a", &ledger.Dispatch{ID: "nobody's"}, ledger.VerdictApplied)); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("an unknown dispatch: %v", err)
	}
	w.is("a", ledger.NeedsReconcile)
}

func TestEndOfAnOverriddenDispatchIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send(w.open(), "a", nativeKey)
	w.finish("a", d, ledger.VerdictUncertain)
	again := w.resend("a")
	w.decide("a", ledger.OnHappened, given)
	w.finish("a", again, ledger.VerdictApplied)
	m := w.is("a", ledger.Applied)
	if m.Result.Source != "person" || m.Dispatch(again.ID).Verdict != ledger.VerdictApplied {
		t.Errorf("result of %s, verdict %s", m.Result.Source, m.Dispatch(again.ID).Verdict)
	}
}

// A success is known from then on, wherever the record was left while it was sent again: else it
// would be believed absent, or sent once more as denied.
func TestASuccessWithoutItsAnswerCountsWhereverTheRecordIs(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*world){
		"unknown": func(*world) {},
		"denied":  func(w *world) { w.decide("a", ledger.OnDidNotHappen, force) },
		"given up": func(w *world) {
			m := w.mutation("a")
			_, err := w.Exhaust(w.t.Context(), m.Key, m.Version, "no strategy is left")
			w.ok(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a", nativeKey)
			again := w.resend("a")
			leave(w)
			w.finish("a", again, ledger.VerdictCommitted)
			if m := w.is("a", ledger.NeedsReconcile); !m.Committed {
				t.Error("it isn't known to have happened")
			}
		})
	}
}
