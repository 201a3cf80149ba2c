package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"keep-proxy/dispatch"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// conclude records the outcome of a dispatch and makes its answer. The script is
// told of nothing that isn't durable.
func (p *Proxy) conclude(ctx context.Context, s *sending) *reply {
	finish := p.outcome(ctx, s)
	endWait := func() {}
	if finish.Inline {
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
	s.Mutation = finished.Mutation
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
func (p *Proxy) outcome(ctx context.Context, s *sending) ledger.EndDispatch {
	f := p.dispatcher.End(ctx, &s.Sending)
	f.PassedOn, f.MovedTo, f.Unauthorized = s.passedOn(), p.location(s), s.Answer.Status == http.StatusUnauthorized
	switch f.Dispatch.Verdict {
	case ledger.VerdictUncertain, ledger.VerdictCommitted:
		f.Inline, f.NextTryAt = s.w.op.Reconciles(), p.config.Inliner.NextTry(s.Mutation)
	case ledger.VerdictAccepted:
		f.NextTryAt = p.config.Clock.Now().Add(s.w.op.Watch.Every)
	default: // Nothing is asked about the others.
	}
	return f
}

// outcomeAnswer is what the script gets of its own dispatch, by the state that
// was recorded.
func (p *Proxy) outcomeAnswer(s *sending) *reply {
	out := &reply{mutation: s.Mutation, decision: ledger.DecideDispatch, shared: true}
	switch {
	case s.Mutation.Watching:
		p.carry(s, out)
		p.config.Inliner.Kick()
	case s.Mutation.State == ledger.Applied && s.Verdict.Kind.Success() && s.Verdict.Kind != upstream.Committed,
		s.Mutation.State == ledger.Failed && s.Dispatch.Verdict == ledger.VerdictFailed && s.Dispatch.Head &&
			s.Lost == nil && (s.Dispatch.BodyComplete || s.TooLarge):
		p.carry(s, out)
	case s.Mutation.State == ledger.Failed && s.Dispatch.Head:
		out.refusal = failedWithoutAnswer(s)
	case s.Mutation.State == ledger.Failed:
		out.refusal = notSent(s)
	case s.Mutation.State == ledger.Applied && s.w.op.StandsInForResult():
		p.standIn(out, s.w)
	case s.Mutation.State == ledger.Applied:
		out.refusal = refuse(problemNoResult, fmt.Sprintf(
			"It happened (status %d), but the answer was lost and can't be asked for. Don't send it again; keep-proxy resolve %s can supply the result.",
			s.Answer.Status, s.Mutation.ID))
	default:
		p.unknownAnswer(s, out)
	}
	if s.Mutation.State == ledger.Failed && !s.passedOn() {
		out.failure = failureOf(s.Mutation, s.Answer.Status == http.StatusUnauthorized)
	}
	return out
}

// passedOn reports a redirect that the script may follow itself, and an answer that asks it for more.
func (s *sending) passedOn() bool {
	return s.Verdict.Continues || s.Answer.Status == http.StatusTemporaryRedirect || s.Answer.Status == http.StatusPermanentRedirect
}

// carry makes the upstream's own answer the script's.
func (p *Proxy) carry(s *sending, out *reply) {
	out.status, out.header, out.trailer, out.body = s.Answer.Status, s.Header, s.Trailer, s.Content
	if s.TooLarge {
		s.streaming, out.behind = true, s.Answer.Trailers
		out.shared = false
		out.rest = &content{Reader: s.Answer.Body, close: func() {
			// The answer may come while its request still goes out.
			s.Answer.Close()
			s.changed.Close()
		}}
	}
}

// notAllowed says why a destination may not be reached.
func notAllowed(host, why string) *refusal {
	return refuse(problemEgress, "Nothing was sent to "+host+", which may not be reached: "+why+".")
}

func notSent(s *sending) *refusal {
	switch upstream.ErrorClass(s.Dispatch.ErrorClass) {
	case upstream.ErrorEgress:
		return notAllowed(s.w.req.Authority(), s.Dispatch.Error)
	case upstream.ErrorRefused:
		f := refuse(problemNotSent, "It did not take effect: "+s.w.req.Authority()+" refused it before it processed it, so it is safe to try again.")
		f.title = "It did not take effect"
		return f
	default:
		why := strings.TrimPrefix(s.Dispatch.Reason, upstream.ReasonNotSent+": ")
		f := refuse(problemNotSent, "Nothing was sent to "+s.w.req.Authority()+" ("+why+"), so it is safe to try again.")
		f.class = s.Dispatch.Class
		return f
	}
}

// failedWithoutAnswer says that it failed although the upstream's own words were cut.
func failedWithoutAnswer(s *sending) *refusal {
	f := refuse(problemNotSent, fmt.Sprintf("It did not take effect: %s answered with status %d (%s), but the rest of the answer was lost.",
		s.w.req.Authority(), s.Dispatch.Status, s.Dispatch.Reason))
	f.title = "It did not take effect"
	f.class = s.Dispatch.Class
	f.retryAfter = s.Verdict.RetryAfter
	return f
}

// didNotHappen says what the inline try found out. Where the rule has bounds, settle can be over by
// then, and an absence counts at once. Nothing is unknown, and nothing stops. Where it is sent
// again by itself (on_absent: redispatch) the script is told, as it may take effect without it.
func (p *Proxy) didNotHappen(s *sending, out *reply) {
	detail := "It did not take effect: the answer of " + s.w.req.Authority() + " was lost (" + s.Dispatch.Reason +
		"), and asking showed that it is not there"
	if s.Mutation.Queued() {
		detail += ". keep-proxy sends it again by itself; ask for it again to get what comes of it."
	} else {
		detail += ", so it is safe to try again."
	}
	f := refuse(problemNotSent, detail)
	f.title, f.class = "It did not take effect", s.Mutation.Class
	out.refusal = f
	out.failure = failureOf(s.Mutation, false)
	p.cutStopped() // Its run may have had no try left.
	p.config.Inliner.Kick()
}

// unknownAnswer refuses because the outcome is unknown, and stops what depends
// on it.
func (p *Proxy) unknownAnswer(s *sending, out *reply) {
	m := s.Mutation
	over, again := s.stopWords()
	detail := "Whether " + quoted(m.Target) + " took effect is unknown (" + s.Dispatch.Reason + "). Don't send it again: " + over
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

// stopWords say what an unknown outcome ends for the caller, and how the work goes on. An unmanaged
// scope has no run.
func (s *sending) stopWords() (over, again string) {
	if s.w.claim.Run == "" {
		return "what depends on it is refused", "ask again"
	}
	return "the run is over", "start the run again"
}

// tryInline asks once what happened, while the record is still in flight, and
// parks it if that is still unknown.
func (p *Proxy) tryInline(ctx context.Context, s *sending) *reply {
	bounded, cancel := context.WithTimeout(ctx, p.config.Inline)
	found, err := p.config.Inliner.Inline(bounded, s.Mutation)
	cancel()
	if err != nil {
		p.config.Log.Warn().Err(err).Str("mutation", s.Mutation.ID).Msg("inline try")
	}
	if found != nil {
		s.Mutation = found
	}
	if found == nil || found.State == ledger.InFlight {
		parked, ok := p.recordNow(ctx, s, p.parking(s))
		if !ok {
			return p.notRecorded(s)
		}
		found = parked.Mutation
	}
	s.Mutation, s.owed = found, owesNothing
	out := &reply{mutation: found, decision: ledger.DecideDispatch, shared: true}
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

// parking is the command that parks s: it leaves an unknown outcome to the runner or to a person.
func (p *Proxy) parking(s *sending) dispatch.Command {
	return func(ctx context.Context) (ledger.Moved, error) {
		return p.ledger.Park(ctx, s.w.key, p.currentDispatch(ctx, s), p.config.Inliner.NextTry(s.Mutation), s.Dispatch.Reason)
	}
}

// currentDispatch is the newest dispatch of the record: an inline resend may have
// added one.
func (p *Proxy) currentDispatch(ctx context.Context, s *sending) string {
	id := s.Dispatch.ID
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
func lostFinish(s *sending, now ledger.Stamp) ledger.EndDispatch {
	d := s.Dispatch
	if d.Ended.BootID == "" {
		d.Ended = now
	}
	d.Verdict, d.Class, d.Reason = ledger.VerdictUncertain, verdict.Indeterminate, "the proxy lost the outcome before it was recorded"
	if s.Verdict.Kind.Success() && s.Dispatch.Verdict != ledger.VerdictAccepted {
		d.Verdict, d.Class, d.Reason = ledger.VerdictCommitted, "", "the proxy lost the answer before it was recorded"
	}
	return ledger.EndDispatch{Key: s.w.key, Dispatch: d}
}

// finish records an outcome. If that fails because the ledger can't commit, the
// recorder goes on trying and finish reports false.
func (p *Proxy) finish(ctx context.Context, s *sending, f ledger.EndDispatch) (ledger.Moved, bool) {
	return p.recordNow(ctx, s, func(ctx context.Context) (ledger.Moved, error) { return p.ledger.EndDispatch(ctx, f) })
}

// recordNow runs a command that records what is known of s. It leaves the command to the recorder
// if the ledger fails.
func (p *Proxy) recordNow(ctx context.Context, s *sending, record dispatch.Command) (ledger.Moved, bool) {
	finished, err := record(ctx)
	if err == nil {
		s.owed = owesNothing
		return finished, true
	}
	p.config.Log.Error().Err(err).Str("mutation", s.Mutation.ID).Msg("outcome not recorded; trying on")
	p.goOnRecording(s, record)
	return ledger.Moved{}, false
}

// recordOwed leaves to the recorder what the handler didn't come to record, as
// after a panic.
func (p *Proxy) recordOwed(s *sending) {
	switch s.owed {
	case owesNothing:
	case owesParking:
		p.goOnRecording(s, p.parking(s))
	default:
		lost := lostFinish(s, ledger.Stamp(clock.Take(p.config.Clock)))
		p.goOnRecording(s, func(ctx context.Context) (ledger.Moved, error) { return p.ledger.EndDispatch(ctx, lost) })
	}
}

// goOnRecording leaves a command to the recorder. What depends on it is stopped here at once, since
// the ledger can't say so. The run that is told of an unknown outcome is over.
func (p *Proxy) goOnRecording(s *sending, record dispatch.Command) {
	s.owed = owesNothing
	run := s.w.claim.Run
	p.recorder.GoOn(&dispatch.Outcome{
		Mutation: s.Mutation, Record: record, Park: p.parking(s), Content: s.Content, Run: run,
		Taken: func() {
			p.config.Inliner.Kick()
			if run != "" {
				p.goOnEnding(run, dispatch.NotRecorded(s.Mutation.ID))
			}
		},
	})
}

// endLater ends a run as soon as the ledger can say so. It is over here until then.
func (p *Proxy) endLater(run string, over ledger.Over) {
	p.unrecorded.End(run, over)
	p.background.Go(func() { p.goOnEnding(run, over) })
}

func (p *Proxy) goOnEnding(run string, over ledger.Over) {
	if p.recorder.Again(func() bool { return p.endTold(run, over) }) {
		p.unrecorded.Ended(run)
	}
}

// endTold ends a run in the ledger.
func (p *Proxy) endTold(run string, over ledger.Over) bool {
	_, err := p.ledger.RefuseRun(p.ctx, run, over.Why, over.Cause)
	return err == nil || errors.Is(err, ledger.ErrNotFound)
}

// notRecorded answers a request whose outcome could not be made durable: it is
// unknown, whatever the upstream said.
func (p *Proxy) notRecorded(s *sending) *reply {
	p.cutStopped()
	over, _ := s.stopWords()
	return &reply{
		refusal: refuse(problemUnknownOutcome, "The outcome of "+quoted(s.Mutation.Target)+" could not be recorded, so it counts as unknown. "+
			"Don't send it again: "+over+", and keep-proxy goes on trying to record it."),
		mutation: s.Mutation, decision: ledger.DecideDispatch, shared: true, stops: true,
	}
}
