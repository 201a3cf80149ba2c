// Package verdict has the words that rules, upstream and the ledger share about what a sending came to.
//
// # Failure
//
// It does nothing that can fail. The zero Class is no class of a failure.
package verdict

import "time"

// Class says why a mutation failed or a run ended, and so who can act on it.
type Class string

const (
	// Transient: the same request may do well later.
	Transient Class = "transient"
	// Permission: somebody has to grant something.
	Permission Class = "permission"
	// Precondition: the world isn't as the request assumes.
	Precondition Class = "precondition"
	// Logic: the request is wrong, and needs other code.
	Logic Class = "logic"
	// Indeterminate: the outcome is unknown. It must never go to automated repair.
	Indeterminate Class = "indeterminate"
)

// Failures lists the classes of definite failures.
func Failures() []Class { return []Class{Transient, Permission, Precondition, Logic} }

// Opinion is what an operation's rule says of an answer. It never overrides that a body was cut or too large.
type Opinion struct {
	Kind OpinionKind
	// Class is one of Failures, for OpinionFailed.
	Class Class
	// Reason says which condition decided, in words for a person.
	Reason string
	// Continues says of OpinionFailed that the API asks for more, and that the script's next request brings it.
	Continues bool
	Wait      time.Duration // how long the API asks to wait
	Until     time.Time     // until when it asks to
}

// OpinionKind is what a rule says. An unknown one is judged uncertain.
type OpinionKind uint8

const (
	// OpinionNone: no condition holds, and the default table decides.
	OpinionNone OpinionKind = iota
	// OpinionApplied: the mutation took effect.
	OpinionApplied
	// OpinionFailed: it certainly did not.
	OpinionFailed
	// OpinionUncertain: a condition says so, or can't be evaluated.
	OpinionUncertain
)

// String is the word of the connector format; "" for no opinion, and "uncertain" for an unknown one.
func (k OpinionKind) String() string {
	switch k {
	case OpinionNone:
		return ""
	case OpinionApplied:
		return "applied"
	case OpinionFailed:
		return "failed"
	case OpinionUncertain:
	}
	return "uncertain"
}
