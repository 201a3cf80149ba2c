package upstream

import (
	"net/http"
	"slices"
	"time"

	"keep-proxy/internal/verdict"
)

// Judge makes a verdict of what was seen. It is pure, and decides in this order:
//
//  1. Nothing was sent, proven: failed, transient.
//  2. The upstream declared that it did not process the request: failed, transient.
//  3. No complete final head: uncertain.
//  4. The rule's opinion.
//  5. The default table by status (see statusRules), for what the rule leaves open.
//
// A success whose body was not read to its end is Committed, one whose body is over
// the limit TooLarge. Evidence that contradicts itself is uncertain.
func Judge(ev Evidence, f Facts, op verdict.Opinion) Verdict {
	v := judge(ev, f, op)
	v.RetryAfter = f.RetryAfter
	if v.Kind == Uncertain {
		v.Class = verdict.Indeterminate
	}
	return v
}

func judge(ev Evidence, f Facts, op verdict.Opinion) Verdict {
	switch {
	case ev.NotSent && ev.BytesWritten != 0:
		return Verdict{Reason: ReasonContradiction}
	case ev.NotSent:
		return Verdict{Kind: Failed, Class: ev.ErrorClass.Unreached(), Reason: ReasonNotSent + because(ev.Error)}
	case ev.Refused && !ev.Head:
		return Verdict{Kind: Failed, Class: verdict.Transient, Reason: ReasonRefused}
	case !ev.Head, ev.Status < 200:
		return Verdict{Reason: ReasonNoHead}
	}
	if v, decided := judgeOpinion(ev, f, op); decided {
		return v
	}
	return judgeStatus(ev, f)
}

// because is the rest of a reason that names its cause.
func because(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}

// judgeOpinion is row 4. It reports false if the rule has no opinion.
func judgeOpinion(ev Evidence, f Facts, op verdict.Opinion) (Verdict, bool) {
	switch op.Kind {
	case verdict.OpinionNone:
		return Verdict{}, false
	case verdict.OpinionApplied:
		return success(ev, f, ReasonRule+op.Reason), true
	case verdict.OpinionFailed:
		if !slices.Contains(verdict.Failures(), op.Class) {
			return Verdict{Reason: ReasonNoClass}, true
		}
		return Verdict{Kind: Failed, Class: op.Class, Continues: op.Continues, Reason: ReasonRule + op.Reason}, true
	case verdict.OpinionUncertain:
		return Verdict{Reason: ReasonRule + op.Reason}, true
	}
	return Verdict{Reason: ReasonUnknownOpinion}, true
}

// judgeStatus is row 5.
func judgeStatus(ev Evidence, f Facts) Verdict {
	rule := ruleOf(ev.Status)
	switch {
	case f.GRPC && ev.Status < 300:
		return Verdict{Reason: ReasonGRPC}
	case rule.notDelete && f.Method == http.MethodDelete:
		return Verdict{Reason: ReasonGoneOnDelete}
	case rule.kind == Applied:
		return success(ev, f, rule.reason)
	}
	return Verdict{Kind: rule.kind, Class: rule.class, Reason: rule.reason}
}

// success grades a commit by what is left of its answer.
func success(ev Evidence, f Facts, reason string) Verdict {
	switch {
	case f.TooLarge:
		return Verdict{Kind: TooLarge, Reason: reason + ReasonTooLarge}
	case ev.BodyComplete:
		return Verdict{Kind: Applied, Reason: reason}
	}
	return Verdict{Kind: Committed, Reason: reason + ReasonCut}
}

