package upstream

import (
	"fmt"
	"time"
)

// Verdict says what one dispatch came to. The zero value is uncertain.
type Verdict struct {
	Kind VerdictKind
	// Class says who can do something about it: for Failed it is one of the four
	// classes of failure, for Uncertain ClassIndeterminate, else empty.
	Class Class
	// Reason says why, for people.
	Reason string
	// RetryAfter is how long the upstream asked to wait, 0 if it did not.
	RetryAfter time.Duration
}

// VerdictKind is what a dispatch came to.
type VerdictKind uint8

const (
	// Uncertain: the mutation may or may not have committed.
	Uncertain VerdictKind = iota
	// Applied: it committed, and the whole answer is there.
	Applied
	// Committed: it committed; the answer's body was lost.
	Committed
	// TooLarge: it committed; the answer's body is over the limit and not kept.
	TooLarge
	// Failed: it did not commit, and will not.
	Failed
)

// String returns the kind in lower case. An unknown one reads "uncertain".
func (k VerdictKind) String() string {
	switch k {
	case Applied:
		return "applied"
	case Committed:
		return "committed"
	case TooLarge:
		return "too_large"
	case Failed:
		return "failed"
	case Uncertain:
	}
	return "uncertain"
}

// MarshalText returns String.
func (k VerdictKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote. An unknown word is an error.
func (k *VerdictKind) UnmarshalText(text []byte) error {
	for known := Uncertain; known <= Failed; known++ {
		if known.String() == string(text) {
			*k = known
			return nil
		}
	}
	return fmt.Errorf("upstream: unknown verdict %q", text)
}

// Success reports whether the mutation is known to have committed.
func (k VerdictKind) Success() bool { return k == Applied || k == Committed || k == TooLarge }

// Class says who can do something about a failure. An unknown outcome is never
// one of the first four: it must not be routed to automated repair.
type Class string

const (
	// ClassTransient: the same request may do well later.
	ClassTransient Class = "transient"
	// ClassPermission: someone has to grant something.
	ClassPermission Class = "permission"
	// ClassPrecondition: the world is not as the request assumes.
	ClassPrecondition Class = "precondition"
	// ClassLogic: the request is wrong.
	ClassLogic Class = "logic"
	// ClassIndeterminate: the outcome is unknown.
	ClassIndeterminate Class = "indeterminate"
)

// failure reports whether c is a class of a definite failure.
func (c Class) failure() bool {
	switch c {
	case ClassTransient, ClassPermission, ClassPrecondition, ClassLogic:
		return true
	case ClassIndeterminate:
	}
	return false
}
