package ledger

import (
	"errors"
	"slices"
)

// Admission is the gate's answer to one request. The zero value refuses.
type Admission struct {
	// Open admits the request. A mutation is judged again by its claim.
	Open bool
	// Hold says that the request may wait: inline tries are at work on all mutations that stop it.
	Hold bool
	// Problem is "run-aborted", "blocked", "ledger-unavailable", or "credentials" for an unknown token.
	Problem string
	// Run is the run at the gate, zero for an unmanaged scope.
	Run Run
	// Blocker is what stops the scope ("blocked" only).
	Blocker Blocker
	// Err is why the gate could not be asked.
	Err error
}

// stops reports whether b stops a request of this scope. An unknown block scope stops the workflow.
func (b *Blocker) stops(workflow, item string) bool {
	if b.Workflow != workflow {
		return false
	}
	switch b.Scope {
	case BlockMutation:
		return false
	case BlockItem:
		return b.Item == item
	default:
		return true
	}
}

// Admit decides whether a request of the run may pass. A run that has ended or is being finished is refused, and so
// is the zero Run. An unresolved mutation stops its block scope. The request may be held if inline tries are at work
// on all mutations that stop it.
func Admit(run Run, blockers []Blocker) Admission {
	if run.State.Ended() {
		return Admission{Problem: "run-aborted", Run: run}
	}
	if run.Closing != "" {
		run.Reason = "it is being finished"
		return Admission{Problem: "run-aborted", Run: run}
	}
	a := admitScope(run.Workflow, run.Item, blockers)
	a.Run = run
	return a
}

// admitScope is the second and third step of Admit.
func admitScope(workflow, item string, blockers []Blocker) Admission {
	a := Admission{Open: true}
	for i := range blockers {
		b := &blockers[i]
		if !b.stops(workflow, item) {
			continue
		}
		trying := b.State == InFlight
		if a.Open || a.Hold && !trying {
			a = Admission{Hold: trying, Problem: "blocked", Blocker: *b}
		}
	}
	return a
}

// AdmitMutation decides about one mutation of a run that Admit lets pass. A run that isn't failing admits each. A failing
// run admits what failed, with the payload that failed. Everything else waits.
func AdmitMutation(run *Run, key Key, digest string) bool {
	failing, _ := run.failing(key)
	return len(failing) == 0 || slices.ContainsFunc(failing, func(f Failing) bool { return f.FailingKey == key && f.FailingDigest == digest })
}

// Gate answers for a request of the run, from memory unless the run is over.
func (l *Ledger) Gate(run string) Admission {
	r, blockers, err := l.Standing(run)
	if err != nil {
		return shut(err)
	}
	return Admit(r, l.unrecorded.beside(blockers))
}

// GateToken answers for the digest of a token; item is the request's own in a run of many items.
func (l *Ledger) GateToken(sha256, item string) Admission {
	r, blockers, err := l.StandingByToken(sha256)
	if err != nil {
		return shut(err)
	}
	if r.Many() {
		r.Item = item
	}
	return Admit(r, l.unrecorded.beside(blockers))
}

// GateUnmanaged answers for an unmanaged scope. Items that are done are refused by the claim.
func (l *Ledger) GateUnmanaged(workflow, item string) Admission {
	blockers, err := l.BlockersOf(workflow)
	if err != nil {
		return shut(err)
	}
	return admitScope(workflow, item, l.unrecorded.beside(blockers))
}

// shut is the answer of a gate that could not be asked.
func shut(err error) Admission {
	if errors.Is(err, ErrNotFound) {
		return Admission{Problem: "credentials", Err: err}
	}
	return Admission{Problem: "ledger-unavailable", Err: err}
}
