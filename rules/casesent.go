package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// played goes on with a request whose key is derived: what goes out for it, or takes an
// effect of it back, and what the case's answers to that mean.
func (r *caseRun) played(op *Operation, env Env) {
	switch {
	case r.undo != "":
		r.undone(op, env)
		return
	case op.Send != nil:
		if !r.stepped(op, &env) {
			return
		}
	case len(r.send) > 0:
		r.problems = append(r.problems, "the operation isn't sent in steps")
	default:
		outgoing, refusal := op.Outgoing(env.Request, env.Mutation)
		if refusal != nil {
			r.refused(refusal)
			return
		}
		r.sent(outgoing)
	}
	if r.response != nil {
		r.judged(op.Judge(env.Request, env.Account, env.Mutation, r.response))
	}
	if len(r.probe) > 0 {
		r.probed(op, env)
	}
}

// undone plays the taking back of an object, to which the case's answers are.
func (r *caseRun) undone(op *Operation, env Env) {
	if op.Undo == nil {
		r.problems = append(r.problems, "the operation has no compensate")
		return
	}
	env.Mutation.Object = r.undo
	request, err := op.Undo.Request(env)
	if err != nil {
		r.problems = append(r.problems, "it can't be undone: "+err.Error())
		return
	}
	r.sent(request)
	if r.response != nil {
		r.judged(op.Undo.Judge(env, r.response))
	}
	if len(r.probe) > 0 {
		r.probed(op.Undo.Operation, env)
	}
}

// stepped plays a sending in steps as far as the case answers them. It reports whether
// the commit was reached, to which the case's other answers are.
func (r *caseRun) stepped(op *Operation, env *Env) bool {
	kept := map[string]string{}
	var sent []*Request
	for i := range op.Send.Prepares() {
		step, refusal := op.Send.Prepare(i, *env)
		if refusal != nil {
			r.refused(refusal)
			return false
		}
		sent = append(sent, step)
		if i == len(r.send) {
			// Without its answer nothing is kept, and the rest isn't asked for.
			r.sent(sent...)
			return len(r.send) == 0
		}
		gave, err := op.Send.Keep(i, *env, r.send[i])
		if err != nil {
			r.sent(sent...)
			r.compares("verdict")
			if problem := differs("verdict", r.expect.verdict, OpinionFailed.String()); problem != "" {
				r.problems = append(r.problems, problem+" (the step "+op.Send.StepName(i)+" isn't gone on from: "+err.Error()+")")
			}
			return false
		}
		maps.Copy(kept, gave)
		env.Mutation.Kept = kept
	}
	if n := op.Send.Prepares(); len(r.send) > n {
		r.problems = append(r.problems, "the sending has "+plural(n, "preparing step", "preparing steps"))
	}
	r.keeps(kept)
	commit, refusal := op.Send.Commit(*env)
	if refusal != nil {
		r.refused(refusal)
		return false
	}
	r.sent(append(sent, commit)...)
	return true
}

// keeps compares what the preparing steps gave.
func (r *caseRun) keeps(kept map[string]string) {
	if r.expect.kept == nil {
		return
	}
	got := make(map[string]jsontext.Value, len(kept))
	for name, value := range kept {
		got[name] = jsontext.Value(value)
	}
	r.compares("kept")
	r.differs("kept", string(canonicalValue(r.expect.kept)), string(identityText(got)))
}

// sent compares what goes out, where the case expects something of it.
func (r *caseRun) sent(requests ...*Request) {
	if r.expect.sent == nil {
		return
	}
	r.compares("sent")
	if len(requests) != len(r.expect.sent) {
		r.problems = append(r.problems, fmt.Sprintf("%s, expected %d", plural(len(requests), "request is sent", "requests are sent"), len(r.expect.sent)))
		return
	}
	for i, got := range requests {
		want := r.expect.sent[i]
		what := fmt.Sprintf("sent[%d] ", i)
		asked, refusal := Normalize(want)
		if refusal != nil {
			r.problems = append(r.problems, what+"is no request: "+refusal.Detail)
			continue
		}
		r.differs(what+"method", asked.Method, got.Method)
		r.differs(what+"url", asked.URL(), got.URL())
		for _, name := range slices.Sorted(maps.Keys(asked.Header)) {
			r.differs(what+"header "+name, asked.Header.Get(name), got.Header.Get(name))
		}
		if len(want.Body) > 0 {
			r.differs(what+"body", canonicalText(want.Body), canonicalText(got.Body()))
		}
	}
}
