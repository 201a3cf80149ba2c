package upstream

// Opinion is what the rule of an operation says of an answer with a complete
// head. It is asked before the default table, and never about a dispatch that has
// no complete head.
type Opinion struct {
	Kind OpinionKind
	// Class is required for OpinionFailed; without one of the four classes of
	// failure the verdict is uncertain.
	Class Class
	// Reason says which condition it was, for people.
	Reason string
}

// OpinionKind is what a rule says. The zero value is no opinion; an unknown one is
// judged uncertain.
type OpinionKind uint8

const (
	// OpinionNone: no condition hit; the default table decides.
	OpinionNone OpinionKind = iota
	// OpinionApplied: success.
	OpinionApplied
	// OpinionFailed: a definite failure, of Opinion.Class.
	OpinionFailed
	// OpinionUncertain: a condition says so, or failed to evaluate.
	OpinionUncertain
	// OpinionOtherwise: no condition hit, and the rule closes the default table
	// with {otherwise: uncertain}.
	OpinionOtherwise
)
