package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// fakeAPI is an API with one run, whose answers a test sets.
type fakeAPI struct {
	mu        sync.Mutex
	run       wire.Run
	down      error
	finishErr error
	// finishLost is what comes of the first finish instead of its answer.
	finishLost error
	mutations  []wire.Mutation
	calls      []string
}

func (f *fakeAPI) note(call string) (*wire.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
	if f.down != nil {
		return nil, f.down
	}
	run := f.run
	return &run, nil
}

func (f *fakeAPI) set(change func(*fakeAPI)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeAPI) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (f *fakeAPI) Run(context.Context, string) (*wire.Run, error) { return f.note("run") }

func (f *fakeAPI) Heartbeat(context.Context, string, wire.Heartbeat) (*wire.Run, error) {
	return f.note("heartbeat")
}

func (f *fakeAPI) FinishRun(_ context.Context, _ string, q wire.FinishRun) (*wire.Run, error) {
	if _, err := f.note("finish " + q.Outcome); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case q.Outcome == "done" && f.finishErr != nil:
		return nil, f.finishErr
	case Ended(f.run.State) && q.Outcome != map[string]string{stateFinished: "done", stateAborted: "failed"}[f.run.State]:
		return nil, &wire.Problem{Type: wire.ProblemPrefix + "run-ended", Detail: "it is " + f.run.State}
	case q.Outcome == "done":
		f.run.State = stateFinished
	case f.run.State == stateFailing:
		f.run.State = stateAborted
	default:
		f.run.State, f.run.Class, f.run.Reason = stateAborted, "logic", "finished as failed"
	}
	if lost := f.finishLost; lost != nil {
		f.finishLost = nil
		return nil, lost
	}
	run := f.run
	return &run, nil
}

func (f *fakeAPI) Mutation(_ context.Context, id string) (*wire.Mutation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.mutations {
		if f.mutations[i].ID == id {
			m := f.mutations[i]
			return &m, nil
		}
	}
	return nil, errors.New("no such mutation")
}

func (f *fakeAPI) Mutations(_ context.Context, q client.Filter) (*wire.List[wire.Mutation], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return nil, f.down
	}
	list := &wire.List[wire.Mutation]{}
	for _, m := range f.mutations {
		if slices.Contains(q.States, m.State) {
			list.Items = append(list.Items, m)
		}
	}
	return list, nil
}

// fakeProcess is a command that ends when the test says so, or when it is stopped.
type fakeProcess struct {
	done    chan struct{}
	once    sync.Once
	mu      sync.Mutex
	code    int
	stopped bool
	signals []syscall.Signal
}

func newProcess() *fakeProcess { return &fakeProcess{done: make(chan struct{})} }

func (p *fakeProcess) end(code int) { p.once.Do(func() { p.code = code; close(p.done) }) }

func (p *fakeProcess) Done() <-chan struct{} { return p.done }
func (p *fakeProcess) Code() int             { <-p.done; return p.code }
func (p *fakeProcess) Stop()                 { p.stopped = true; p.end(143) }

func (p *fakeProcess) Signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signals = append(p.signals, s)
}

func session(api API) *Session {
	opened := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Session{
		API: api, Run: wire.Run{ID: "r1", State: stateRunning, OpenedAt: opened, ExpiresAt: opened.Add(time.Minute)},
		Say: func(string, ...any) {}, Words: func(err error) string { return err.Error() },
	}
}

