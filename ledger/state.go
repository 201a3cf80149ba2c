package ledger

// State is where a mutation stands. The zero value, and any other that isn't listed, is invalid.
type State string

const (
	// InFlight is durable before the first byte goes out; it may or may not have committed. Its proxy moves it on, or
	// recovery.
	InFlight State = "in_flight"
	// Applied is final: it committed, with or without a result that is kept (ResultState).
	Applied State = "applied"
	// Failed did not commit; the next request with its key sends it again.
	Failed State = "failed"
	// NeedsReconcile is unknown, and being asked about by the runner.
	NeedsReconcile State = "needs_reconcile"
	// Indeterminate is unknown, and automation gave up; only a person moves it on.
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

// BlockScope says what an unresolved mutation stops. The zero value is BlockWorkflow, the widest.
type BlockScope string

const (
	// BlockWorkflow stops every run of the workflow.
	BlockWorkflow BlockScope = "workflow"
	// BlockItem stops every run of the item.
	BlockItem BlockScope = "item"
	// BlockMutation stops requests for the same key only, and ends the run that caused it.
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
	// ResultTooLarge means that the answer was too long to be kept.
	ResultTooLarge ResultState = "too_large"
)
