package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// conclude records the outcome of a dispatch and makes its answer. The script is
// told of nothing that isn't durable.
func (p *Proxy) conclude(ctx context.Context, s *sending) *settled {
	finish := p.outcome(ctx, s)
	endWait := func() {}
	if finish.Pending {
		endWait = p.inline.begin(s.w.key)
		// Whatever way this ends, those who wait must not wait for ever.
		defer func() { endWait() }()
	}
	finished, recorded := p.finish(ctx, s, finish)
	if !recorded {
		endWait()
		return p.notRecorded(s)
	}
	recordedPoint.Pass()
	s.mutation = finished.Mutation
	if finished.Mutation.State == ledger.InFlight {
		s.owed = owesParking
		return p.tryInline(ctx, s)
	}
	endWait()
	if finished.Run != nil && finished.Run.State.Ended() {
		p.cutStopped()
	}
	return p.outcomeAnswer(s)
}

// outcome is what to record of a judged dispatch.
func (p *Proxy) outcome(ctx context.Context, s *sending) ledger.Finish {
	var result *ledger.Result
	var body []byte
	if s.verdict.Kind == upstream.Applied {
		var err error
		if result, body, err = p.keepAnswer(ctx, s); err != nil {
			// It happened; only its answer is lost.
			p.config.Log.Error().Err(err).Str("mutation", s.mutation.ID).Msg("answer not stored")
			if s.dispatch.Verdict == ledger.VerdictAccepted {
				s.unfollowed()
			} else {
				s.verdict.Kind, s.dispatch.Verdict = upstream.Committed, ledger.VerdictCommitted
			}
		}
	}
	f := ledger.Finish{
		Key: s.w.key, Dispatch: s.dispatch, Result: result, Body: body,
		TooLarge:     s.tooLarge && s.verdict.Kind == upstream.TooLarge,
		PassedOn:     s.passedOn(),
		Unauthorized: s.answer.Status == http.StatusUnauthorized,
	}
	if s.verdict.RetryAfter > 0 {
		f.RetryAfter = p.config.Clock.Now().Add(s.verdict.RetryAfter)
	}
	if f.Dispatch.Verdict == ledger.VerdictUncertain || f.Dispatch.Verdict == ledger.VerdictCommitted {
		f.Pending = s.w.op.Reconciles()
		f.NextTryAt = p.config.Inliner.NextTry(s.mutation)
	}
	if f.Dispatch.Verdict == ledger.VerdictAccepted {
		f.NextTryAt = p.config.Clock.Now().Add(s.w.op.Watch.Every)
	}
	return f
}

// keepAnswer is the answer as a replay gives it, with its body if that is stored
// with the record; a longer one is written here. What is secret in it is masked, and what the
// API says of the credential that was sent.
func (p *Proxy) keepAnswer(ctx context.Context, s *sending) (result *ledger.Result, body []byte, err error) {
	if s.lost != nil {
		return nil, nil, fmt.Errorf("store the answer: %w", s.lost)
	}
	head := &rules.Response{Status: s.answer.Status, Header: s.wired.Header(s.wire), Trailer: s.wired.Header(s.trailer), Complete: true}
	if !s.w.op.SecretAnswer() && len(s.wired) == 0 {
		return p.keepContent(ctx, head, s.body)
	}
	asItCame := false
	held := p.holding(s.body, func(whole []byte) {
		head.Body = whole
		stored := s.w.op.RedactResponse(head)
		kept := s.wired.Bytes(stored.Body)
		if asItCame = same(kept, whole); asItCame {
			return
		}
		stored.Header, stored.Trailer = maps.Clone(stored.Header), maps.Clone(stored.Trailer)
		delete(stored.Header, "Content-Length")
		upstream.Undigested(stored.Header)
		upstream.Undigested(stored.Trailer)
		result, body, err = p.keepContent(ctx, stored, inMemory(kept))
	})
	if held == nil && asItCame {
		head.Body = nil
		return p.keepContent(ctx, s.w.op.RedactResponse(head), s.body)
	}
	return result, body, errors.Join(held, err)
}

func (p *Proxy) keepContent(ctx context.Context, head *rules.Response, c *content) (*ledger.Result, []byte, error) {
	result := &ledger.Result{Status: head.Status, Header: ledger.Header(head.Header), Trailer: ledger.Header(head.Trailer), Source: "answer"}
	if b, short := c.short(); short && len(b) <= ledger.InlineBody {
		return result, b, nil // The ledger names it.
	}
	var err error
	if b, short := c.short(); short {
		result.Body, err = p.ledger.WriteBody(ctx, bytes.NewReader(b))
	} else {
		result.Body, err = c.spool.Keep(ctx)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store the answer: %w", err)
	}
	return result, nil, nil
}

