package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"keep-proxy/dispatch"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fault"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// Crash points of a sending in steps.
var (
	stepAnsweredPoint = fault.New("proxy.step_answered")
	stepKeptPoint     = fault.New("proxy.step_kept")
)

// prepareSending makes the preparing steps of a sending and has the ledger keep what
// they gave. Only then, and with nil, may the commit be sent. Whatever goes wrong before
// is a definite failure: nothing that takes effect was sent.
func (p *Proxy) prepareSending(ctx context.Context, s *sending) *reply {
	steps := s.w.op.Send
	kept := map[string]string{}
	for i := range steps.Prepares() {
		s.step = steps.StepName(i)
		given, f, problem := p.prepareStep(ctx, s, i)
		if f != nil {
			return p.unsendable(ctx, s, f)
		}
		if problem != nil {
			return p.unprepared(ctx, s, problem)
		}
		stepAnsweredPoint.Pass()
		maps.Copy(kept, given)
		s.rule.Kept = kept
		if err := p.stepTurn(ctx, s); err != nil {
			// The step itself was answered; what failed is our own waiting.
			s.Answer = nil
			return p.unprepared(ctx, s, err)
		}
	}
	m, err := p.ledger.Prepared(ctx, s.w.key, s.Dispatch.ID, kept)
	if err != nil {
		s.Answer = nil
		return p.unprepared(ctx, s, fmt.Errorf("what it gave can't be kept: %w", err))
	}
	stepKeptPoint.Pass()
	s.Mutation, s.rule, s.Dispatch = m, dispatch.RuleMutation(m), *m.Current()
	s.Content.Close()
	s.step, s.Answer, s.Content, s.Header, s.Trailer = "", nil, nil, nil, nil
	return nil
}

// prepareStep sends one preparing step and takes what its answer gives. A refusal says that this
// request allows no such step. An error says that the step's answer is none to go on from.
func (p *Proxy) prepareStep(ctx context.Context, s *sending, i int) (given map[string]string, f *refusal, problem error) {
	var out *rules.Request
	var body upstream.Body
	err := p.contents.Load(s.w.req, s.w.body, func(req *rules.Request) { out, body, f = stepBody(s.w.op.Send.Prepare(i, s.env(req))) })
	if err != nil {
		return nil, ledgerRefusal(err), nil
	}
	if f != nil {
		return nil, f, nil
	}
	request, f := p.wired(s, out, body)
	if f != nil {
		return nil, f, nil
	}
	request.Interim = nil
	s.Answer = p.config.Sender.Send(ctx, request)
	defer s.Answer.Close()
	s.Content.Close()
	s.Content = nil
	if s.Answer.Status == 0 {
		return nil, nil, errors.New("it got no answer: " + s.Answer.Evidence().Error)
	}
	p.dispatcher.Read(ctx, &s.Sending)
	if s.Lost != nil || s.TooLarge {
		return nil, nil, errors.New("its answer is longer than is kept, or can't be read")
	}
	p.dispatcher.Decode(&s.Sending)
	whole := s.Answer.Evidence().BodyComplete
	err = p.contents.Hold(s.w.body, s.Content, func(request, answer []byte) {
		given, problem = s.w.op.Send.Keep(i, s.env(dispatch.WithBody(s.w.req, s.w.body, request)), &rules.Response{
			Status: s.Answer.Status, Header: s.Answer.Header, Body: answer, Complete: whole,
		})
	})
	for name, value := range given {
		if s.Secrets.In(value) {
			// Masked, it would be another value in the commit.
			problem = errors.Join(problem, fmt.Errorf("what it gave as %s holds a credential, which is never stored; keep another value", name))
		}
	}
	return given, nil, errors.Join(problem, err)
}

// stepTurn waits until the connector's rate admits the next step; the first one has the
// turn of the claim.
func (p *Proxy) stepTurn(ctx context.Context, s *sending) error {
	if !s.w.match.Connector.Rate.Bounds() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.w.op.Timeout)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	if err := p.config.Turns.Turn(ctx, s.w.match.Connector); err != nil {
		return fmt.Errorf("the connector's rate did not admit the next step: %w", err)
	}
	return nil
}