func TestAVerdictIsTheFirstRowThatFits(t *testing.T) {
	t.Parallel()
	failed := &wire.Mutation{ID: "m1", State: "failed"}
	lost := &wire.Mutation{ID: "m1", State: "indeterminate"}
	settled := &wire.Mutation{ID: "m1", State: "applied"}
	followed := &wire.Mutation{ID: "m1", State: "needs_reconcile", Watching: true}
	for _, c := range []struct {
		name  string
		run   wire.Run
		cause *wire.Mutation
		want  int
	}{
		{"a run that caused an unknown", wire.Run{State: stateUnknown, Class: "indeterminate"}, lost, CodeUnknown},
		{"a run that waits for a person", wire.Run{State: stateAttend}, nil, CodeAttention},
		{"a run refused because of another's unknown", wire.Run{State: stateAborted, Class: "transient"}, lost, CodeUnknown},
		{"the same, settled since", wire.Run{State: stateAborted, Class: "transient"}, settled, CodeUnknown},
		{"a run aborted on a failed mutation", wire.Run{State: stateAborted, Class: "precondition"}, failed, CodeAborted},
		{"a run aborted after its grace", wire.Run{State: stateAborted, Class: "transient"}, failed, CodeAborted},
		{"a run whose time limit is over", wire.Run{State: stateAborted, Class: "transient"}, nil, CodeAborted},
		{"a run in its grace", wire.Run{State: stateFailing, Class: "transient"}, failed, CodeAborted},
		{"a running run with a failed mutation", wire.Run{State: stateRunning}, failed, CodeAborted},
		{"a running run with an unknown one", wire.Run{State: stateRunning}, lost, CodeUnknown},
		{"a running run with an accepted one that is followed", wire.Run{State: stateRunning}, followed, CodeUnknown},
		{"a running run that could not be finished", wire.Run{State: stateRunning}, nil, CodeUnknown},
		{"a state of a later version", wire.Run{State: "waiting"}, nil, CodeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Judge(&c.run, c.cause); got.Code != c.want {
				t.Errorf("code %d, want %d", got.Code, c.want)
			}
		})
	}
}

func TestAVerdictSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	after, next := time.Unix(100, 0), time.Unix(200, 0)
	run := &wire.Run{State: stateUnknown}
	if got := Judge(run, &wire.Mutation{RetryAfter: after, NextTryAt: next}).RetryAfter; !got.Equal(after) {
		t.Errorf("retry after %s, want the API's own %s", got, after)
	}
	if got := Judge(run, &wire.Mutation{NextTryAt: next}).RetryAfter; !got.Equal(next) {
		t.Errorf("retry after %s, want the next try's %s", got, next)
	}
}

func TestTheCommandsOwnCodeCountsWhereTheRunIsSound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		code         int
		finish, ends string
	}{
		{"a command that succeeds finishes its run as done", 0, "finish done", stateFinished},
		{"a command that fails finishes its run as failed", 3, "finish failed", stateAborted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			api := &fakeAPI{run: wire.Run{ID: "r1", State: stateRunning}}
			v := session(api).Finish(t.Context(), c.code)
			if v.Code != c.code || v.State != c.ends || api.count(c.finish) != 1 {
				t.Errorf("verdict %+v after %v; want code %d, state %s after one %q", v, api.calls, c.code, c.ends, c.finish)
			}
		})
	}
}

func TestAFinishWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	t.Parallel()
	for code, ends := range map[int]string{0: stateFinished, 3: stateAborted} {
		synctest.Test(t, func(t *testing.T) {
			api := &fakeAPI{run: wire.Run{ID: "r1", State: stateRunning}, finishLost: errors.New("connection reset")}
			if v := session(api).Finish(t.Context(), code); v.Code != code || v.State != ends {
				t.Errorf("verdict %+v after %v; want code %d, state %s", v, api.calls, code, ends)
			}
		})
	}
}

// What a mutation failed by says more than the code of the command that gave up over it.
func TestACommandThatGivesUpInItsGraceIsAborted(t *testing.T) {
	t.Parallel()
	for class, retry := range map[string]Retry{"transient": RetryYes, "permission": RetryNo} {
		api := &fakeAPI{
			run:       wire.Run{ID: "r1", State: stateFailing, Class: class, Reason: "it was refused", Cause: "m1"},
			mutations: []wire.Mutation{{ID: "m1", State: "failed"}},
		}
		v := session(api).Finish(t.Context(), 22)
		if v.Code != CodeAborted || v.Class != class || v.Reason != "it was refused" || v.Retry != retry || api.count("finish failed") != 1 {
			t.Errorf("verdict %+v after %v; want %d, %s", v, api.calls, CodeAborted, class)
		}
	}
}

func TestASuccessIsNotReportedForARunThatCannotFinish(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{
		run:       wire.Run{ID: "r1", State: stateRunning},
		finishErr: &wire.Problem{Type: wire.ProblemPrefix + "run-unfinished", Detail: "mutation m1 is failed"},
		mutations: []wire.Mutation{{ID: "m1", State: "failed"}},
	}
	v := session(api).Finish(t.Context(), 0)
	if v.Code != CodeAborted || !strings.Contains(v.Reason, "mutation m1 is failed") {
		t.Errorf("verdict %+v, want %d with the refusal's reason", v, CodeAborted)
	}
	if api.count("finish failed") != 1 {
		t.Errorf("calls %v: the run must not stay open, else its item is busy", api.calls)
	}
}

