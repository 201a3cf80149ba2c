package ledger

import (
	"errors"
	"testing"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	run := Run{ID: "r", Workflow: "w", Item: "i", State: RunRunning}
	with := func(change func(*Run)) Run { r := run; change(&r); return r }
	blocker := func(scope BlockScope, item string, state State) Blocker {
		return Blocker{ID: item + string(state), Workflow: "w", Item: item, Scope: scope, State: state}
	}
	for _, c := range []struct {
		name     string
		run      Run
		blockers []Blocker
		open     bool
		hold     bool
		problem  string
		by       string
	}{
		{"a running run", run, nil, true, false, "", ""},
		{"a failing run", with(func(r *Run) { r.State = RunFailing }), nil, true, false, "", ""},
		{"a finished run", with(func(r *Run) { r.State = RunFinished }), nil, false, false, "run-aborted", ""},
		{"an aborted run", with(func(r *Run) { r.State = RunAborted }), nil, false, false, "run-aborted", ""},
		{"the zero run", Run{}, nil, false, false, "run-aborted", ""},
		{"an unknown run state", with(func(r *Run) { r.State = "resting" }), nil, false, false, "run-aborted", ""},
		{"stopped by the workflow", run, []Blocker{blocker(BlockWorkflow, "j", NeedsReconcile)}, false, false, "blocked", "jneeds_reconcile"},
		{"the zero scope stops the workflow", run, []Blocker{blocker("", "j", Indeterminate)}, false, false, "blocked", "jindeterminate"},
		{"an unknown scope stops the workflow", run, []Blocker{blocker("world", "j", Indeterminate)}, false, false, "blocked", "jindeterminate"},
		{"stopped by the item", run, []Blocker{blocker(BlockItem, "i", NeedsReconcile)}, false, false, "blocked", "ineeds_reconcile"},
		{"another item is stopped", run, []Blocker{blocker(BlockItem, "j", NeedsReconcile)}, true, false, "", ""},
		{"a mutation is stopped", run, []Blocker{blocker(BlockMutation, "i", NeedsReconcile)}, true, false, "", ""},
		{"another workflow is stopped", with(func(r *Run) { r.Workflow = "v" }),
			[]Blocker{blocker(BlockWorkflow, "i", NeedsReconcile)}, true, false, "", ""},
		{"an inline try is at work", run, []Blocker{blocker(BlockWorkflow, "j", InFlight)}, false, true, "blocked", "jin_flight"},
		{"an inline try is at work, and another is stopped for good", run,
			[]Blocker{blocker(BlockWorkflow, "j", InFlight), blocker(BlockWorkflow, "k", NeedsReconcile)},
			false, false, "blocked", "kneeds_reconcile"},
		{"the same in the other order", run,
			[]Blocker{blocker(BlockWorkflow, "k", NeedsReconcile), blocker(BlockWorkflow, "j", InFlight)},
			false, false, "blocked", "kneeds_reconcile"},
	} {
		got := Admit(c.run, c.blockers)
		if got.Open != c.open || got.Hold != c.hold || got.Problem != c.problem || got.Blocker.ID != c.by {
			t.Errorf("%s: open %v, hold %v, %q by %q; want %v, %v, %q by %q",
				c.name, got.Open, got.Hold, got.Problem, got.Blocker.ID, c.open, c.hold, c.problem, c.by)
		}
	}
	if (Admission{}).Open {
		t.Error("the zero admission is open")
	}
}

func TestAdmitMutation(t *testing.T) {
	t.Parallel()
	failing := Run{State: RunFailing, Failing: Failing{FailingKey: Key{1}, FailingDigest: "x"}, FailingMore: []Failing{{FailingKey: Key{2}, FailingDigest: "y"}}}
	over, running := failing, failing
	over.State, running.State = RunAborted, RunRunning
	for name, c := range map[string]struct {
		run    Run
		key    Key
		digest string
		admits bool
	}{
		"any of a run that isn't failing": {running, Key{3}, "", true},
		"the first that failed":           {failing, Key{1}, "x", true},
		"another that failed":             {failing, Key{2}, "y", true},
		"it with another payload":         {failing, Key{2}, "x", false},
		"it without a payload":            {failing, Key{1}, "", false},
		"any other":                       {failing, Key{3}, "x", false},
		"none":                            {failing, Key{}, "", false},
		// Admit refuses that.
		"of a run that is over": {over, Key{3}, "", true},
	} {
		if got := AdmitMutation(&c.run, c.key, c.digest); got != c.admits {
			t.Errorf("%s: admitted %v", name, got)
		}
	}
}

// alone knows one run, or fails.
type alone struct {
	Standings
	run Run
	err error
}

func (s alone) Standing(string) (Run, []Blocker, error)        { return s.run, nil, s.err }
func (s alone) StandingByToken(string) (Run, []Blocker, error) { return s.run, nil, s.err }
func (s alone) BlockersOf(string) ([]Blocker, error)           { return nil, s.err }

func TestGateFailsClosed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err     error
		open    bool
		problem string
	}{
		{nil, true, ""},
		{ErrNotFound, false, "credentials"},
		{ErrUnavailable, false, "ledger-unavailable"},
		{ErrDamaged, false, "ledger-unavailable"},
	} {
		l := &Ledger{Standings: alone{run: Run{State: RunRunning}, err: c.err}}
		for name, a := range map[string]Admission{
			"run": l.Gate("r"), "token": l.GateToken("t", ""), "unmanaged": l.GateUnmanaged("w", "i"),
		} {
			if a.Open != c.open || a.Problem != c.problem || !errors.Is(a.Err, c.err) {
				t.Errorf("%s with %v: %+v", name, c.err, a)
			}
		}
	}
}

func TestOpenGateDoesNotAllocate(t *testing.T) {
	l := &Ledger{Standings: alone{run: Run{State: RunRunning, Workflow: "w", Item: "i"}}}
	if n := testing.AllocsPerRun(100, func() {
		if !l.Gate("r").Open {
			t.Error("shut")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGate(b *testing.B) {
	l := &Ledger{Standings: alone{run: Run{State: RunRunning, Workflow: "w", Item: "i"}}}
	for b.Loop() {
		if !l.Gate("r").Open {
			b.Fatal("shut")
		}
	}
}
