package upstream

import "net/http"

// Judge makes a verdict of what was seen. It is pure, and decides in this order:
//
//  1. Nothing was sent, proven: failed, transient.
//  2. The upstream declared that it did not process the request: failed, transient.
//  3. No complete final head: uncertain.
//  4. The rule's opinion. Its "otherwise" closes the default table.
//  5. The default table by status (see statusRules), for what the rule leaves open.
//
// A success whose body was not read to its end is Committed, one whose body is over
// the limit TooLarge. Evidence that contradicts itself is uncertain.
func Judge(ev Evidence, f Facts, op Opinion) Verdict {
	v := judge(ev, f, op)
	v.RetryAfter = f.RetryAfter
	if v.Kind == Uncertain {
		v.Class = ClassIndeterminate
	}
	return v
}

func judge(ev Evidence, f Facts, op Opinion) Verdict {
	switch {
	case ev.NotSent && ev.BytesWritten != 0:
		return Verdict{Reason: ReasonContradiction}
	case ev.NotSent:
		return Verdict{Kind: Failed, Class: ClassTransient, Reason: ReasonNotSent}
	case ev.Refused && !ev.Head:
		return Verdict{Kind: Failed, Class: ClassTransient, Reason: ReasonRefused}
	case !ev.Head, ev.Status < 200:
		return Verdict{Reason: ReasonNoHead}
	}
	if v, decided := judgeOpinion(ev, f, op); decided {
		return v
	}
	return judgeStatus(ev, f)
}

// judgeOpinion is row 4. It reports false if the rule has no opinion.
func judgeOpinion(ev Evidence, f Facts, op Opinion) (Verdict, bool) {
	switch op.Kind {
	case OpinionNone:
		return Verdict{}, false
	case OpinionApplied:
		return success(ev, f, ReasonRule+op.Reason), true
	case OpinionFailed:
		if !op.Class.failure() {
			return Verdict{Reason: ReasonNoClass}, true
		}
		return Verdict{Kind: Failed, Class: op.Class, Reason: ReasonRule + op.Reason}, true
	case OpinionUncertain:
		return Verdict{Reason: ReasonRule + op.Reason}, true
	case OpinionOtherwise:
		return Verdict{Reason: ReasonOtherwise}, true
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