// A run that goes on may have a mutation that failed for the moment, as of those beyond the most that it fails by.
func TestWhatFailedForTheMomentMaySucceedLater(t *testing.T) {
	t.Parallel()
	after := time.Unix(200, 0)
	for class, retry := range map[string]Retry{"transient": RetryYes, "logic": RetryNo} {
		api := &fakeAPI{
			run:       wire.Run{ID: "r1", State: stateRunning},
			finishErr: &wire.Problem{Type: wire.ProblemPrefix + "run-unfinished", Detail: "mutation m1 is failed"},
			mutations: []wire.Mutation{{ID: "m1", State: "failed", Class: class, Reason: "busy", RetryAfter: after}},
		}
		v := session(api).Finish(t.Context(), 0)
		if v.Code != CodeAborted || v.Class != class || v.Reason != "busy" || v.Retry != retry || !v.RetryAfter.Equal(after) {
			t.Errorf("verdict %+v, want %d, %s from %s on", v, CodeAborted, class, after)
		}
	}
}

func TestARunThatWasRefusedEndsByThat(t *testing.T) {
	t.Parallel()
	refused := []wire.Refused{{Code: "unmatched", Class: "permission"}}
	asked := []wire.Refused{{Code: "item-attention", Asks: true}}
	for _, c := range []struct {
		name       string
		refused    []wire.Refused
		code, want int
		asksDone   bool
	}{
		{"a command that took no notice", refused, 0, CodeAborted, true},
		{"a command that failed by it", refused, 22, CodeAborted, false},
		{"a command about which a person was asked", asked, 0, CodeAttention, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			api := &fakeAPI{
				run:       wire.Run{ID: "r1", State: stateRunning, Refused: c.refused},
				finishErr: &wire.Problem{Type: wire.ProblemPrefix + "run-unfinished", Detail: "it was refused", Refused: c.refused},
			}
			v := session(api).Finish(t.Context(), c.code)
			if v.Code != c.want || v.State != stateAborted || api.count("finish failed") != 1 || (api.count("finish done") == 1) != c.asksDone {
				t.Errorf("verdict %+v after %v, want %d", v, api.calls, c.want)
			}
		})
	}
}

// What failed may have been delivered, and repairing it is no use while the other's end is open.
func TestWhatIsNotKnownYetCountsForMoreThanAFailure(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{
		run:       wire.Run{ID: "r1", State: stateRunning},
		finishErr: &wire.Problem{Type: wire.ProblemPrefix + "run-unfinished", Detail: "mutation m1 is needs_reconcile"},
		mutations: []wire.Mutation{{ID: "m2", State: "failed"}, {ID: "m1", State: "needs_reconcile", Watching: true, NextTryAt: time.Unix(200, 0)}},
	}
	v := session(api).Finish(t.Context(), 0)
	if v.Code != CodeUnknown || v.Retry != RetryYes || !v.RetryAfter.Equal(time.Unix(200, 0)) {
		t.Errorf("verdict %+v, want %d, and again once m1 is looked at", v, CodeUnknown)
	}
}

func TestAFailingCommandWaitsForWhatItWasSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{
			run:       wire.Run{ID: "r1", State: stateRunning},
			mutations: []wire.Mutation{{ID: "m1", State: "in_flight"}},
		}
		// This is when the sending ends.
		time.AfterFunc(time.Minute, func() {
			api.set(func(f *fakeAPI) {
				f.mutations[0].State = "needs_reconcile"
				f.run.State, f.run.Cause, f.run.Reason = stateUnknown, "m1", "no answer"
			})
		})
		began := time.Now()
		v := session(api).Finish(t.Context(), 1)
		if v.Code != CodeUnknown || v.Mutation != "m1" || time.Since(began) < time.Minute {
			t.Errorf("verdict %+v after %s; want %d once the sending has ended", v, time.Since(began), CodeUnknown)
		}
		if api.count("finish failed") != 0 {
			t.Errorf("calls %v: a paused run must stay paused", api.calls)
		}
	})
}

