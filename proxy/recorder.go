package proxy

import (
	"context"
	"errors"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
)

// Backoff of outcomes that couldn't be recorded at once.
const (
	recordFirstWait = 50 * time.Millisecond
	recordLastWait  = 5 * time.Second
)

// finish records an outcome. If that fails because the ledger can't commit, the
// recorder goes on trying and finish reports false.
func (p *Proxy) finish(ctx context.Context, s *sending, f ledger.Finish) (ledger.Finished, bool) {
	return p.recordNow(ctx, s, func(ctx context.Context) (ledger.Finished, error) { return p.ledger.Finish(ctx, f) })
}

// command records what is known of a sending.
type command func(context.Context) (ledger.Finished, error)

// recordNow runs a command that records what is known of s, and leaves it to the
// recorder if the ledger fails.
func (p *Proxy) recordNow(ctx context.Context, s *sending, record command) (ledger.Finished, bool) {
	finished, err := record(ctx)
	if err == nil {
		s.owed = owesNothing
		return finished, true
	}
	p.config.Log.Error().Err(err).Str("mutation", s.mutation.ID).Msg("outcome not recorded; trying on")
	p.goOnRecording(s, record)
	return ledger.Finished{}, false
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
		p.goOnRecording(s, func(ctx context.Context) (ledger.Finished, error) { return p.ledger.Finish(ctx, lost) })
	}
}

// goOnRecording runs a command until the record is out of flight, or the process
// ends; then recovery finds it in flight. What depends on it is stopped here at
// once, as the ledger can't say so. The run that was told of an unknown outcome
// stays over, whatever the outcome turns out to be.
func (p *Proxy) goOnRecording(s *sending, record command) {
	s.owed = owesNothing
	body := s.body.taken() // A record that is to name it must find it.
	run := s.w.claim.Run
	over := notRecorded(s.mutation.ID)
	p.unrecorded.Add(s.mutation, run, over)
	p.config.Metrics.Unrecorded(1)
	// After Shutdown nobody tries any more, and recovery finds the record in flight.
	p.background.Go(func() {
		defer p.config.Metrics.Unrecorded(-1)
		if !p.again(func() bool { return p.recordOnce(s, &record) }) {
			return
		}
		body.close(p)
		p.unrecorded.Recorded(s.w.key)
		p.config.Inliner.Kick()
		if run != "" {
			p.goOnEnding(run, over)
		}
	})
}

// endLater ends a run as soon as the ledger can say so. It is over here until then.
func (p *Proxy) endLater(run string, over ledger.Over) {
	p.unrecorded.End(run, over)
	p.background.Go(func() { p.goOnEnding(run, over) })
}

func (p *Proxy) goOnEnding(run string, over ledger.Over) {
	if p.again(func() bool { return p.endTold(run, over) }) {
		p.unrecorded.Ended(run)
	}
}

// again tries until done reports true, with growing waits. It reports false if the
// process ends before that.
func (p *Proxy) again(done func() bool) bool {
	for wait := recordFirstWait; !done(); wait = min(wait*2, recordLastWait) {
		select {
		case <-p.ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
	return true
}

// recordOnce tries to record an outcome and reports whether the record is out of
// flight. One that stays in flight, since an inline try was to follow, is to be
// parked then.
func (p *Proxy) recordOnce(s *sending, record *command) bool {
	_, err := (*record)(p.ctx)
	switch {
	case err == nil:
	case permanent(err):
		p.config.Log.Error().Err(err).Str("mutation", s.mutation.ID).Msg("outcome refused by the ledger")
	default:
		return false
	}
	if !p.inFlight(s.w.key) {
		return true
	}
	*record = p.parking(s)
	return false
}

// inFlight reports whether a record is in flight, or can't be read.
func (p *Proxy) inFlight(k ledger.Key) bool {
	state := ledger.InFlight
	_ = p.ledger.View(p.ctx, func(v ledger.View) error {
		m, err := v.Mutation(k)
		if err == nil {
			state = m.State
		}
		return err
	})
	return state == ledger.InFlight
}

// endTold ends a run in the ledger.
func (p *Proxy) endTold(run string, over ledger.Over) bool {
	_, err := p.ledger.RefuseRun(p.ctx, run, over.Why, over.Cause)
	return err == nil || errors.Is(err, ledger.ErrNotFound)
}

// permanent reports whether trying again can't help: the record has moved on.
func permanent(err error) bool {
	return errors.Is(err, ledger.ErrNotAllowed) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrVersion)
}

// notRecorded answers a request whose outcome could not be made durable: it is
// unknown, whatever the upstream said.
func (p *Proxy) notRecorded(s *sending) *settled {
	p.cutStopped()
	over, _ := s.stopWords()
	return &settled{
		refusal: refuse(problemUnknownOutcome, "The outcome of "+quoted(s.mutation.Target)+" could not be recorded, so it counts as unknown. "+
			"Don't send it again: "+over+", and keep-proxy goes on trying to record it."),
		mutation: s.mutation, decision: ledger.DecideDispatch, shared: true, stops: true,
	}
}
