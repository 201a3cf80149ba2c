package rules

// OpinionKind is what a rule thinks of an answer.
type OpinionKind uint8

// Opinions. The zero value leaves the verdict to the default table.
const (
	// OpinionNone is no opinion: the default table holds.
	OpinionNone OpinionKind = iota
	// OpinionApplied says that the mutation took effect.
	OpinionApplied
	// OpinionFailed says that it certainly did not.
	OpinionFailed
	// OpinionUncertain says that it can't be told.
	OpinionUncertain
)

// Class is a failure's class; it decides who deals with it.
type Class string

// Classes of failures that a rule may name.
const (
	ClassTransient    Class = "transient"
	ClassPermission   Class = "permission"
	ClassPrecondition Class = "precondition"
	ClassLogic        Class = "logic"
)

// Opinion is a rule's word on an answer. It never overrides that a body was cut
// or too large: an applied opinion on an incomplete answer means committed.
type Opinion struct {
	Kind OpinionKind
	// Class is set for OpinionFailed.
	Class Class
	// Reason says which condition decided, in words for a person.
	Reason string
}
