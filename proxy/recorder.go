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

// goOnRecording runs a command until it has succeeded, was refused for a reason
// that won't change, or the process ends; then recovery finds the record in
// flight. The run is stopped here at once, as the ledger can't say so.
func (p *Proxy) goOnRecording(s *sending, record command) {
	s.owed = owesNothing
	if s.mutation.Run != "" {
		p.stopped.Store(s.w.claim.Run, s.mutation.ID)
	}
	p.config.Metrics.Unrecorded(1)
	p.background.Go(func() {
		defer p.config.Metrics.Unrecorded(-1)
		wait := recordFirstWait
		for {
			_, err := record(p.ctx)
			if err == nil {
				p.cutStopped()
				p.config.Inliner.Kick()
				return
			}
			if permanent(err) {
				p.config.Log.Error().Err(err).Str("mutation", s.mutation.ID).Msg("outcome refused by the ledger")
				return
			}
			select {
			case <-p.ctx.Done():
				return
			case <-time.After(wait):
			}
			wait = min(wait*2, recordLastWait)
		}
	})
}

// permanent reports whether trying again can't help: the record has moved on.
func permanent(err error) bool {
	return errors.Is(err, ledger.ErrNotAllowed) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrVersion)
}

// unrecorded answers a request whose outcome could not be made durable: it is
// unknown, whatever the upstream said.
func (p *Proxy) unrecorded(s *sending) *settled {
	p.cutStopped()
	return &settled{
		refusal: refuse(problemUnknownOutcome, "The outcome of "+quoted(s.mutation.Target)+" could not be recorded, so it counts as unknown. "+
			"Don't send it again: the run is over, and keep-proxy goes on trying to record it."),
		mutation: s.mutation, decision: ledger.DecideDispatch, shared: true, stops: true,
	}
}
