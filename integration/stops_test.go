package integration

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/script"
)

func inBooks(workflow string) func(*wire.OpenRun) {
	return func(o *wire.OpenRun) { o.Workflow = workflow }
}

func mutationsOf(allowance string) func(*wire.OpenRun) {
	return func(o *wire.OpenRun) { o.Mutations = allowance }
}

func TestAnUnknownOutcomeStopsItsWorkflow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, elsewhere := w.open("b"), w.open("c", inBooks("other books"))
	w.hooks.arm("commit-close")
	w.open("a").deliver("plain/x").wantRefusal("unknown-outcome", 424, "a person must decide")
	m := w.mutation("a")
	got := other.read(w.probed).wantRefusal("blocked", http.StatusLocked, m.ID)
	if got.Mutation == nil || got.Mutation.ID != m.ID || len(got.Actions) == 0 {
		t.Errorf("blocked: %+v", got)
	}
	other.wantState("aborted")
	_, err := w.tryOpen("d")
	wantProblem(t, err, "blocked", http.StatusLocked)
	elsewhere.transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	status, err := w.api.Status(t.Context())
	if err != nil || status.Unknown != 1 || status.Escalated != 1 || len(status.Stopped) != 1 || status.Stopped[0].Mutation != m.ID {
		t.Errorf("status: %+v, %v", status, err)
	}

	w.resolve(m, wire.Resolve{Action: wire.ActionHappened, NoResult: true})
	// A run that was refused has seen the world with a hole in it.
	other.read(w.probed).wantRefusal("run-aborted", 424, "over")
	if a := w.open("d").read(w.probed); a.status != http.StatusOK {
		t.Errorf("a new run of the workflow got %v", a)
	}
	w.hooks.want("hook:plain/x", 1, 1)
}

func TestTheItemScopeStopsItsItemAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook string
		edit func(*settings)
		run  []func(*wire.OpenRun)
	}{
		"said by the operation":                           {"item/x", nil, nil},
		"said by the operation before the run":            {"item/x", nil, []func(*wire.OpenRun){blockScope("workflow")}},
		"said by the run":                                 {"plain/x", nil, []func(*wire.OpenRun){blockScope("item")}},
		"said by the run before the configuration":        {"plain/x", func(s *settings) { s.BlockScope = "mutation" }, []func(*wire.OpenRun){blockScope("item")}},
		"said by the configuration, where nobody else is": {"plain/x", func(s *settings) { s.BlockScope = "item" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *settings) {
				if c.edit != nil {
					c.edit(s)
				}
			})
			other := w.open("b")
			w.hooks.arm("commit-close")
			run := w.open("a", c.run...)
			run.deliver(c.hook).wantRefusal("unknown-outcome", 424, "a person must decide")
			run.wantState("paused:reconciliation")
			_, err := w.tryOpen("a")
			wantProblem(t, err, "blocked", http.StatusLocked)
			other.transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
			other.wantState("running")
			w.hooks.want("hook:"+c.hook, 1, 1)
		})
	}
}

func TestTheMutationScopeStopsItsMutationAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("commit-close")
	run := w.open("a")
	run.deliver("mutation/x").wantRefusal("unknown-outcome", 424, "a person must decide")
	run.wantState("paused:reconciliation")
	next := w.open("a")
	next.deliver("mutation/y").wantApplied(http.StatusOK)
	next.deliver("mutation/x").wantRefusal("blocked", http.StatusLocked, "unknown")
	next.wantState("aborted")
	w.hooks.want("hook:mutation/x", 1, 1)
	w.hooks.want("hook:mutation/y", 1, 1)
}

func TestHeldRequestsWaitForTheOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *settings) { s.Hold = "100s" })
	other := w.open("b")
	w.probed.arm("close")
	w.open("a").transfer(w.probed, "R-1").wantRefusal("unknown-outcome", 424, "goes on asking")
	// Absence is believed while this waits.
	if a := other.read(w.probed); a.status != http.StatusOK {
		t.Errorf("the held read got %v", a)
	}
	other.wantState("running")
	if m := w.mutation("a"); m.State != "failed" {
		t.Errorf("the read was let through while the mutation was %s", m.State)
	}
}

func TestHoldingEndsInARefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *settings) { s.Hold, s.Inline = "100ms", "100ms" })
	other := w.open("b")
	w.hooks.arm("close")
	w.open("a").deliver("plain/x").wantRefusal("unknown-outcome", 424, "a person must decide")
	other.deliver("plain/y").wantRefusal("blocked", http.StatusLocked, "unknown")
	other.wantState("aborted")
	w.hooks.want("hook:plain/y", 0, 0)
}

func TestOneRunOfAnItemAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.open("a")
	_, err := w.tryOpen("a")
	wantProblem(t, err, "item-busy", http.StatusConflict)
	second := w.open("a", takeover)
	first.deliver("plain/x").wantRefusal("run-aborted", 424, "over")
	second.deliver("plain/x").wantApplied(http.StatusOK)
	w.hooks.want("hook:plain/x", 1, 1)
	_, err = w.tryOpen("a", func(o *wire.OpenRun) { o.Attempt = 2 })
	wantProblem(t, err, "attempt", http.StatusConflict)
}

