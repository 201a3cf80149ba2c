package rules

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Undo takes one effect of an operation back, such as a duplicate.
type Undo struct {
	// Auto says that what is owed is sent without a person.
	Auto bool
	// Idempotent says that the same request again changes nothing more (RFC 9110
	// §9.2.2), so that it may be sent again whatever became of it.
	Idempotent bool
	// Operation judges and reconciles the undo, as it does any mutation. Its name is
	// that of the operation with /undo, which no operation of a file can have.
	Operation *Operation

	ask *Probe
}

// exprs are all expressions of the undo.
func (u *Undo) exprs() []*expr {
	if u == nil {
		return nil
	}
	out := u.ask.exprs()
	for _, o := range u.Operation.outcome {
		out = append(out, o.when)
	}
	for _, s := range u.Operation.Strategies {
		if s.Probe != nil {
			out = append(out, s.Probe.exprs()...)
		}
	}
	return slices.DeleteFunc(out, func(e *expr) bool { return e == nil })
}

// Request is what takes env.Mutation.Object back. env is that of the operation whose
// effect it is; the request goes to its authority, and credentials are the caller's
// business.
func (u *Undo) Request(env Env) (*Request, error) {
	if env.Request == nil || env.Mutation.Object == "" {
		return nil, errors.New("undo: nothing to take back")
	}
	a := &Asking{probe: u.ask, env: env, scope: u.Operation.scope(env)}
	ask, err := a.first()
	if err != nil {
		return nil, fmt.Errorf("undo of %s: %w", u.ask.op.Name, err)
	}
	req, refusal := Rebuild(ask.Method, ask.Scheme+"://"+ask.Authority+ask.Target, ask.Header, ask.Body)
	if refusal != nil {
		return nil, fmt.Errorf("undo of %s: %w", u.ask.op.Name, refusal)
	}
	return req, nil
}

// Judge is what the rule thinks of the answer to an undo: its outcome list, and then
// that what isn't there is undone.
func (u *Undo) Judge(env Env, resp *Response) Opinion {
	o := u.Operation.Judge(env.Request, env.Account, env.Mutation, resp)
	gone := resp.Status == http.StatusNotFound || resp.Status == http.StatusGone
	if o.Kind == OpinionNone && gone {
		return Opinion{Kind: OpinionApplied, Reason: fmt.Sprintf("it is not there (status %d), so there is nothing left to undo", resp.Status)}
	}
	return o
}
