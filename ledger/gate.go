package ledger

import "errors"

// Admission is the gate's answer to one request. The zero value refuses.
type Admission struct {
	// Open admits the request. A mutation is judged again by its claim.
	Open bool
	// Hold says that the request is stopped by an outcome on which an inline
	// try is at work, so that it may wait instead of being refused.
	Hold bool
	// Problem names the refusal: "run-aborted", "blocked",
	// "ledger-unavailable", or "credentials" for a token that is not known.
	Problem string
	// Run is the run at the gate, zero for an unmanaged scope.
	Run Run
	// Blocker is what stops the scope ("blocked" only).
	Blocker Blocker
	// Err is why the gate could not be asked.
	Err error
}

// stops reports whether the unresolved mutation stops a request of this scope.
// An unknown block scope stops the workflow.
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

// Admit decides whether a request of the run may pass:
//
//  1. a run that has ended, or is being finished, is refused, and so is the zero Run;
//  2. an unresolved mutation in whose block scope the run is stops it; if an
//     inline try is at work on each of these, the request may be held;
//  3. anything else passes.
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

// Gate answers for a request of the run, from memory unless the run is over.
func (l *Ledger) Gate(run string) Admission {
	r, blockers, err := l.Standing(run)
	if err != nil {
		return shut(err)
	}
	return Admit(r, l.unrecorded.beside(blockers))
}

// GateToken answers for proxy credentials, given by the digest of their token. For a run
// of many items the request's own item, which may be empty, is looked at.
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

// GateUnmanaged answers for an unmanaged scope. Items that are done are refused
// by the claim, as their reads may go on.
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
