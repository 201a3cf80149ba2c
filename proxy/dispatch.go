package proxy

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/masking"
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
	// changed is the request's body, if the rule changed it and it is long; see lasting.
	changed  *content
	answer   *upstream.Answer
	body     *content
	tooLarge bool
	// lost is why the content that came can't be had any more.
	lost error
	// owed is what must still be recorded: a record in flight always has an owner.
	owed owed
	// streaming says that the rest of the answer goes to the script, which ends the
	// dispatch: the request may still be going out.
	streaming bool
	// wire is the answer's end-to-end head, as the script gets it, trailer what came
	// behind its content.
	wire    http.Header
	trailer http.Header
	verdict upstream.Verdict
	// step is the preparing step under way, "" for the commit.
	step string
	// wired are the configured credentials that were put on it, which must not be kept,
	// should the API echo them.
	wired masking.Secrets
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
func (p *Proxy) dispatch(ctx context.Context, w *work, c ledger.Claimed) (out *settled) {
	s := &sending{w: w, mutation: c.Mutation, dispatch: *c.Dispatch, rule: ruleMutation(c.Mutation)}
	defer func() {
		if !s.streaming {
			s.changed.close(p)
		}
		if out == nil || out.body != s.body {
			s.body.close(p)
		}
	}()
	defer p.recordOwed(s)
	if w.op.Send != nil {
		if out := p.prepareSending(ctx, s); out != nil {
			return out
		}
	}
	request, f := p.request(s)
	if f != nil {
		return p.unsendable(ctx, s, f)
	}
	s.answer = p.config.Sender.Send(ctx, request)
	w.interim.end()
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
	return rules.Mutation{ID: m.ID, Marker: m.Marker, VendorKey: m.VendorKey, Generation: m.Generation, ClaimedAt: m.CreatedAt, Kept: m.Kept}
}

// request is what goes out: the judged form with vendor key, marker and the
// operator's credentials. Content codings are not asked for, so that the answer
// can be judged, and replayed to a client that asks for another.
func (p *Proxy) request(s *sending) (*upstream.Request, *refusal) {
	out, body, f := p.outgoing(s)
	if f != nil {
		return nil, f
	}
	request, f := p.wired(s, out, body)
	if f == nil && s.w.trailers {
		request.Header["Te"] = trailersTaken // They are kept with the answer.
	}
	return request, f
}

// wired is the request of rules in the form that is sent.
func (p *Proxy) wired(s *sending, out *rules.Request, body upstream.Body) (*upstream.Request, *refusal) {
	target, err := url.Parse(out.URL())
	if err != nil {
		return nil, refuse(problemAmbiguous, "The rebuilt URL can't be parsed; nothing was sent.")
	}
	// Fields are taken out and put in whole; the values of none are changed.
	header := maps.Clone(out.Header)
	stripRequest(header)
	header["Accept-Encoding"] = identityCoding
	as := s.w.as
	if as == nil {
		if as, err = p.credentialOf(s.w.match.Connector.Name, out); err != nil {
			return nil, refuse(problemInternal, "Nothing was sent: "+err.Error()+".")
		}
	}
	if as.name != "" {
		header.Set(as.name, as.value)
		s.wired = append(s.wired, as.value)
	}
	addVia(header, s.w.via)
	return &upstream.Request{
		Method: out.Method, URL: target, Host: out.Authority(), Header: header, Body: body,
		Total: s.w.op.Timeout, TrustRefused: s.w.match.Connector.TrustRefused, Interim: s.w.interim.asked(),
	}, nil
}

var identityCoding = []string{"identity"}

// outgoing is what goes out. Of a long body, it has the content only as a spool.
func (p *Proxy) outgoing(s *sending) (out *rules.Request, body upstream.Body, f *refusal) {
	err := p.loaded(s.w.req, s.w.body, func(req *rules.Request) {
		if s.w.op.Send != nil {
			out, body, f = stepBody(s.w.op.Send.Commit(s.env(req)))
			return
		}
		changed, problem := s.w.op.Outgoing(req, s.rule)
		switch {
		case problem != nil:
			f = fromRules(problem)
		case !changed.HasBody():
			out = changed
		case same(changed.Body(), req.Body()):
			out, body = changed, s.w.body
		default:
			out = changed
			body, f = p.sentBody(s, changed.Body())
		}
	})
	if err != nil {
		f = ledgerRefusal(err)
	}
	return out, body, f
}