// Verdict says what one dispatch came to. The zero value is uncertain.
type Verdict struct {
	Kind VerdictKind
	// Class says who can act on it. Failed has one of the four classes of failure, Uncertain
	// verdict.Indeterminate, others none.
	Class verdict.Class
	// Continues says of Failed that the upstream asks for more, and that the next request brings it.
	Continues bool
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

// Success reports whether the mutation is known to have committed.
func (k VerdictKind) Success() bool { return k == Applied || k == Committed || k == TooLarge }

// Reasons of verdicts. ReasonRule is followed by the rule's own words, ReasonCut
// and ReasonTooLarge follow the reason of a success.
const (
	ReasonContradiction  = "the evidence contradicts itself: bytes were written, yet nothing was sent"
	ReasonNotSent        = "nothing was sent"
	ReasonRefused        = "the upstream declared that it did not process the request"
	ReasonNoHead         = "no complete answer head was read after bytes had been sent"
	ReasonRule           = "by the rule: "
	ReasonNoClass        = "the rule says failed without a class of failure"
	ReasonUnknownOpinion = "the rule's opinion is unknown"
	ReasonGRPC           = "gRPC: the HTTP status does not tell the outcome"
	ReasonGoneOnDelete   = "not found or gone, which may be this deletion's own work"
	ReasonSuccess        = "success status"
	ReasonOther2xx       = "a 2xx status that does not say what happened"
	ReasonRedirect       = "redirected with method and body kept; not done at this host, and not followed"
	ReasonOther3xx       = "a redirect that does not say what happened"
	ReasonPermission     = "the upstream denies permission"
	ReasonPrecondition   = "the upstream refuses under present circumstances"
	ReasonLogic          = "the upstream refuses the request as it is"
	ReasonBusy           = "the upstream asks to try again later"
	ReasonAmbiguous      = "a status that a gateway may give after the upstream committed"
	ReasonUnknownStatus  = "unknown status"
	ReasonCut            = ", but the answer's body was cut"
	ReasonTooLarge       = ", but the answer's body is over the limit"
)

// statusRule is one row of the default table.
type statusRule struct {
	statuses  []int
	kind      VerdictKind
	class     verdict.Class
	notDelete bool // on DELETE the row says nothing: uncertain
	reason    string
}

// statusRules is the default table for complete final heads. A status in no row is uncertain. A
// 408, 409, 412, 499 or 5xx may come from a gateway that retried inside. A first 409 can be our own
// write.
var statusRules = []statusRule{
	{statuses: []int{200, 201, 202, 204, 303}, kind: Applied, reason: ReasonSuccess},
	{statuses: []int{307, 308}, kind: Failed, class: verdict.Logic, reason: ReasonRedirect},
	{statuses: []int{401, 403, 407}, kind: Failed, class: verdict.Permission, reason: ReasonPermission},
	{statuses: []int{402, 422}, kind: Failed, class: verdict.Precondition, reason: ReasonPrecondition},
	{statuses: []int{404, 410}, kind: Failed, class: verdict.Precondition, notDelete: true, reason: ReasonPrecondition},
	{
		statuses: []int{400, 405, 406, 411, 413, 414, 415, 416, 417, 421, 424, 426, 428, 431, 451, 501, 505, 511},
		kind:     Failed, class: verdict.Logic, reason: ReasonLogic,
	},
	{statuses: []int{425, 429}, kind: Failed, class: verdict.Transient, reason: ReasonBusy},
	{statuses: []int{408, 409, 412, 499}, kind: Uncertain, reason: ReasonAmbiguous},
}

// rulesByStatus is statusRules by their statuses.
var rulesByStatus = func() map[int]statusRule {
	m := map[int]statusRule{}
	for _, r := range statusRules {
		for _, s := range r.statuses {
			m[s] = r
		}
	}
	return m
}()

// ruleOf returns the row of a final status.
func ruleOf(status int) statusRule {
	if r, ok := rulesByStatus[status]; ok {
		return r
	}
	switch status / 100 {
	case 2:
		return statusRule{reason: ReasonOther2xx}
	case 3:
		return statusRule{reason: ReasonOther3xx}
	case 5:
		return statusRule{reason: ReasonAmbiguous}
	}
	return statusRule{reason: ReasonUnknownStatus}
}
