package rules

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"

	"keep-proxy/internal/verdict"
)

// Judge asks the rule about an answer whose head is complete, with the record's account. In this order:
//
//  1. The outcome list: the first condition that is true decides. One that can't be evaluated is uncertain. A rule of
//     GraphQL has [defaultGraphQL] at its end.
//  2. The success condition, for 2xx: uncertain unless it is true.
//  3. Without one, a success that isn't the result of a call of JSON-RPC: uncertain.
//  4. Otherwise uncertain, where the rule closes the default table.
//
// Else there is no opinion.
func (op *Operation) Judge(req *Request, account string, mu Mutation, resp *Response) verdict.Opinion {
	if len(op.outcome) == 0 && op.success == nil && !op.rpc {
		return op.noneHolds()
	}
	s := op.bind(req)
	s.account, s.mutation, s.resp = account, &mu, newAnswer(resp)
	for _, o := range op.outcome {
		holds, err := o.when.test(s)
		if err != nil {
			return verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "the condition " + o.when.source + " can't be evaluated" + op.because(err)}
		}
		if holds {
			return o.opinion(s)
		}
	}
	if op.success != nil && resp.Status >= 200 && resp.Status <= 299 {
		holds, err := op.success.test(s)
		switch {
		case err != nil:
			return verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "the success condition can't be evaluated" + op.because(err)}
		case !holds:
			return verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "the success condition is false: " + op.success.source}
		}
	} else if op.rpc {
		return op.judgeCall(s)
	}
	return op.noneHolds()
}

// opinion is that of an entry whose condition holds. A retry_after that gives no time says nothing.
func (o *outcomeRule) opinion(s *scope) verdict.Opinion {
	out := verdict.Opinion{Kind: o.kind, Class: o.class, Continues: o.continues, Reason: "the rule's condition holds: " + o.when.source}
	if o.retryAfter != nil {
		switch v, _, _ := o.retryAfter.prog.Eval(s); v := v.(type) {
		case types.Duration:
			out.Wait = v.Duration
		case types.Timestamp:
			out.Until = v.Time
		}
	}
	return out
}

// noneHolds is the opinion of a rule no condition of which says anything.
func (op *Operation) noneHolds() verdict.Opinion {
	if op.otherwise {
		return verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "no condition of the rule holds, and it says otherwise: uncertain"}
	}
	return verdict.Opinion{}
}

// because words an error for a reason that is stored. Errors may quote values, so
// an operation with secret places gives none, nor one that reads credentials.
func (op *Operation) because(err error) string {
	if len(op.secret) > 0 || slices.ContainsFunc(op.exprs(), op.hides) {
		return ""
	}
	return ": " + printable(err.Error())
}

// JudgesBody reports whether the opinion can depend on the answer's body. The rule has a success condition, follows a
// 202, or has an outcome that reads the body.
func (op *Operation) JudgesBody() bool {
	return op.success != nil || op.Watch != nil || op.rpc ||
		slices.ContainsFunc(op.outcome, func(o *outcomeRule) bool { return o.when.ReadsAnswerBody() || o.retryAfter.ReadsAnswerBody() })
}

// BodyDecides reports whether the verdict can depend on an answer's body, or on whether that is whole. Only the head is
// known. A condition that is false whatever the body holds, as one about another status, doesn't count.
func (op *Operation) BodyDecides(req *Request, account string, mu Mutation, head *Response) bool {
	if op.success != nil || op.Watch != nil || op.rpc {
		return true
	}
	s := op.bind(req)
	s.account, s.mutation, s.resp = account, &mu, newAnswer(&Response{Status: head.Status, Header: head.Header})
	return slices.ContainsFunc(op.outcome, func(o *outcomeRule) bool {
		if o.when.readsName("response", "complete") {
			return true
		}
		if !o.when.ReadsAnswerBody() {
			return false
		}
		// Of a body that isn't there any condition that needs it is an error.
		holds, err := o.when.test(s)
		return holds || err != nil
	})
}

// Watch follows an answer 202 (RFC 9110 §15.3.3) to the end of what it accepted.
type Watch struct {
	// Every is the time between two looks, Max how long is looked at most.
	Every, Max time.Duration
	// Class is the class of a failure.
	Class verdict.Class

	ask    *Probe
	until  *expr
	failed *expr
}

