package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func takeover(o *ledger.OpenRun) { o.Takeover = true }

func once(o *ledger.OpenRun) { o.Once, o.Item = true, "" }

func TestOpenRunDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.OpenRun(t.Context(), ledger.OpenRun{Workflow: "w", Item: "i", Title: "Pay"})
	w.ok(err)
	if r.State != ledger.RunRunning || r.Mutations != ledger.MutationsMany || r.OnFailure != ledger.FailureAbort || r.Attempt != 1 {
		t.Errorf("run %+v", r)
	}
	if !r.ExpiresAt.Equal(w.now.Wall.Add(ledger.DefaultRunTTL)) {
		t.Errorf("expires at %s", r.ExpiresAt)
	}
	if i := w.item("i"); i.State != ledger.ItemOpen || i.ActiveRun != r.ID || i.Attempt != 1 || i.Title != "Pay" {
		t.Errorf("item %+v", i)
	}
}

func TestOpenRunIsRefused(t *testing.T) {
	t.Parallel()
	done := func(w *world) {
		r := w.open()
		_, err := w.FinishRun(w.t.Context(), r.ID, ledger.OutcomeDone, false)
		w.ok(err)
	}
	unknown := func(scope ledger.BlockScope) func(*world) {
		return func(w *world) { w.unknown("a", func(q *ledger.Claim) { q.Record.Policy.BlockScope = scope }) }
	}
	onceUnknown := func(w *world) {
		r := w.open(once)
		d := w.send(r, "a", func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation })
		w.finish("a", d, ledger.VerdictUncertain)
	}
	attempt := func(n int) func(*ledger.OpenRun) { return func(o *ledger.OpenRun) { o.Attempt = n } }
	for _, c := range []struct {
		name   string
		before func(*world)
		change []func(*ledger.OpenRun)
		want   error
	}{
		{"a done item", done, nil, ledger.ErrItemDone},
		{"a done item, by a takeover", done, []func(*ledger.OpenRun){takeover}, ledger.ErrItemDone},
		{"a busy item", func(w *world) { w.open() }, nil, ledger.ErrItemBusy},
		{"a busy item, by a takeover", func(w *world) { w.open() }, []func(*ledger.OpenRun){takeover}, nil},
		{"a busy item whose run is overdue", func(w *world) { w.open(); w.pass(101 * time.Hour) }, nil, nil},
		{"an item that needs attention", func(w *world) { w.applied("a"); w.claim(w.open(), "a", payload("other")) }, nil,
			ledger.ErrItemAttention},
		{"another attempt", nil, []func(*ledger.OpenRun){attempt(2)}, ledger.ErrAttempt},
		{"another attempt of a done item", done, []func(*ledger.OpenRun){attempt(2)}, ledger.ErrAttempt},
		{"another attempt of a busy item", func(w *world) { w.open() }, []func(*ledger.OpenRun){attempt(2), takeover}, ledger.ErrAttempt},
		{"another attempt of an item that needs attention", func(w *world) { w.applied("a"); w.claim(w.open(), "a", payload("other")) },
			[]func(*ledger.OpenRun){attempt(2)}, ledger.ErrAttempt},
		{"the current attempt by number", nil, []func(*ledger.OpenRun){attempt(1)}, nil},
		{"a stopped workflow, another item", unknown(ledger.BlockWorkflow), []func(*ledger.OpenRun){item("j")}, ledger.ErrBlocked},
		{"a stopped workflow, once", unknown(ledger.BlockWorkflow), []func(*ledger.OpenRun){once}, ledger.ErrBlocked},
		{"another workflow", unknown(ledger.BlockWorkflow), []func(*ledger.OpenRun){func(o *ledger.OpenRun) { o.Workflow = "v" }}, nil},
		{"a stopped item", unknown(ledger.BlockItem), nil, ledger.ErrBlocked},
		{"a stopped item, another item", unknown(ledger.BlockItem), []func(*ledger.OpenRun){item("j")}, nil},
		{"a stopped mutation", unknown(ledger.BlockMutation), nil, nil},
		{"once after an unknown of once, whatever its scope", onceUnknown, []func(*ledger.OpenRun){once}, ledger.ErrBlocked},
		{"an item after an unknown of once", onceUnknown, nil, nil},
		{"no workflow", nil, []func(*ledger.OpenRun){func(o *ledger.OpenRun) { o.Workflow = "" }}, ledger.ErrInvalid},
		{"neither item nor once", nil, []func(*ledger.OpenRun){item("")}, ledger.ErrInvalid},
		{"both item and once", nil, []func(*ledger.OpenRun){func(o *ledger.OpenRun) { o.Once = true }}, ledger.ErrInvalid},
		{"an item named as one of once", nil, []func(*ledger.OpenRun){item("once:1")}, ledger.ErrInvalid},
		{"once at a later attempt", nil, []func(*ledger.OpenRun){once, attempt(2)}, ledger.ErrInvalid},
		{"a negative attempt", nil, []func(*ledger.OpenRun){attempt(-1)}, ledger.ErrInvalid},
		{"a negative ttl", nil, []func(*ledger.OpenRun){func(o *ledger.OpenRun) { o.TTL = -1 }}, ledger.ErrInvalid},
		{"unknown mutations", nil, []func(*ledger.OpenRun){func(o *ledger.OpenRun) { o.Mutations = "few" }}, ledger.ErrInvalid},
		{"unknown on_failure", nil, []func(*ledger.OpenRun){func(o *ledger.OpenRun) { o.OnFailure = "shrug" }}, ledger.ErrInvalid},
		{"unknown block_scope", nil, []func(*ledger.OpenRun){func(o *ledger.OpenRun) { o.BlockScope = "world" }}, ledger.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.before != nil {
				c.before(w)
			}
			o := ledger.OpenRun{Workflow: "w", Item: "i"}
			for _, change := range c.change {
				change(&o)
			}
			r, err := w.OpenRun(t.Context(), o)
			if !errors.Is(err, c.want) || (r == nil) != (c.want != nil) {
				t.Fatalf("run %+v, error %v; want %v", r, err, c.want)
			}
			var blocked *ledger.BlockedError
			if errors.Is(err, ledger.ErrBlocked) && (!errors.As(err, &blocked) || blocked.Blockers[0].Key != key("a")) {
				t.Errorf("the error doesn't name what blocks: %v", err)
			}
		})
	}
}

func TestDefiniteFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		open   []func(*ledger.OpenRun)
		finish []func(*ledger.EndDispatch)
		state  ledger.RunState
		class  verdict.Class
		item   ledger.ItemState
		kind   string
	}{
		{"logic aborts", nil, []func(*ledger.EndDispatch){class(verdict.Logic)},
			ledger.RunAborted, verdict.Logic, ledger.ItemFailed, ""},
		{"precondition aborts and escalates", nil, []func(*ledger.EndDispatch){class(verdict.Precondition)},
			ledger.RunAborted, verdict.Precondition, ledger.ItemFailed, ledger.EscalationPrecondition},
		{"permission aborts and escalates", nil, []func(*ledger.EndDispatch){class(verdict.Permission)},
			ledger.RunAborted, verdict.Permission, ledger.ItemFailed, ledger.EscalationPermission},
		{"transient opens the grace", nil, nil, ledger.RunFailing, verdict.Transient, ledger.ItemOpen, ""},
		{"401 opens the grace, and nobody is asked yet", nil, []func(*ledger.EndDispatch){unauthorized},
			ledger.RunFailing, verdict.Permission, ledger.ItemOpen, ""},
		{"a redirect is passed on", nil, []func(*ledger.EndDispatch){class(verdict.Logic), passedOn},
			ledger.RunRunning, "", ledger.ItemOpen, ""},
		{"on_failure return tells the script", []func(*ledger.OpenRun){returns}, []func(*ledger.EndDispatch){class(verdict.Logic)},
			ledger.RunRunning, "", ledger.ItemOpen, ""},
		{"on_failure return, 401", []func(*ledger.OpenRun){returns}, []func(*ledger.EndDispatch){unauthorized},
			ledger.RunRunning, "", ledger.ItemOpen, ledger.EscalationPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open(c.open...)
			w.finish("a", w.send(r, "a"), ledger.VerdictFailed, c.finish...)
			w.is("a", ledger.Failed)
			w.stands(r, c.state, c.class)
			w.escalated("a", c.kind)
			i := w.item("i")
			if i.State != c.item || (i.ActiveRun == "") != c.state.Ended() {
				t.Errorf("the item is %s with run %q", i.State, i.ActiveRun)
			}
			if c.item == ledger.ItemFailed && w.item("i").Cause != key("a").ID() {
				t.Errorf("the item's cause is %q", i.Cause)
			}
			if c.state.Ended() {
				if i = w.item("i"); w.open() == nil || w.item("i").State != ledger.ItemOpen {
					t.Errorf("a new run doesn't open the item: %s", i.State)
				}
			}
		})
	}
}

func TestJoinersShareAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	out, err := w.FailRun(t.Context(), r.ID, ledger.Failure{Key: key("a"), Digest: "payload", Class: verdict.Logic, Reason: "422"})
	if err != nil || out.State != ledger.RunAborted || out.Cause != key("a").ID() || out.Reason != "422" {
		t.Errorf("run %+v, %v", out, err)
	}
	again, err := w.FailRun(t.Context(), r.ID, ledger.Failure{Key: key("b"), Digest: "payload", Class: verdict.Permission, Reason: "403"})
	if err != nil || again.Reason != "422" {
		t.Errorf("failing a run that is over: %+v, %v", again, err)
	}
	if _, err := w.FailRun(t.Context(), "nobody's", ledger.Failure{Key: key("a"), Class: verdict.Logic}); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
}

// accepted has a mutation answered by a 202 that is followed.
func (w *world) accepted(r *ledger.Run, name string) {
	w.t.Helper()
	out := w.finish(name, w.send(r, name, func(q *ledger.Claim) { q.Record.Policy.WatchMax = time.Hour }), ledger.VerdictAccepted, func(f *ledger.EndDispatch) {
		f.Result = &ledger.Result{Status: 202}
	})
	if !out.Mutation.Watching {
		w.t.Fatalf("%s is %s, and not followed", name, out.Mutation.State)
	}
}

// What an earlier run of the item had accepted keeps it open, too.
func TestAnItemIsNotClosedOverWhatIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open()
	w.accepted(first, "a")
	_, err := w.EndRun(t.Context(), first.ID, verdict.Transient, "over", "person:ada")
	w.ok(err)
	if _, err := w.decideItem(ledger.ItemClose); !errors.Is(err, ledger.ErrItemUnresolved) {
		t.Errorf("a person closes it: %v", err)
	}
	second := w.open()
	if _, err := w.FinishRun(t.Context(), second.ID, ledger.OutcomeDone, false); !errors.Is(err, ledger.ErrRunUnfinished) {
		t.Errorf("a later run closes it: %v", err)
	}
	w.Replayed(second.ID, w.mutation("a"), "", true)
	if _, err := w.FinishRun(t.Context(), second.ID, ledger.OutcomeDone, true); !errors.Is(err, ledger.ErrRunUnfinished) {
		t.Errorf("a later run that was given its answer finishes before it ends: %v", err)
	}
	_, err = w.EndRun(t.Context(), second.ID, verdict.Transient, "over", "person:ada")
	w.ok(err)
	third := w.open()
	if _, err := w.FinishRun(t.Context(), third.ID, ledger.OutcomeDone, true); err != nil || w.item("i").State != ledger.ItemOpen {
		t.Errorf("a later run that leaves it open: %v, the item is %s", err, w.item("i").State)
	}
}