func TestWhoEndsTheWaitForASendingIsToldNothingOfTheProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, said := session(&fakeAPI{
			run:       wire.Run{ID: "r1", State: stateRunning},
			mutations: []wire.Mutation{{ID: "m1", State: "in_flight"}},
		}), ""
		s.Run.ID = "r1"
		s.Say = func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
		ctx, cancel := context.WithCancel(t.Context())
		// This is when somebody presses Ctrl-C.
		time.AfterFunc(time.Minute, cancel)
		v := s.Finish(ctx, 130)
		if v.Code != CodeUnknown || v.Mutation != "m1" {
			t.Errorf("verdict %+v, want %d for m1", v, CodeUnknown)
		}
		if want := "a signal came while run r1 was still sending: context canceled"; v.Reason != want {
			t.Errorf("reason %q, want %q", v.Reason, want)
		}
		if want := "the command has ended while something was being sent; waiting until it is known what became of that"; said != want {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}

func TestAProxyThatComesBackIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{run: wire.Run{ID: "r1", State: stateRunning}, down: errors.New("connection refused")}
		// This is when the proxy is back.
		time.AfterFunc(5*time.Second, func() {
			api.set(func(f *fakeAPI) { f.down, f.run.State, f.run.Cause = nil, stateUnknown, "m1" })
		})
		if v := session(api).Finish(t.Context(), 0); v.Code != CodeUnknown || v.State != stateUnknown {
			t.Errorf("verdict %+v, want what the proxy says once it is back", v)
		}
	})
}

func TestAProxyThatStaysAwayIsNoSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{down: errors.New("connection refused")}
		began := time.Now()
		v := session(api).Finish(t.Context(), 0)
		if v.Code != CodeUnknown || !strings.Contains(v.Reason, "connection refused") || !strings.Contains(v.Reason, "can't be asked") {
			t.Errorf("verdict %+v, want %d and the cause", v, CodeUnknown)
		}
		if waited := time.Since(began); waited < patience || waited > 2*patience {
			t.Errorf("it was tried for %s, want about %s", waited, patience)
		}
	})
}

func TestAProxyThatStaysAwayIsNamedAfterAFailedCommandToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := session(&fakeAPI{down: errors.New("connection refused")})
		s.Run.ID = "r1"
		v := s.Finish(t.Context(), 1)
		if want := "the proxy can't be asked what became of run r1: connection refused"; v.Code != CodeUnknown || v.Reason != want {
			t.Errorf("verdict %+v, want %d and %q", v, CodeUnknown, want)
		}
	})
}

func TestACommandIsEndedWithItsRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{run: wire.Run{ID: "r1", State: stateRunning}}
		p := newProcess()
		// This is when the run is stopped.
		time.AfterFunc(time.Second, func() {
			api.set(func(f *fakeAPI) { f.run.State, f.run.Reason = stateUnknown, "Nobody knows." })
		})
		s, said := session(api), ""
		s.Say = func(format string, args ...any) { said += fmt.Sprintf(format, args...) }
		s.Watch(t.Context(), p, nil)
		if !p.stopped {
			t.Error("the command was not stopped")
		}
		if want := "the run is over (paused:reconciliation): Nobody knows; ending the command"; said != want {
			t.Errorf("said %q, want %q", said, want)
		}
	})
}

func TestACommandIsLeftAloneWhileTheProxyIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{down: errors.New("connection refused")}
		p := newProcess()
		// This is how long the command runs.
		time.AfterFunc(time.Hour, func() {
			p.end(0)
		})
		session(api).Watch(t.Context(), p, nil)
		if p.stopped {
			t.Error("the command was stopped, and nobody knows that its run is over")
		}
	})
}

func TestARunIsKeptAliveAndSignalsAreHandedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := session(nil)
		api := &fakeAPI{run: s.Run}
		s.API = api
		p, signals := newProcess(), make(chan syscall.Signal, 1)
		signals <- syscall.SIGTERM
		// This is when the command ends.
		time.AfterFunc(time.Minute+time.Second, func() {
			p.end(0)
		})
		s.Watch(t.Context(), p, signals)
		if got := api.count("heartbeat"); got != 3 {
			t.Errorf("%d heartbeats in the run's time limit, want 3", got)
		}
		if !slices.Equal(p.signals, []syscall.Signal{syscall.SIGTERM}) {
			t.Errorf("signals %v, want the one that came", p.signals)
		}
	})
}