// outcomeAnswer is what the script gets of its own dispatch, by the state that
// was recorded.
func (p *Proxy) outcomeAnswer(s *sending) *settled {
	out := &settled{mutation: s.mutation, decision: ledger.DecideDispatch, shared: true}
	switch {
	case s.mutation.Watching:
		p.carry(s, out)
		p.config.Inliner.Kick()
	case s.mutation.State == ledger.Applied && s.verdict.Kind.Success() && s.verdict.Kind != upstream.Committed,
		s.mutation.State == ledger.Failed && s.dispatch.Verdict == ledger.VerdictFailed && s.dispatch.Head &&
			s.lost == nil && (s.dispatch.BodyComplete || s.tooLarge):
		p.carry(s, out)
	case s.mutation.State == ledger.Failed && s.dispatch.Head:
		out.refusal = failedWithoutAnswer(s)
	case s.mutation.State == ledger.Failed:
		out.refusal = notSent(s)
	case s.mutation.State == ledger.Applied && s.w.op.StandsInForResult():
		p.standIn(out, s.w)
	case s.mutation.State == ledger.Applied:
		out.refusal = refuse(problemNoResult, fmt.Sprintf(
			"It happened (status %d), but the answer was lost and can't be asked for. Don't send it again; keep-proxy resolve %s can supply the result.",
			s.answer.Status, s.mutation.ID))
	default:
		p.unknownAnswer(s, out)
	}
	if s.mutation.State == ledger.Failed && !s.passedOn() {
		out.failure = &failure{class: s.dispatch.Class, reason: s.dispatch.Reason, unauthorized: s.answer.Status == http.StatusUnauthorized}
	}
	return out
}

// passedOn reports a redirect that the script may follow itself.
func (s *sending) passedOn() bool {
	return s.answer.Status == http.StatusTemporaryRedirect || s.answer.Status == http.StatusPermanentRedirect
}

// carry makes the upstream's own answer the script's.
func (p *Proxy) carry(s *sending, out *settled) {
	out.status, out.header, out.trailer, out.body = s.answer.Status, s.wire, s.trailer, s.body
	if s.tooLarge {
		s.streaming, out.behind = true, s.answer.Trailers
		out.rest, out.shared = &lasting{drained{s.answer}, p, s.changed}, false
	}
}

// notAllowed says why a destination may not be reached.
func notAllowed(host, why string) *refusal {
	return refuse(problemEgress, "Nothing was sent to "+host+", which may not be reached: "+why+".")
}

func notSent(s *sending) *refusal {
	if s.answer.Evidence().ErrorClass == upstream.ErrorEgress {
		return notAllowed(s.w.req.Authority(), s.dispatch.Error)
	}
	return refuse(problemNotSent, "Nothing was sent to "+s.w.req.Authority()+" ("+s.dispatch.Reason+": "+s.dispatch.Error+"), so it is safe to try again.")
}

// failedWithoutAnswer says that it failed although the upstream's own words were cut.
func failedWithoutAnswer(s *sending) *refusal {
	f := refuse(problemNotSent, fmt.Sprintf("It did not take effect: %s answered with status %d (%s), but the rest of the answer was lost.",
		s.w.req.Authority(), s.dispatch.Status, s.dispatch.Reason))
	f.title = "It did not take effect"
	f.class = s.dispatch.Class
	f.retryAfter = s.verdict.RetryAfter
	return f
}

// didNotHappen says what the inline try found out: with bounds a settle can be over by then,
// so that an absence is believed at once. Nothing is unknown, and nothing stops. Where it is sent
// again by itself (on_absent: redispatch) the script is told, as it may take effect without it.
func (p *Proxy) didNotHappen(s *sending, out *settled) {
	detail := "It did not take effect: the answer of " + s.w.req.Authority() + " was lost (" + s.dispatch.Reason +
		"), and asking showed that it is not there"
	if s.mutation.Queued() {
		detail += ". keep-proxy sends it again by itself; ask for it again to get what comes of it."
	} else {
		detail += ", so it is safe to try again."
	}
	f := refuse(problemNotSent, detail)
	f.title, f.class = "It did not take effect", s.mutation.Class
	out.refusal = f
	out.failure = &failure{class: s.mutation.Class, reason: s.mutation.Reason}
	p.cutStopped() // Its run may have had no try left.
	p.config.Inliner.Kick()
}

