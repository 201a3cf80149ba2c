package integration

import (
	"net/http"
	"testing"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/script"
)

// TestKilledInEachState leaves one mutation in each state, kills the program, and
// looks at what the next one makes of them.
func TestKilledInEachState(t *testing.T) {
	t.Parallel()
	w := prepare(t, crashing, func(s *settings) { s.Settle, s.OnAbsent = "3s", "escalate" })
	w.mustSpawn()
	bring := func(item string, decide string, send func(*scriptRun, string) reply) {
		send(w.open(item, inWorkflow(item)), item)
		if decide != "" {
			w.resolve(w.mutation(item), wire.Resolve{Action: decide})
		}
	}
	bring("applied", "", probed)
	w.probed.arm("400")
	bring("failed", "", probed)
	w.hooks.arm("commit-close")
	bring("skipped", wire.ActionSkip, hook)
	w.hooks.arm("commit-close")
	bring("indeterminate", "", hook)
	w.hooks.arm("commit-cut")
	bring("no-result", "", hook)
	// The next is still in flight, and the last not settled, when the program is killed.
	w.probed.armFault(script.Fault{Match: script.Match{Identity: "transfer:in-flight"}, Steps: []script.Step{{Do: script.Wait, Hold: "in-flight"}, {Do: script.Commit}, {Do: script.Answer}}})
	hanging := w.open("in-flight", inWorkflow("in-flight"))
	gone := make(chan reply, 1)
	go func() {
		gone <- hanging.try(t.Context(), http.MethodPost, w.probed.URL()+"/transfers", order("in-flight"))
	}()
	w.probed.await("the transfer arrived", received("transfer:in-flight", 1))
	w.probed.arm("close")
	bring("needs-reconcile", "", probed)

	w.child.kill()
	if a := <-gone; a.err == nil {
		t.Errorf("the killed program answered %v", a)
	}
	w.probed.Release("in-flight")
	w.quiet()
	w.mustSpawn()

	for item, state := range map[string]string{
		"applied": "applied", "failed": "failed", "skipped": "skipped", "indeterminate": "indeterminate",
		"no-result": "applied", "in-flight": "applied", "needs-reconcile": "indeterminate",
	} {
		w.awaitState(item, state)
	}
	open := func(item string) *scriptRun { return w.open(item, inWorkflow(item)) }
	if a := probed(open("applied"), "applied"); a.status != http.StatusCreated || a.header.Get("Keep-Replayed") != "true" {
		t.Errorf("applied: %v", a)
	}
	probed(open("failed"), "failed").wantApplied(http.StatusCreated)
	hook(open("skipped"), "skipped").wantRefusal("skipped", http.StatusForbidden, "without mutation")
	hook(open("no-result"), "no-result").wantRefusal("no-result", 424, "answer is not known")
	if a := probed(open("in-flight"), "in-flight"); a.status != http.StatusCreated || a.header.Get("Keep-Replayed") != "true" {
		t.Errorf("in flight: %v", a)
	}
	for _, item := range []string{"indeterminate", "needs-reconcile"} {
		_, err := w.tryOpen(item, inWorkflow(item))
		wantProblem(t, err, "blocked", http.StatusLocked)
	}
	w.probed.want("transfer:applied", 1, 1)
	w.probed.want("transfer:failed", 1, 2)
	w.hooks.want("hook:plain/skipped", 1, 1)
	w.hooks.want("hook:plain/indeterminate", 1, 1)
	w.hooks.want("hook:plain/no-result", 1, 1)
	w.probed.want("transfer:in-flight", 1, 1)
	w.probed.want("transfer:needs-reconcile", 0, 1)
	if err := w.child.end(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

func TestTheRunThatCausedAnUnknownIsPausedByRecovery(t *testing.T) {
	t.Parallel()
	w := prepare(t, crashing, func(s *settings) { s.Settle = "2m" })
	w.mustSpawn()
	w.probed.arm("hang")
	run := w.open("a")
	go run.try(t.Context(), http.MethodPost, w.probed.URL()+"/transfers", order("R-1"))
	w.probed.await("the transfer arrived", received("transfer:R-1", 1))
	w.child.kill()
	w.mustSpawn()
	run.wantState("paused:reconciliation")
	_, err := w.tryOpen("b")
	wantProblem(t, err, "blocked", http.StatusLocked)
	w.probed.Release(script.GateHang)
	w.awaitState("a", "applied")
	w.open("b")
	w.probed.want("transfer:R-1", 1, 1)
}

func TestShuttingDownLetsASendingEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("hang")
	run := w.open("a")
	answers := run.askTogether(1, w.probed, "R-1")
	w.probed.await("the transfer arrived", received("transfer:R-1", 1))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.stop()
	}()
	select {
	case <-stopped:
		t.Error("it stopped while something was being sent")
	default:
	}
	w.probed.Release(script.GateHang)
	first := (<-answers).wantApplied(http.StatusCreated)
	<-stopped
	w.start()
	w.again("a").transfer(w.probed, "R-1").wantReplay(first)
	w.probed.want("transfer:R-1", 1, 1)
}

func TestAnIdempotentOpeningSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := wire.OpenRun{Workflow: "books", Item: "a"}
	first, err := w.api.OpenRun(t.Context(), o, "the same")
	if err != nil {
		t.Fatal(err)
	}
	w.restart()
	again, err := w.api.OpenRun(t.Context(), o, "the same")
	if err != nil || again.ID != first.ID || again.Token != first.Token {
		t.Errorf("opened %v, then %v, %v", first.ID, again, err)
	}
}
