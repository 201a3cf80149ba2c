package rules

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"keep-proxy/internal/verdict"
)

// Send says that a mutation is sent in steps. The first ones prepare something harmless, and only the last one, the
// commit, can take effect.
type Send struct {
	prepares []*sendStep
	commit   *sendStep
}

// sendStep is one request of a sending in steps.
type sendStep struct {
	// ask is what is sent, without expect and the rest of a probe.
	ask  *Probe
	form *template
	// expect is nil for the default: 200 or 201.
	expect *expr
	keep   []namedExpr
}

// Prepares is how many steps there are before the commit.
func (s *Send) Prepares() int { return len(s.prepares) }

// StepName is the name of a preparing step.
func (s *Send) StepName(i int) string { return s.prepares[i].ask.name }

// CommitMethod is the method of the commit.
func (s *Send) CommitMethod() string { return s.commit.ask.method }

// Prepare is the request of the i-th preparing step; env.Mutation.Kept holds what the
// steps before it gave.
func (s *Send) Prepare(i int, env Env) (*Request, *Refusal) { return s.prepares[i].request(env) }

// Commit is the request that can take effect.
func (s *Send) Commit(env Env) (*Request, *Refusal) { return s.commit.request(env) }

// Keep takes what the whole answer to the i-th preparing step gives, as canonical JSON by
// name. Its error says why the answer is none that the rule goes on from.
func (s *Send) Keep(i int, env Env, resp *Response) (map[string]string, error) {
	step := s.prepares[i]
	if resp == nil || !resp.Complete {
		return nil, errors.New("there was no whole answer")
	}
	scope := step.ask.op.scope(env)
	scope.resp = newAnswer(resp)
	if step.expect == nil && resp.Status != http.StatusOK && resp.Status != http.StatusCreated {
		return nil, fmt.Errorf("it was answered %d instead of 200 or 201", resp.Status)
	}
	if step.expect != nil {
		holds, err := step.expect.test(scope)
		switch {
		case err != nil:
			return nil, errors.New("expect can't be evaluated" + step.ask.op.because(err))
		case !holds:
			return nil, fmt.Errorf("it was answered %d, which is not what the rule expects: %s", resp.Status, step.expect.source)
		}
	}
	out := make(map[string]string, len(step.keep))
	for _, e := range step.keep {
		v, err := required(e.expr, scope)
		if err == nil && v.odd > 0 {
			err = refusedOdd
		}
		if err != nil {
			return nil, errors.New("its answer has no " + e.name + step.ask.op.because(err))
		}
		out[e.name] = string(canonicalValue(&v))
	}
	return out, nil
}

// request makes the step's request on the host of the script's own, with its header fields. Those that are about its
// content, or that make it conditional, are left out.
func (s *sendStep) request(env Env) (*Request, *Refusal) {
	if env.Request == nil {
		return nil, refuse(ProblemIdentity, "there is no request to make the steps of")
	}
	scope := s.ask.op.scope(env)
	target, header, body, err := s.build(scope, env.Request)
	if err != nil {
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			return nil, refusal
		}
		// The error may quote a value.
		return nil, refuse(ProblemIdentity, "the step "+quoted(s.ask.name)+" of the rule "+s.ask.op.Name+" can't be made of this request")
	}
	return Rebuild(s.ask.method, env.Request.Scheme+"://"+env.Request.Authority()+target, header, body)
}

// build computes what is sent.
func (s *sendStep) build(scope *scope, req *Request) (target string, header http.Header, body []byte, err error) {
	if target, err = s.ask.path.path(scope); err != nil {
		return "", nil, nil, err
	}
	query, err := s.ask.query.namedValues(scope)
	if err != nil {
		return "", nil, nil, err
	}
	own, err := s.ask.header.headers(scope)
	if err != nil {
		return "", nil, nil, err
	}
	header = carried(req.Header)
	switch {
	case s.ask.json != nil:
		v, _, err := s.ask.json.build(scope)
		if err != nil {
			return "", nil, nil, err
		}
		body = appendMasked(nil, &v, nil)
		header.Set("Content-Type", "application/json")
	case s.form != nil:
		fields, err := s.form.namedValues(scope)
		if err != nil {
			return "", nil, nil, err
		}
		body = []byte(strings.TrimPrefix(withQuery("", fields), "?"))
		header.Set("Content-Type", formType)
	}
	maps.Copy(header, own)
	return withQuery(target, query), header, body, nil
}

// carried are the script's header fields that hold for the steps too. Left out are those about the content (RFC 9110
// §8), its conditions (§13), ranges and expectations. So are a key of its own for the whole, and what overrides the
// method or path.
func carried(h http.Header) http.Header {
	out := h.Clone()
	if out == nil {
		out = http.Header{}
	}
	maps.DeleteFunc(out, func(name string, _ []string) bool {
		return strings.HasPrefix(name, "Content-") || strings.HasPrefix(name, "If-") || slices.Contains(digestHeaders, name) ||
			isOverrideField(name) ||
			slices.Contains([]string{"Range", "Expect", "Idempotency-Key", "Last-Modified", "Etag"}, name)
	})
	return out
}

// steps are all steps, the commit last.
func (s *Send) steps() []*sendStep {
	if s == nil {
		return nil
	}
	return append(slices.Clone(s.prepares), s.commit)
}

// exprs are all expressions of the sending.
func (s *Send) exprs() []*expr {
	var out []*expr
	for _, step := range s.steps() {
		out = append(out, step.exprs()...)
	}
	return out
}

func (s *sendStep) exprs() []*expr {
	out := append(s.ask.exprs(), s.form.exprs()...)
	if s.expect != nil {
		out = append(out, s.expect)
	}
	for _, e := range s.keep {
		out = append(out, e.expr)
	}
	return out
}

// marks reports whether what is sent carries our marker.
func (s *Send) marks() bool {
	return slices.ContainsFunc(s.exprs(), func(e *expr) bool { return e.readsName("mutation", "marker") })
}

// keeps reports whether a step before the n-th keeps this name.
func (s *Send) keeps(name string, n int) bool {
	for i, step := range s.steps() {
		if i < n && slices.ContainsFunc(step.keep, func(e namedExpr) bool { return e.name == name }) {
			return true
		}
	}
	return false
}

// Undo takes one effect of an operation back, such as a duplicate.
type Undo struct {
	// Auto says that what is owed is sent without a person.
	Auto bool
	// Idempotent says that the same request again changes nothing more (RFC 9110 §9.2.2). It may be sent again whatever
	// became of it.
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
		out = append(out, o.when, o.retryAfter)
	}
	for _, s := range u.Operation.Strategies {
		if s.Probe != nil {
			out = append(out, s.Probe.exprs()...)
		}
	}
	return slices.DeleteFunc(out, func(e *expr) bool { return e == nil })
}

// Request is what takes env.Mutation.Object back. The environment env is that of the operation whose effect it is. The
// request goes to its authority, and credentials are the caller's business.
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

// Judge is what the rule thinks of the answer to an undo. Its outcome list decides first; after that, what isn't there
// is undone.
func (u *Undo) Judge(env Env, resp *Response) verdict.Opinion {
	o := u.Operation.Judge(env.Request, env.Account, env.Mutation, resp)
	gone := resp.Status == http.StatusNotFound || resp.Status == http.StatusGone
	if o.Kind == verdict.OpinionNone && gone {
		return verdict.Opinion{Kind: verdict.OpinionApplied, Reason: fmt.Sprintf("it is not there (status %d), so there is nothing left to undo", resp.Status)}
	}
	return o
}