// unknownAnswer refuses because the outcome is unknown, and stops what depends
// on it.
func (p *Proxy) unknownAnswer(s *sending, out *settled) {
	m := s.mutation
	over, again := s.stopWords()
	detail := "Whether " + quoted(m.Target) + " took effect is unknown (" + s.dispatch.Reason + "). Don't send it again: " + over
	if m.State == ledger.NeedsReconcile {
		detail += ", and keep-proxy goes on asking the API what happened; " + again + " later."
	} else {
		detail += ", and a person must decide: keep-proxy resolve " + m.ID + "."
	}
	out.refusal = refuse(problemUnknownOutcome, detail)
	out.stops = true
	p.cutStopped()
	p.config.Inliner.Kick()
}

// stopWords say what an unknown outcome ends for who asked, and how the work goes on: an
// unmanaged scope has no run.
func (s *sending) stopWords() (over, again string) {
	if s.w.claim.Run == "" {
		return "what depends on it is refused", "ask again"
	}
	return "the run is over", "start the run again"
}

// tryInline asks once what happened, while the record is still in flight, and
// parks it if that is still unknown.
func (p *Proxy) tryInline(ctx context.Context, s *sending) *settled {
	bounded, cancel := context.WithTimeout(ctx, p.config.Inline)
	found, err := p.config.Inliner.Inline(bounded, s.mutation)
	cancel()
	if err != nil {
		p.config.Log.Warn().Err(err).Str("mutation", s.mutation.ID).Msg("inline try")
	}
	if found == nil || found.State == ledger.InFlight {
		parked, ok := p.park(ctx, s)
		if !ok {
			return p.notRecorded(s)
		}
		found = parked
	}
	s.mutation, s.owed = found, owesNothing
	out := &settled{mutation: found, decision: ledger.DecideDispatch, shared: true}
	switch {
	case found.State == ledger.Failed:
		p.didNotHappen(s, out)
		return out
	case found.State != ledger.Applied && !found.Watching:
		p.unknownAnswer(s, out)
		return out
	}
	if found.Result == nil && s.w.op.StandsInForResult() {
		return p.standIn(out, s.w)
	}
	replayed := p.replay(ctx, ledger.Claimed{Mutation: found, Decision: ledger.DecideDispatch})
	replayed.replayed = false
	return replayed
}

// park leaves an unknown outcome to the runner or to a person.
func (p *Proxy) park(ctx context.Context, s *sending) (*ledger.Mutation, bool) {
	parked, ok := p.recordNow(ctx, s, p.parking(s))
	return parked.Mutation, ok
}

// parking is the command that parks s.
func (p *Proxy) parking(s *sending) command {
	return func(ctx context.Context) (ledger.Finished, error) {
		return p.ledger.Park(ctx, s.w.key, p.currentDispatch(ctx, s), p.config.Inliner.NextTry(s.mutation), s.dispatch.Reason)
	}
}

// currentDispatch is the newest dispatch of the record: an inline resend may have
// added one.
func (p *Proxy) currentDispatch(ctx context.Context, s *sending) string {
	id := s.dispatch.ID
	_ = p.ledger.View(ctx, func(v ledger.View) error {
		m, err := v.Mutation(s.w.key)
		if err == nil && m.Current() != nil {
			id = m.Current().ID
		}
		return err
	})
	return id
}

// lostFinish records a dispatch whose outcome the proxy itself has lost. What it
// knows of it is kept: that it succeeded.
func lostFinish(s *sending, now ledger.Stamp) ledger.Finish {
	d := s.dispatch
	if d.Ended.BootID == "" {
		d.Ended = now
	}
	d.Verdict, d.Class, d.Reason = ledger.VerdictUncertain, ledger.ClassIndeterminate, "the proxy lost the outcome before it was recorded"
	if s.verdict.Kind.Success() && s.dispatch.Verdict != ledger.VerdictAccepted {
		d.Verdict, d.Class, d.Reason = ledger.VerdictCommitted, "", "the proxy lost the answer before it was recorded"
	}
	return ledger.Finish{Key: s.w.key, Dispatch: d}
}

// drained gives the rest of an answer and then ends the dispatch.
type drained struct{ answer *upstream.Answer }

// Read implements io.Reader.
func (d *drained) Read(b []byte) (int, error) { return d.answer.Body.Read(b) }

// Close implements io.Closer.
func (d *drained) Close() error {
	d.answer.Close()
	return nil
}

// lasting is drained for an answer that may come while its request still goes out: what is sent is
// given up behind it.
type lasting struct {
	drained
	proxy *Proxy
	sent  *content
}

// Close implements io.Closer.
func (l *lasting) Close() error {
	err := l.drained.Close()
	l.sent.close(l.proxy)
	return err
}