// unprepared records that the commit was never sent, and why. If the API itself refused the step,
// the script gets its answer, for it is about the same.
func (p *Proxy) unprepared(ctx context.Context, s *sending, problem error) *reply {
	s.Verdict = p.judgeStep(s)
	own := s.Verdict.Kind == upstream.Failed && s.Answer != nil && s.Answer.Status >= http.StatusBadRequest &&
		s.Content != nil && s.Answer.Evidence().BodyComplete
	reason := s.Secrets.Text("the step " + s.step + " failed: " + problem.Error())
	if s.Verdict.Kind != upstream.Failed {
		s.Verdict.Kind, s.Verdict.Class = upstream.Failed, stepClass(s)
	}
	s.Verdict.Reason = reason
	if s.Answer != nil {
		s.Dispatch = dispatch.Ended(s.Dispatch, s.Answer.Evidence(), s.Verdict)
		s.Dispatch.Error = s.Secrets.Text(s.Dispatch.Error)
	}
	d := &s.Dispatch
	d.Class, d.Reason = s.Verdict.Class, reason
	if !own {
		d.Verdict = ledger.VerdictNotSent
	}
	if d.Ended.BootID == "" {
		d.Ended = ledger.Stamp(clock.Take(p.config.Clock))
	}
	unauthorized := own && s.Answer.Status == http.StatusUnauthorized
	finish := ledger.EndDispatch{Key: s.w.key, Dispatch: *d, Unauthorized: unauthorized}
	if s.Verdict.RetryAfter > 0 {
		finish.RetryAfter = p.config.Clock.Now().Add(s.Verdict.RetryAfter)
	}
	finished, recorded := p.finish(ctx, s, finish)
	if !recorded {
		return p.notRecorded(s)
	}
	recordedPoint.Pass()
	s.Mutation = finished.Mutation
	if finished.Run != nil && finished.Run.State.Ended() {
		p.cutStopped()
	}
	out := &reply{mutation: s.Mutation, decision: ledger.DecideDispatch, shared: true}
	switch {
	case s.Mutation.State != ledger.Failed:
		p.unknownAnswer(s, out)
		return out
	case own:
		out.status, out.header, out.body = s.Answer.Status, s.Header, s.Content
	default:
		out.refusal = refuse(problemNotSent, "It was not sent, so it is safe to try again: "+reason+".")
		out.refusal.title = "It was not sent"
		out.refusal.class, out.refusal.retryAfter = d.Class, s.Verdict.RetryAfter
	}
	out.failure = failureOf(s.Mutation, unauthorized)
	return out
}

// judgeStep is the default table's word on the answer to a step.
func (p *Proxy) judgeStep(s *sending) upstream.Verdict {
	if s.Answer == nil {
		return upstream.Verdict{}
	}
	return upstream.Judge(s.Answer.Evidence(), upstream.FactsOf(http.MethodPost, s.Answer, p.config.Clock.Now()), verdict.Opinion{})
}

// stepClass is the class of a step that failed without a definite status. What may pass by itself
// is transient; an answer that the rule didn't expect is not.
func stepClass(s *sending) verdict.Class {
	if s.Answer == nil || s.Answer.Status >= http.StatusBadRequest || !s.Answer.Evidence().BodyComplete {
		return verdict.Transient
	}
	return verdict.Precondition
}

// stepBody is a step's request with its content.
func stepBody(req *rules.Request, problem *rules.Refusal) (*rules.Request, upstream.Body, *refusal) {
	switch {
	case problem != nil:
		return nil, nil, fromRules(problem)
	case !req.HasBody():
		return req, nil, nil
	}
	return req, upstream.Bytes(req.Body()), nil
}

// env is what the rule may read of a sending.
func (s *sending) env(req *rules.Request) rules.Env {
	return rules.Env{Request: req, Mutation: s.rule, Account: s.w.derived.Account}
}

// prepared reports whether a preparing step was sent.
func (s *sending) prepared() bool { return s.w.op.Send != nil && (s.Answer != nil || s.step == "") }
