package rules

import (
	"errors"
	"net/http"
)

// Problem names a refusal as users meet it, in urn:keep:problem:NAME.
type Problem string

// The problems that rules find in a request. None of them sends anything.
const (
	// ProblemAmbiguous is a request that two parsers could read differently.
	ProblemAmbiguous Problem = "ambiguous-request"
	// ProblemOverride is a method override that no rule matches on.
	ProblemOverride Problem = "method-override"
	// ProblemIdentity is a request whose identity can't be derived.
	ProblemIdentity Problem = "identity"
	// ProblemAccount is a request of which it isn't known whose data it changes.
	ProblemAccount Problem = "account-unknown"
	// ProblemUnmatched is a request on a connector's host that nothing declares.
	ProblemUnmatched Problem = "unmatched"
	// ProblemDenied is a request that a rule denies, or a method that always is.
	ProblemDenied Problem = "denied"
	// ProblemTooLarge is a body whose decoded form is over the limit.
	ProblemTooLarge Problem = "too-large"
)

// Status is the HTTP status that a refusal with this name is answered with.
// An unknown name is 403.
func (p Problem) Status() int {
	switch p {
	case ProblemAmbiguous, ProblemIdentity:
		return http.StatusUnprocessableEntity
	case ProblemAccount:
		return http.StatusBadGateway
	case ProblemTooLarge:
		return http.StatusRequestEntityTooLarge
	case ProblemOverride, ProblemUnmatched, ProblemDenied:
		return http.StatusForbidden
	}
	return http.StatusForbidden
}

// Refusal says why a request is not sent, in a sentence that the author of the
// script understands. It never holds a value of the request's body or of a
// secret place.
type Refusal struct {
	Problem Problem
	Detail  string
}

// Error makes a Refusal usable as an error.
func (r *Refusal) Error() string { return string(r.Problem) + ": " + r.Detail }

// refuse makes a refusal.
func refuse(p Problem, detail string) *Refusal { return &Refusal{Problem: p, Detail: detail} }

// asRefusal finds a refusal in an error's chain.
func asRefusal(err error, into **Refusal) bool { return errors.As(err, into) }