func TestFinishRun(t *testing.T) {
	t.Parallel()
	fails := func(change ...func(*ledger.EndDispatch)) func(*world, *ledger.Run) {
		return func(w *world, r *ledger.Run) {
			w.finish("a", w.send(r, "a"), ledger.VerdictFailed, append(change, class(verdict.Logic))...)
		}
	}
	deliver := func(before func(*world, *ledger.Run)) func(*world, *ledger.Run) {
		return func(w *world, r *ledger.Run) { before(w, r); w.Deliver(r.ID, w.mutation("a"), "") }
	}
	for _, c := range []struct {
		name    string
		open    []func(*ledger.OpenRun)
		before  func(*world, *ledger.Run)
		outcome string
		want    error
		state   ledger.RunState
		item    ledger.ItemState
	}{
		{"nothing was mutated", nil, nil, ledger.OutcomeDone, nil, ledger.RunFinished, ledger.ItemDone},
		{"all applied", nil, func(w *world, r *ledger.Run) { w.finish("a", w.send(r, "a"), ledger.VerdictApplied) },
			ledger.OutcomeDone, nil, ledger.RunFinished, ledger.ItemDone},
		{"one in flight", nil, func(w *world, r *ledger.Run) { w.send(r, "a") },
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunRunning, ledger.ItemOpen},
		{"one unknown", nil, func(w *world, r *ledger.Run) { w.finish("a", w.send(r, "a"), ledger.VerdictUncertain) },
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunPausedReconciliation, ledger.ItemOpen},
		{"one that was accepted and is followed", nil, func(w *world, r *ledger.Run) { w.accepted(r, "a") },
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunRunning, ledger.ItemOpen},
		{"one failed under on_failure return, delivered", []func(*ledger.OpenRun){returns}, deliver(fails()),
			ledger.OutcomeDone, nil, ledger.RunFinished, ledger.ItemDone},
		{"one failed under on_failure return, not delivered", []func(*ledger.OpenRun){returns}, fails(),
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunRunning, ledger.ItemOpen},
		{"one failed under on_failure return again, and only the first was delivered", []func(*ledger.OpenRun){returns},
			func(w *world, r *ledger.Run) { deliver(fails())(w, r); fails()(w, r) },
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunRunning, ledger.ItemOpen},
		{"a redirect, delivered", nil, deliver(fails(passedOn)),
			ledger.OutcomeDone, nil, ledger.RunFinished, ledger.ItemDone},
		{"a redirect, not delivered", nil, fails(passedOn),
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunRunning, ledger.ItemOpen},
		{"one failed and aborted the run", nil, fails(),
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunAborted, ledger.ItemFailed},
		{"failing", nil, func(w *world, r *ledger.Run) { w.finish("a", w.send(r, "a"), ledger.VerdictFailed) },
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunFailing, ledger.ItemOpen},
		{"an unmanaged mutation of the item is in flight", nil, func(w *world, _ *ledger.Run) { w.send(nil, "a") },
			ledger.OutcomeDone, ledger.ErrRunUnfinished, ledger.RunRunning, ledger.ItemOpen},
		{"finished as failed", nil, nil, ledger.OutcomeFailed, nil, ledger.RunAborted, ledger.ItemFailed},
		{"finished as failed with one in flight", nil, func(w *world, r *ledger.Run) { w.send(r, "a") },
			ledger.OutcomeFailed, nil, ledger.RunAborted, ledger.ItemFailed},
		{"finished as failed after an unknown", nil,
			func(w *world, r *ledger.Run) { w.finish("a", w.send(r, "a"), ledger.VerdictUncertain) },
			ledger.OutcomeFailed, ledger.ErrRunEnded, ledger.RunPausedReconciliation, ledger.ItemOpen},
		{"an unknown outcome word", nil, nil, "perhaps", ledger.ErrInvalid, ledger.RunRunning, ledger.ItemOpen},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open(c.open...)
			if c.before != nil {
				c.before(w, r)
			}
			if _, err := w.FinishRun(t.Context(), r.ID, c.outcome, false); !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if got := w.run(r.ID); got.State != c.state {
				t.Errorf("the run is %s, want %s", got.State, c.state)
			}
			if got := w.item("i"); got.State != c.item || got.State != ledger.ItemOpen && got.ActiveRun != "" {
				t.Errorf("the item is %s with run %q, want %s", got.State, got.ActiveRun, c.item)
			}
			if c.want != nil {
				return
			}
			version := w.run(r.ID).Version
			if again, err := w.FinishRun(t.Context(), r.ID, c.outcome, false); err != nil || again.Version != version {
				t.Errorf("finishing again: %v", err)
			}
		})
	}
}

func TestKeepOpenLeavesTheItemOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	d := w.send(r, "a")
	if _, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, true); !errors.Is(err, ledger.ErrRunUnfinished) {
		t.Errorf("finished over a mutation in flight: %v", err)
	}
	w.finish("a", d, ledger.VerdictApplied)
	_, err := w.FinishRun(t.Context(), r.ID, ledger.OutcomeDone, true)
	w.ok(err)
	if i := w.item("i"); i.State != ledger.ItemOpen || i.ActiveRun != "" {
		t.Errorf("item %+v", i)
	}
	w.open()
}

func TestEndingARunTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open()
	first, err := w.RefuseRun(t.Context(), r.ID, "stopped", "m-1")
	if err != nil || first.State != ledger.RunAborted || first.Class != verdict.Transient || first.Cause != "m-1" {
		t.Errorf("run %+v, %v", first, err)
	}
	second, err := w.EndRun(t.Context(), r.ID, verdict.Logic, "again", "person:ada")
	if err != nil || second.Version != first.Version || second.Reason != "stopped" {
		t.Errorf("run %+v, %v", second, err)
	}
	if _, err := w.EndRun(t.Context(), r.ID, verdict.Logic, "", "person:ada"); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("ending without a reason: %v", err)
	}
}

func TestTimeLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(func(o *ledger.OpenRun) { o.TTL = time.Minute })
	w.pass(59 * time.Second)
	beat, err := w.Heartbeat(t.Context(), r.ID, time.Minute)
	if err != nil || !beat.ExpiresAt.Equal(w.now.Wall.Add(time.Minute)) {
		t.Errorf("heartbeat: %+v, %v", beat, err)
	}
	w.pass(time.Minute)
	if out := w.claim(r, "a"); out.Problem != "run-aborted" || !out.RunRefused {
		t.Errorf("a claim after the limit: %q", out.Problem)
	}
	w.stands(r, ledger.RunAborted, verdict.Transient)
	if i := w.item("i"); i.State != ledger.ItemOpen {
		t.Errorf("the item is %s", i.State)
	}
	if out, err := w.Heartbeat(t.Context(), r.ID, time.Minute); !errors.Is(err, ledger.ErrRunEnded) || out == nil {
		t.Errorf("a heartbeat after the end: %v", err)
	}
	if _, err := w.Heartbeat(t.Context(), r.ID, 0); !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a heartbeat of no time: %v", err)
	}
	late := w.open(func(o *ledger.OpenRun) { o.TTL = time.Minute })
	w.pass(time.Minute)
	if out, err := w.Heartbeat(t.Context(), late.ID, time.Minute); !errors.Is(err, ledger.ErrRunEnded) || out.State != ledger.RunAborted {
		t.Errorf("a heartbeat after the limit: %+v, %v", out, err)
	}
}

// unlisted is a store whose listings aren't asked.
type unlisted struct {
	ledger.Store
	t *testing.T
}

func (s unlisted) Runs(context.Context, ledger.Filter) (ledger.Page[*ledger.Run], error) {
	s.t.Error("the runs of all times were looked through")
	return ledger.Page[*ledger.Run]{}, nil
}

func TestExpireRunsLooksAtTheRunningOnesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Ledger = ledger.New(unlisted{&checkedStore{Store: w.store, w: w}, t}, ledger.Config{
		Now:   func() ledger.Stamp { return w.now },
		NewID: w.id,
	})
	for range 1100 {
		w.open(item("i"+w.id()), func(o *ledger.OpenRun) { o.TTL = time.Minute })
	}
	w.open(item("last"))
	w.pass(time.Minute)
	if n, err := w.ExpireRuns(t.Context()); n != 1100 || err != nil {
		t.Errorf("%d runs, %v", n, err)
	}
	if n, err := w.ExpireRuns(t.Context()); n != 0 || err != nil {
		t.Errorf("again: %d runs, %v", n, err)
	}
}
