package ledger

// State is where a mutation stands. The zero value is invalid; a stored value
// that is not listed here refuses to load.
type State string

const (
	// InFlight is durable before the first byte goes out. The mutation may or
	// may not have committed. The dispatching proxy moves it on; after that
	// proxy's loss, recovery does.
	InFlight State = "in_flight"
	// Applied is final: the mutation committed, with a stable result or with a
	// result that is known to be missing (ResultUnknown, ResultTooLarge).
	Applied State = "applied"
	// Failed means that the mutation did not commit and may be attempted again:
	// the next request with its key moves it on.
	Failed State = "failed"
	// NeedsReconcile means that the outcome is unknown and reconciliation works
	// on it. The runner moves it on, or a person.
	NeedsReconcile State = "needs_reconcile"
	// Indeterminate means that the outcome is unknown and automation gave up.
	// Always escalated; only a person moves it on.
	Indeterminate State = "indeterminate"
	// Skipped is final: a person decided to go on without the mutation.
	Skipped State = "skipped"
)

// States lists every valid state, in the order of docs/semantics.md.
func States() []State {
	return []State{InFlight, Applied, Failed, NeedsReconcile, Indeterminate, Skipped}
}

// Valid reports whether s is one of States.
func (s State) Valid() bool {
	switch s {
	case InFlight, Applied, Failed, NeedsReconcile, Indeterminate, Skipped:
		return true
	}
	return false
}

// Class says why a mutation failed or a run ended, as a scheduler needs to know
// it. An unknown outcome must never be routed to automated repair.
type Class string

const (
	// ClassTransient failures may be tried again as they are.
	ClassTransient Class = "transient"
	// ClassPermission failures need other credentials or rights.
	ClassPermission Class = "permission"
	// ClassPrecondition failures need the world to be different.
	ClassPrecondition Class = "precondition"
	// ClassLogic failures need other code.
	ClassLogic Class = "logic"
	// ClassIndeterminate marks an unknown outcome: a person or a reconciler
	// must settle it first.
	ClassIndeterminate Class = "indeterminate"
)

// BlockScope says what an unresolved mutation stops. The zero value is read as
// BlockWorkflow, the widest.
type BlockScope string

const (
	// BlockWorkflow stops every run of the workflow.
	BlockWorkflow BlockScope = "workflow"
	// BlockItem stops every run of the item.
	BlockItem BlockScope = "item"
	// BlockMutation stops only requests for the same mutation key, and ends the
	// run that caused the unknown.
	BlockMutation BlockScope = "mutation"
)

// ResultState says what is known of the answer of an applied mutation.
type ResultState string

const (
	// ResultNone is the zero value: there is no answer (yet).
	ResultNone ResultState = ""
	// ResultKnown means that the answer is stored and can be replayed.
	ResultKnown ResultState = "known"
	// ResultUnknown means that the mutation committed but its answer was lost.
	ResultUnknown ResultState = "unknown"
	// ResultTooLarge means that the answer was longer than the limit and was
	// not kept.
	ResultTooLarge ResultState = "too_large"
)
