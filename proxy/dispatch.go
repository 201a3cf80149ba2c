package proxy

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// sending is one claimed dispatch until its outcome is recorded.
type sending struct {
	w        *work
	mutation *ledger.Mutation
	dispatch ledger.Dispatch
	rule     rules.Mutation
	answer   *upstream.Answer
	body     []byte
	tooLarge bool
	// owed is what must still be recorded: a record in flight always has an owner.
	owed owed
	// streaming says that the rest of the answer goes to the script, which ends the
	// dispatch.
	streaming bool
	// wire is the answer's end-to-end head, as the script gets it.
	wire    http.Header
	verdict upstream.Verdict
}

// owed is what a dispatch must still have recorded. The zero value owes its whole
// outcome.
type owed uint8

const (
	_ owed = iota
	// owesParking: its end is recorded, and that the outcome stays unknown isn't.
	owesParking
	// owesNothing: the ledger has it, or the recorder.
	owesNothing
)

// dispatch sends a claimed mutation once, judges what came back, and records it.
// The record has an owner until the outcome is durable: this function, or the
// recorder that it leaves it to.
func (p *Proxy) dispatch(ctx context.Context, w *work, c ledger.Claimed) *settled {
	s := &sending{w: w, mutation: c.Mutation, dispatch: *c.Dispatch, rule: ruleMutation(c.Mutation)}
	defer p.recordOwed(s)
	request, f := p.request(s)
	if f != nil {
		return p.unsendable(ctx, s, f)
	}
	s.answer = p.config.Sender.Send(ctx, request)
	defer func() {
		if !s.streaming {
			s.answer.Close()
		}
	}()
	sentPoint.Pass()
	p.collect(ctx, s)
	p.judge(s)
	judgedPoint.Pass()
	return p.conclude(ctx, s)
}

func ruleMutation(m *ledger.Mutation) rules.Mutation {
	return rules.Mutation{ID: m.ID, Marker: m.Marker, VendorKey: m.VendorKey, Generation: m.Generation, ClaimedAt: m.CreatedAt}
}

// request is what goes out: the judged form with vendor key, marker and the
// operator's credentials. Content codings are not asked for, so that the answer
// can be judged, and replayed to a client that asks for another.
func (p *Proxy) request(s *sending) (*upstream.Request, *refusal) {
	out, problem := s.w.op.Outgoing(s.w.req, s.rule)
	if problem != nil {
		return nil, fromRules(problem)
	}
	target, err := url.Parse(out.URL())
	if err != nil {
		return nil, refuse(problemAmbiguous, "The rebuilt URL can't be parsed; nothing was sent.")
	}
	header := out.Header.Clone()
	stripRequest(header)
	header.Set("Accept-Encoding", "identity")
	if err := p.addCredentials(header, s.w.match.Connector.Name); err != nil {
		return nil, refuse(problemInternal, "The configured credentials can't be had; nothing was sent: "+err.Error())
	}
	var body upstream.Body
	if out.HasBody() {
		body = upstream.Bytes(out.Body())
	}
	return &upstream.Request{
		Method: out.Method, URL: target, Host: out.Authority(), Header: header, Body: body,
		Total: s.w.op.Timeout, TrustRefused: s.w.match.Connector.TrustRefused,
	}, nil
}

// unsendable records that a claimed mutation could not be made into a request.
func (p *Proxy) unsendable(ctx context.Context, s *sending, f *refusal) *settled {
	d := s.dispatch
	d.Ended = ledger.Stamp(clock.Take(p.config.Clock))
	d.Verdict, d.Class, d.Reason = ledger.VerdictNotSent, ledger.ClassLogic, f.detail
	finished, recorded := p.finish(ctx, s, ledger.Finish{Key: s.w.key, Dispatch: d})
	if !recorded {
		return p.notRecorded(s)
	}
	return &settled{refusal: f, mutation: finished.Mutation, decision: ledger.DecideDispatch}
}

// judge makes the verdict of what was seen.
func (p *Proxy) judge(s *sending) {
	a := s.answer
	evidence := a.Evidence()
	opinion := upstream.Opinion{}
	if evidence.Head {
		opinion = convertOpinion(s.w.op.Judge(s.w.req, s.w.derived.Account, s.rule, s.response(evidence)))
	}
	facts := upstream.FactsOf(s.w.req.Method, a, p.config.Clock.Now(), "")
	facts.TooLarge = s.tooLarge
	s.verdict = upstream.Judge(evidence, facts, opinion)
	s.dispatch = dispatchOf(s.dispatch, evidence, s.verdict)
	if s.dispatch.Ended.BootID == "" && !s.tooLarge {
		s.dispatch.Ended = ledger.Stamp(clock.Take(p.config.Clock))
	}
}

// response is the answer as rules read it.
func (s *sending) response(ev upstream.Evidence) *rules.Response {
	body, ok := decodeContent(s.answer.Header, s.body, s.w.op.MaxBody)
	return &rules.Response{Status: s.answer.Status, Header: s.answer.Header, Body: body, Complete: ev.BodyComplete && !s.tooLarge && ok}
}

// convertOpinion speaks the rules' opinion in upstream's words.
func convertOpinion(o rules.Opinion) upstream.Opinion {
	out := upstream.Opinion{Kind: upstream.OpinionUncertain, Class: upstream.Class(o.Class), Reason: o.Reason}
	switch o.Kind {
	case rules.OpinionNone:
		out.Kind = upstream.OpinionNone
	case rules.OpinionApplied:
		out.Kind = upstream.OpinionApplied
	case rules.OpinionFailed:
		out.Kind = upstream.OpinionFailed
	case rules.OpinionUncertain:
	}
	return out
}

// dispatchOf adds evidence and verdict to a dispatch.
func dispatchOf(d ledger.Dispatch, ev upstream.Evidence, v upstream.Verdict) ledger.Dispatch {
	d.Ended = ledger.Stamp(ev.Ended)
	d.BytesWritten, d.Head, d.Status, d.BodyComplete = ev.BytesWritten, ev.Head, ev.Status, ev.BodyComplete
	d.ErrorClass, d.Error, d.Protocol, d.Remote = string(ev.ErrorClass), ev.Error, ev.Protocol, ev.Remote
	d.Class, d.Reason = ledger.Class(v.Class), v.Reason
	switch v.Kind {
	case upstream.Applied, upstream.TooLarge:
		d.Verdict = ledger.VerdictApplied
	case upstream.Committed:
		d.Verdict = ledger.VerdictCommitted
	case upstream.Failed:
		d.Verdict = ledger.VerdictFailed
		if ev.NotSent {
			d.Verdict = ledger.VerdictNotSent
		}
	default:
		d.Verdict = ledger.VerdictUncertain
	}
	return d
}

// earlyCommit is how long an answer's body may take before its success is
// recorded ahead of it.
const earlyCommit = 50 * time.Millisecond