func TestTheGraceOfAFailingRunIsUsedUp(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*settings){
		"by its tries": func(s *settings) { s.RetryTries = 2 },
		"by its time":  func(s *settings) { s.RetryGrace = "200ms" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, edit)
			w.hooks.armFault(script.Fault{Times: script.Always, Steps: []script.Step{{Do: script.Status, Status: http.StatusTooManyRequests}}})
			run := w.open("a")
			if a := run.deliver("plain/x"); a.status != http.StatusTooManyRequests {
				t.Errorf("got %v", a)
			}
			w.poll("the run is aborted", func() bool {
				if run.state() == "aborted" {
					return true
				}
				if name == "by its tries" {
					run.deliver("plain/x")
				}
				return false
			})
			sends := w.hooks.tally().Sends("hook:plain/x")
			run.deliver("plain/x").wantRefusal("run-aborted", 424, "over")
			run.read(w.probed).wantRefusal("run-aborted", 424, "over")
			w.hooks.want("hook:plain/x", 0, sends)
			if name == "by its tries" && sends != 3 {
				t.Errorf("sent %d times, want the first and two more", sends)
			}
		})
	}
}

func TestARunWithoutAGraceRepeatsNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*settings){
		"no tries": func(s *settings) { s.RetryTries = 0 },
		"no time":  func(s *settings) { s.RetryGrace = "0s" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, edit)
			w.hooks.armFault(script.Fault{Times: script.Always, Steps: []script.Step{{Do: script.Status, Status: http.StatusTooManyRequests}}})
			run := w.open("a")
			if a := run.deliver("plain/x"); a.status != http.StatusTooManyRequests {
				t.Errorf("got %v", a)
			}
			run.deliver("plain/x").wantRefusal("run-aborted", 424, "over")
			run.wantState("aborted")
			w.hooks.want("hook:plain/x", 0, 1)
		})
	}
}

func TestHowManyMutationsARunMayMake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.open("a", mutationsOf("one"))
	first := one.deliver("plain/x", field("Idempotency-Key", "k")).wantApplied(http.StatusOK)
	one.deliver("plain/x", field("Idempotency-Key", "k")).wantReplay(first)
	if a := one.read(w.probed); a.status != http.StatusOK {
		t.Errorf("a read got %v", a)
	}
	one.deliver("plain/y").wantRefusal("one-mutation", http.StatusForbidden, "one mutation")
	one.wantState("aborted")
	none := w.open("b", mutationsOf("none"))
	if a := none.read(w.probed); a.status != http.StatusOK {
		t.Errorf("a read got %v", a)
	}
	none.deliver("plain/z").wantRefusal("read-only-run", http.StatusForbidden, "read only")
	w.hooks.want("hook:plain/x", 1, 1)
	w.hooks.want("hook:plain/y", 0, 0)
	w.hooks.want("hook:plain/z", 0, 0)
}

func TestARunThatIsToldOfFailuresGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("400")
	run := w.open("a", onFailureReturn)
	if a := run.deliver("plain/x"); a.status != http.StatusBadRequest {
		t.Errorf("got %v", a)
	}
	run.wantState("running")
	run.deliver("plain/y").wantApplied(http.StatusOK)
	if err := run.finish("done"); err != nil {
		t.Errorf("finish: %v", err)
	}
	run.wantState("finished")
	run.deliver("plain/z").wantRefusal("run-aborted", 424, "over")
}

func TestARunIsDoneOnlyIfItsMutationsAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("429")
	run := w.open("a")
	run.deliver("plain/x")
	wantProblem(t, run.finish("done"), "run-unfinished", http.StatusConflict)
	run.deliver("plain/x").wantApplied(http.StatusOK)
	if err := run.finish("done"); err != nil {
		t.Errorf("finish: %v", err)
	}
	run.wantState("finished")
}

func TestFinishingWaitsForWhatIsBeingSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("hang")
	run := w.open("a")
	answers := run.askTogether(1, w.probed, "R-1")
	w.probed.await("the transfer arrived", received("transfer:R-1", 1))
	finished := make(chan error, 1)
	go func() { finished <- run.finish("done") }()
	w.probed.Release(script.GateHang)
	(<-answers).wantApplied(http.StatusCreated)
	if err := <-finished; err != nil {
		t.Errorf("finish: %v", err)
	}
	run.wantState("finished")
}

func TestAStopCutsWhatIsBeingRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.open("b")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.quotes.URL()+"/stream?symbol=ACME&count=0&every=10ms", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := other.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatalf("nothing came of the stream: %v", err)
	}
	w.hooks.arm("commit-close")
	w.open("a").deliver("plain/x").wantRefusal("unknown-outcome", 424, "a person must decide")
	if text, err := io.ReadAll(resp.Body); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("of a stream without end %d bytes came: %v", len(text)+1, err)
	}
}
