package proxy

import (
	"context"
	"slices"
	"strings"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// sending is one claimed dispatch until its outcome is recorded.
type sending struct {
	dispatch.Sending
	w    *work
	rule rules.Mutation
	// changed is the request's body, if the rule changed it and it is long.
	changed *dispatch.Content
	// owed is what must still be recorded: a record in flight always has an owner.
	owed owed
	// streaming says that the rest of the answer goes to the script, which ends the dispatch. The
	// request may still be going out.
	streaming bool
	// step is the preparing step under way, "" for the commit.
	step string
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

func newSending(w *work, c ledger.Claimed) *sending {
	s := &sending{w: w, rule: dispatch.RuleMutation(c.Mutation)}
	s.Sending = dispatch.Sending{
		Mutation: c.Mutation, Dispatch: *c.Dispatch, Operation: w.op, Method: w.req.Method, Request: w.req, Body: w.body,
		Limit: w.op.MaxBody, Streams: true, Secrets: slices.Clip(w.credentials),
		Opinion: func(req *rules.Request, answer *rules.Response) verdict.Opinion {
			return w.op.Judge(req, w.derived.Account, s.rule, answer)
		},
	}
	if w.op.Send != nil {
		s.Method = w.op.Send.CommitMethod()
	}
	if w.events != nil {
		s.Events = w.events
	}
	return s
}

// dispatch sends a claimed mutation once, judges what came back, and records it.
// The record has an owner until the outcome is durable: this function, or the
// recorder that it leaves it to.
func (p *Proxy) dispatch(ctx context.Context, w *work, c ledger.Claimed) (out *reply) {
	s := newSending(w, c)
	defer func() {
		if !s.streaming {
			s.changed.Close()
		}
		if out == nil || out.body != s.Content {
			s.Content.Close()
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
	s.Sent, s.Answer = request, p.config.Sender.Send(ctx, request)
	w.interim.end()
	defer func() {
		if !s.streaming {
			s.Answer.Close()
		}
	}()
	sentPoint.Pass()
	late := p.whenLate(ctx, s)
	p.dispatcher.Read(ctx, &s.Sending)
	late()
	p.dispatcher.Decode(&s.Sending)
	p.dispatcher.Judge(&s.Sending)
	judgedPoint.Pass()
	return p.conclude(ctx, s)
}

// request is what goes out: the judged form with vendor key, marker and the
// operator's credentials.
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
	request, err := dispatch.Request(out, body, s.Mutation.SentTo)
	if err != nil {
		return nil, refuse(problemAmbiguous, "The rebuilt URL can't be parsed; nothing was sent.")
	}
	stripRequest(request.Header)
	as := s.w.as
	if as == nil {
		if as, err = p.credentialOf(s.w.match.Connector.Name, out); err != nil {
			return nil, refuse(problemInternal, "Nothing was sent: "+err.Error()+".")
		}
	}
	if as.name != "" {
		request.Header.Set(as.name, as.value)
		s.Secrets = append(s.Secrets, as.value)
	}
	addVia(request.Header, s.w.via)
	request.Total, request.TrustRefused, request.Interim = s.w.op.Timeout, s.w.match.Connector.TrustRefused, s.w.interim.asked()
	return request, nil
}

// outgoing is what goes out. Of a long body, it has the content only as a spool.
func (p *Proxy) outgoing(s *sending) (out *rules.Request, body upstream.Body, f *refusal) {
	err := p.contents.Load(s.w.req, s.w.body, func(req *rules.Request) {
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
		case dispatch.Same(changed.Body(), req.Body()):
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
	c, err := p.contents.Aside(changed)
	if err != nil {
		return nil, bodyRefusal(err, s.w.op.MaxBody)
	}
	s.changed = c
	return c, nil
}

// unsendable records that a claimed mutation could not be made into a request.
func (p *Proxy) unsendable(ctx context.Context, s *sending, f *refusal) *reply {
	if s.prepared() {
		f.detail = strings.ReplaceAll(f.detail, "othing was sent", "othing was sent but what prepares it")
	}
	d := s.Dispatch
	d.Ended = ledger.Stamp(clock.Take(p.config.Clock))
	d.Verdict, d.Class, d.Reason = ledger.VerdictNotSent, verdict.Logic, f.detail
	finished, recorded := p.finish(ctx, s, ledger.EndDispatch{Key: s.w.key, Dispatch: d})
	if !recorded {
		return p.notRecorded(s)
	}
	return &reply{refusal: f, mutation: finished.Mutation, decision: ledger.DecideDispatch}
}

// earlyCommit is how long an answer's body may take before its success is
// recorded ahead of it.
const earlyCommit = 50 * time.Millisecond

// whenLate arms the early record of a success; the returned function disarms it,
// or waits for it.
func (p *Proxy) whenLate(ctx context.Context, s *sending) (disarm func()) {
	if s.Answer.Status == 0 || s.Answer.AtHand || s.w.op.Stream {
		return func() {}
	}
	recorded := make(chan struct{})
	timer := time.AfterFunc(earlyCommit, func() {
		defer close(recorded)
		if !p.succeeded(s) {
			return
		}
		if _, err := p.ledger.MarkCommitted(ctx, s.w.key, s.Dispatch.ID, s.Answer.Status); err != nil {
			// Not fatal: the outcome is recorded as a whole below, or as unknown.
			p.config.Log.Warn().Err(err).Str("mutation", s.Mutation.ID).Msg("early commit not recorded")
			return
		}
		committedPoint.Pass()
	})
	return func() {
		if !timer.Stop() {
			<-recorded
		}
	}
}

// succeeded reports whether the head alone says success, and no body can say otherwise. The body is being read
// meanwhile.
func (p *Proxy) succeeded(s *sending) bool {
	head := &rules.Response{Status: s.Answer.Status, Header: s.Answer.Header}
	opinion := verdict.Opinion{Kind: verdict.OpinionUncertain}
	if p.contents.Load(s.w.req, s.w.body, func(req *rules.Request) {
		if !s.w.op.BodyDecides(req, s.w.derived.Account, s.rule, head) {
			opinion = s.w.op.Judge(req, s.w.derived.Account, s.rule, head)
		}
	}) != nil {
		return false
	}
	return upstream.Judge(s.Answer.Evidence(), upstream.FactsOf(s.Method, s.Answer, p.config.Clock.Now()), opinion).Kind.Success()
}
