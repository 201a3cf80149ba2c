package wire

import "strings"

// ProblemContentType is the media type of a [Problem].
const ProblemContentType = "application/problem+json"

// ProblemPrefix begins every problem type.
const ProblemPrefix = "urn:keep:problem:"

// Problem is why a request was refused (RFC 9457).
type Problem struct {
	// Type is urn:keep:problem: and a name, such as urn:keep:problem:version.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail says in a sentence what is wrong and what to do.
	Detail string `json:"detail"`
	// Errors lists every fault of a bad request.
	Errors []Fault `json:"errors,omitzero"`
	// Mutation is the record concerned, where there is one.
	Mutation *MutationRef `json:"mutation,omitzero"`
	Run      string       `json:"run,omitzero"`
	Item     string       `json:"item,omitzero"`
	Class    string       `json:"class,omitzero"`
	// Actions are what a person may decide instead.
	Actions []Action `json:"actions,omitzero"`
	Help    string   `json:"help,omitzero"`
	// Refused are the requests that keep a run from finishing as done, at most 100 of them.
	Refused []Refused `json:"refused,omitzero"`
}

// Fault is one fault of a request.
type Fault struct {
	// Where is a JSON Pointer (RFC 6901) into the body, "query:NAME",
	// "header:NAME", or "body".
	Where string `json:"where"`
	What  string `json:"what"`
	// How says how to put it right.
	How string `json:"how,omitzero"`
}

// MutationRef names a mutation in a problem.
type MutationRef struct {
	ID        string `json:"id"`
	Connector string `json:"connector,omitzero"`
	Operation string `json:"operation,omitzero"`
	Target    string `json:"target,omitzero"`
	State     string `json:"state"`
}

// Error is the problem's detail, so that a Problem can be returned as an error.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Name returns the type without its prefix ("version").
func (p *Problem) Name() string { return strings.TrimPrefix(p.Type, ProblemPrefix) }