// sentBody puts a long body that the rule changed aside for the time of its sending.
func (p *Proxy) sentBody(s *sending, changed []byte) (upstream.Body, *refusal) {
	c, err := p.aside(changed)
	if err != nil {
		return nil, bodyRefusal(err, s.w.op.MaxBody)
	}
	s.changed = c
	return c, nil
}

// unsendable records that a claimed mutation could not be made into a request.
func (p *Proxy) unsendable(ctx context.Context, s *sending, f *refusal) *settled {
	if s.prepared() {
		f.detail = strings.ReplaceAll(f.detail, "othing was sent", "othing was sent but what prepares it")
	}
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
		opinion = p.opinion(s, evidence)
	}
	facts := upstream.FactsOf(s.method(), a, p.config.Clock.Now(), "")
	facts.TooLarge = s.tooLarge
	s.verdict = upstream.Judge(evidence, facts, opinion)
	s.verdict.Reason = s.wired.Text(s.verdict.Reason)
	s.dispatch = dispatchOf(s.dispatch, evidence, s.verdict)
	s.dispatch.Error = s.wired.Text(s.dispatch.Error)
	s.accepted()
	if !s.mayStream() {
		// Nobody gets the rest of an answer over the limit: it ends before that is recorded, as
		// settle counts from there.
		a.Close()
		s.dispatch.Ended = ledger.Stamp(a.Evidence().Ended)
	}
	if s.dispatch.Ended.BootID == "" {
		s.dispatch.Ended = ledger.Stamp(clock.Take(p.config.Clock))
	}
}

// mayStream reports whether the rest of an answer over the limit may go to the script, which
// ends the dispatch then.
func (s *sending) mayStream() bool {
	return s.tooLarge && (s.verdict.Kind == upstream.TooLarge || s.verdict.Kind == upstream.Failed)
}

// opinion is what the rule says of the answer. It is given content only if it may
// read it.
func (p *Proxy) opinion(s *sending, ev upstream.Evidence) upstream.Opinion {
	out := upstream.Opinion{Kind: upstream.OpinionUncertain, Reason: "the bodies can't be read again"}
	coded := upstream.Coded(s.answer.Header) && !s.tooLarge
	readable := s.body
	if coded || !s.w.op.JudgesBody() {
		readable = nil
	}
	err := p.holdingBoth(s.w.body, readable, func(request, answer []byte) {
		out = convertOpinion(s.w.op.Judge(withBody(s.w.req, s.w.body, request), s.w.derived.Account, s.rule, &rules.Response{
			Status: s.answer.Status, Header: s.answer.Header, Body: answer,
			Complete: ev.BodyComplete && !s.tooLarge && !coded && s.lost == nil,
		}))
	})
	if err != nil {
		p.config.Log.Error().Err(err).Str("mutation", s.mutation.ID).Msg("answer not judged by its rule")
	}
	return out
}

// accepted makes a success by a 202 that the rule follows what it is: accepted, with the
// answer that says where to look, or unknown without it.
func (s *sending) accepted() {
	if s.w.op.Watch == nil || s.answer.Status != http.StatusAccepted || !s.verdict.Kind.Success() {
		return
	}
	if s.verdict.Kind == upstream.Applied {
		s.dispatch.Verdict = ledger.VerdictAccepted
		return
	}
	s.unfollowed()
}

// unfollowed makes what was accepted unknown: nothing says where to look.
func (s *sending) unfollowed() {
	s.verdict = upstream.Verdict{Class: upstream.ClassIndeterminate, Reason: "accepted, but without the whole answer that says where to follow it"}
	s.dispatch.Verdict, s.dispatch.Class, s.dispatch.Reason = ledger.VerdictUncertain, ledger.ClassIndeterminate, s.verdict.Reason
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