// Watched is what one look showed.
type Watched uint8

// What one look showed. The zero value is pending.
const (
	// WatchPending: it isn't over, or can't be told.
	WatchPending Watched = iota
	// WatchDone: it took effect.
	WatchDone
	// WatchFailed: it did not, and won't.
	WatchFailed
)

// exprs are all expressions of the watch.
func (w *Watch) exprs() []*expr {
	if w == nil {
		return nil
	}
	return slices.DeleteFunc(append(w.ask.exprs(), w.until, w.failed), func(e *expr) bool { return e == nil })
}

// Ask is the request that looks; accepted is the stored answer 202, which it reads as
// response.
func (w *Watch) Ask(env Env, accepted *Response) (*Ask, error) {
	if env.Request == nil || accepted == nil {
		return nil, errors.New("watch: nothing to follow")
	}
	a := &Asking{probe: w.ask, env: env, scope: w.ask.op.scope(env)}
	a.scope.resp = newAnswer(accepted)
	ask, err := a.first()
	if err != nil {
		return nil, fmt.Errorf("watch of %s: %w", w.ask.op.Name, err)
	}
	return ask, nil
}

// Follows reports whether a successful answer only accepted the mutation: a 202 does, and a 201 that has the URL to look
// at, or may have it.
func (w *Watch) Follows(env Env, resp *Response) bool {
	if w == nil || resp.Status != http.StatusCreated || !w.ask.path.whole() {
		return w != nil && resp.Status == http.StatusAccepted
	}
	s := w.ask.op.scope(env)
	s.resp = newAnswer(resp)
	_, err := single(w.ask.path.parts[0].expr, s)
	return !errors.Is(err, errMissing) && !strings.HasPrefix(fmt.Sprint(errors.Unwrap(err)), "no such key") // CEL's own words.
}

// Judge says what an answer to Ask shows, and why. It is pending unless the answer is whole and as expected, and one of
// the two conditions is true. One page of several is pending for a failure, and for any end of what takes something
// away. So is an end that depends on the time of the claim, where that can't be told.
func (w *Watch) Judge(env Env, resp *Response, clocks Clocks) (Watched, string) {
	if resp == nil || !resp.Complete {
		return WatchPending, "there was no whole answer"
	}
	s := w.ask.op.scope(env)
	s.resp = askedAnswer(resp)
	seen, why := w.judge(s, resp)
	if seen == WatchPending {
		return seen, why
	}
	missing := seen == WatchFailed || takesAway(env)
	if _, more, err := nextLink(resp.Header); missing && (more || err != nil) {
		return WatchPending, why + ", but by its Link field the answer goes on, of which one page was read"
	}
	if untold := clocks.untold(); untold != "" && w.restsOnClaim(missing) {
		return WatchPending, why + ", but the rule goes by the time of the claim: " + untold
	}
	return seen, why
}

// restsOnClaim reports whether an end depends on when the mutation was claimed. It is judged by that time. Where
// something is missing, it may also be asked for by that time.
func (w *Watch) restsOnClaim(missing bool) bool {
	return slices.ContainsFunc([]*expr{w.ask.expect, w.until, w.failed}, (*expr).readsClaim) || missing && w.ask.asksByClaim()
}

// judge asks the conditions about a whole answer, in its scope.
func (w *Watch) judge(s *scope, resp *Response) (Watched, string) {
	if w.ask.expect == nil && resp.Status != http.StatusOK {
		return WatchPending, fmt.Sprintf("it was answered %d instead of 200", resp.Status)
	}
	holds := [3]bool{}
	for i, e := range []*expr{w.ask.expect, w.until, w.failed} {
		if e == nil {
			holds[i] = i == 0
			continue
		}
		var err error
		if holds[i], err = e.test(s); err != nil {
			return WatchPending, "a condition can't be evaluated" + w.ask.op.because(err)
		}
	}
	switch {
	case !holds[0]:
		return WatchPending, fmt.Sprintf("it was answered %d, which is not what the rule expects", resp.Status)
	case holds[1] && holds[2]:
		return WatchPending, "until and failed_when are both true"
	case holds[1]:
		return WatchDone, "until is true: " + w.until.source
	case holds[2]:
		return WatchFailed, "failed_when is true: " + w.failed.source
	}
	return WatchPending, "neither until nor failed_when is true"
}
