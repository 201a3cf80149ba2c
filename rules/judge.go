package rules

import "slices"

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

// String is the word of the connector format; "" for no opinion, and "uncertain"
// for an unknown one.
func (k OpinionKind) String() string {
	switch k {
	case OpinionNone:
		return ""
	case OpinionApplied:
		return "applied"
	case OpinionFailed:
		return "failed"
	case OpinionUncertain:
		return "uncertain"
	}
	return "uncertain"
}

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

// Judge asks the rule about an answer whose head is complete. account is the
// record's. In this order:
//
//  1. the outcome list: the first condition that is true decides; one that can't
//     be evaluated is uncertain;
//  2. success, for 2xx: uncertain unless it is true;
//  3. otherwise: uncertain, where the rule closes the default table.
//
// Else there is no opinion.
func (op *Operation) Judge(req *Request, account string, mu Mutation, resp *Response) Opinion {
	if len(op.outcome) == 0 && op.success == nil {
		return op.noneHolds()
	}
	s := op.bind(req)
	s.account, s.mutation, s.resp = account, &mu, newAnswer(resp)
	for _, o := range op.outcome {
		holds, err := o.when.test(s)
		if err != nil {
			return Opinion{Kind: OpinionUncertain, Reason: "the condition " + o.when.source + " can't be evaluated" + op.because(err)}
		}
		if holds {
			return Opinion{Kind: o.kind, Class: o.class, Reason: "the rule's condition holds: " + o.when.source}
		}
	}
	if op.success != nil && resp.Status >= 200 && resp.Status <= 299 {
		holds, err := op.success.test(s)
		switch {
		case err != nil:
			return Opinion{Kind: OpinionUncertain, Reason: "the success condition can't be evaluated" + op.because(err)}
		case !holds:
			return Opinion{Kind: OpinionUncertain, Reason: "the success condition is false: " + op.success.source}
		}
	}
	return op.noneHolds()
}

// noneHolds is the opinion of a rule no condition of which says anything.
func (op *Operation) noneHolds() Opinion {
	if op.otherwise {
		return Opinion{Kind: OpinionUncertain, Reason: "no condition of the rule holds, and it says otherwise: uncertain"}
	}
	return Opinion{}
}

// because words an error for a reason that is stored. Errors may quote values, so
// an operation with secret places gives none, nor one that reads credentials.
func (op *Operation) because(err error) string {
	if len(op.secret) > 0 || slices.ContainsFunc(op.exprs(), op.hides) {
		return ""
	}
	return ": " + printable(err.Error())
}

// JudgesBody reports whether the verdict can depend on the answer's body: the
// rule has a success condition, follows a 202, or has an outcome that reads the body.
func (op *Operation) JudgesBody() bool {
	return op.success != nil || op.Watch != nil ||
		slices.ContainsFunc(op.outcome, func(o *outcomeRule) bool { return o.when.readsAnswerBody() })
}

// BodyDecides reports whether the verdict on an answer, of which the head is known, can depend on its
// body, or on whether that is whole: unless each condition that reads the body is false whatever that
// holds, as one about another status is.
func (op *Operation) BodyDecides(req *Request, account string, mu Mutation, head *Response) bool {
	if op.success != nil || op.Watch != nil {
		return true
	}
	s := op.bind(req)
	s.account, s.mutation, s.resp = account, &mu, newAnswer(&Response{Status: head.Status, Header: head.Header})
	return slices.ContainsFunc(op.outcome, func(o *outcomeRule) bool {
		if o.when.readsName("response", "complete") {
			return true
		}
		if !o.when.readsAnswerBody() {
			return false
		}
		// Of a body that isn't there any condition that needs it is an error.
		holds, err := o.when.test(s)
		return holds || err != nil
	})
}
