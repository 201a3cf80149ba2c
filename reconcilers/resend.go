package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fault"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// resend sends the stored request once more under the same vendor key. An API that remembers the
// key answers as before; else it acts now.
type resend struct{ *Reconciler }

func (s resend) try(ctx context.Context, t *try) (outcome, bool) {
	deadline := s.deadline(ctx, t)
	m := *t.mutation
	m.Policy = m.Policy.Heeding(cautionOf(t.operation))
	switch {
	case t.mutation.Committed:
		return t.pass("it is known to have happened, so that nothing is sent again")
	case t.mutation.ResendTries > 0 && t.undo == nil && !t.operation.NativeKey.Repeats():
		return t.pass("the API doesn't repeat its first answer, so that it is sent again only once")
	case len(t.missing) > 0:
		return t.pass("no credential is configured in place of %s", strings.Join(t.missing, ", "))
	}
	check := func() error {
		if !ledger.ResendOpen(&m, s.now(), deadline) {
			return errors.New("the API's window for the vendor key is nearly over")
		}
		return nil
	}
	if t.strategy.Natural {
		if out, open, usable := s.natural(ctx, t); !open {
			return out, usable
		}
		check = func() error { return s.stillNatural(ctx, t) }
	} else if !ledger.ResendOpen(&m, s.now(), deadline) {
		return t.pass("used up, or too late for the time that the API remembers the key")
	}
	if elapsed(t.mutation, s.now(), s.ledger.Process()) >= s.settings.MaxAge {
		// What can't be reached uses no resend up, and would be sent again for ever.
		return t.pass("it was tried for %v", s.settings.MaxAge)
	}
	request, err := s.request(t, deadline, check)
	if err != nil {
		return t.pass("the stored request can't be sent: %v", err)
	}
	if err := s.limits.wait(ctx, t.connector); err != nil {
		return s.observe(ctx, t, sighting{reason: "the try was over before the connector's rate admitted a request"}), true
	}
	id := s.newID()
	moved, d, err := s.ledger.Resend(context.WithoutCancel(ctx), ledger.Resend{
		Key: t.mutation.Key, Version: t.mutation.Version, DispatchID: id, Deadline: deadline,
		Ran: ran(t.mutation, s.now(), s.ledger.Process()), Caution: cautionOf(t.operation),
	})
	if errors.Is(err, ledger.ErrNotAllowed) {
		return t.pass("%v", err)
	}
	if err != nil {
		return s.lost(outcome{err: err, reason: "the resend was not recorded"}), true
	}
	resendRecorded.Pass()
	return s.lost(s.sendRecorded(ctx, t, moved, request, *d, resendAnswered, func(f *ledger.EndDispatch) {
		f.NextTryAt = s.after(moved, t.at, sighting{notBefore: f.RetryAfter})
	})), true
}

// deadline is how long the sending may take: as the rule says, and within the
// inline try's time.
func (s resend) deadline(ctx context.Context, t *try) time.Duration {
	deadline := t.operation.Timeout
	if until, ok := ctx.Deadline(); ok && t.inline {
		deadline = min(deadline, time.Until(until))
	}
	return deadline
}

// request rebuilds what was sent, with the same vendor key and marker and the credentials of now.
// Immediately before byte one check is asked. For a resend it looks at the window again, with the
// record from before this resend was counted.
func (r *Reconciler) request(t *try, deadline time.Duration, check func() error) (*upstream.Request, error) {
	if t.operation.Send != nil {
		return nil, errors.New("it is sent in steps, which only a script's request begins")
	}
	judged := t.request
	if t.undo != nil {
		judged = t.outgoing
	}
	outgoing, refusal := t.operation.Outgoing(judged, t.known())
	if refusal != nil {
		return nil, refusal
	}
	var body upstream.Body
	if outgoing.HasBody() {
		body = upstream.Bytes(outgoing.Body())
	}
	request, err := dispatch.Request(outgoing, body, t.mutation.SentTo)
	if err != nil {
		return nil, err
	}
	request.Total, request.TrustRefused, request.Check = deadline, t.connector.TrustRefused, check
	return request, nil
}

// sendRecorded sends what was recorded, and records its end as after has it; whatever breaks, an
// uncertain one. The sending has its own time: stopping waits for it.
func (r *Reconciler) sendRecorded(
	ctx context.Context, t *try, moved *ledger.Mutation, request *upstream.Request, d ledger.Dispatch, answered *fault.Point, after func(*ledger.EndDispatch),
) outcome {
	ctx = context.WithoutCancel(ctx)
	s := &dispatch.Sending{
		Mutation: t.mutation, Dispatch: d, Operation: t.operation, Method: request.Method, Request: t.request, Secrets: t.secrets,
		Limit:   positive(t.mutation.Policy.ResultLimit, r.settings.MaxAnswer),
		Opinion: func(_ *rules.Request, answer *rules.Response) verdict.Opinion { return t.judge(answer) },
	}
	defer func() {
		s.Content.Close()
		if s.Answer != nil {
			s.Answer.Close()
		}
	}()
	var finish ledger.EndDispatch
	if broke := t.guarded(func() {
		r.dispatcher.Send(ctx, s, request)
		finish = r.dispatcher.End(ctx, s)
	}); broke != "" {
		s.Verdict = upstream.Verdict{Class: verdict.Indeterminate, Reason: broke}
		finish = ledger.EndDispatch{Key: moved.Key, Dispatch: dispatch.Ended(d, upstream.Evidence{Ended: r.stamp()}, s.Verdict)}
	}
	finish.Inline = t.inline
	if broke := t.guarded(func() {
		answered.Pass()
		after(&finish)
	}); broke != "" {
		s.Verdict.Reason = broke
	}
	out := outcome{seen: string(finish.Dispatch.Verdict), reason: s.Verdict.Reason}
	out.moved, out.err = r.record(ctx, moved, finish, s.Content)
	return out
}

// judge is what the rule says of an answer.
func (t *try) judge(answer *rules.Response) verdict.Opinion {
	if t.undo != nil {
		return t.undo.Judge(t.env(), answer)
	}
	opinion := t.operation.Judge(t.request, t.mutation.Account, t.known(), answer)
	if t.strategy.Kind == rules.StrategyResend {
		opinion = t.operation.NativeKey.Resent(opinion, answer.Status)
	}
	return opinion
}

func (r *Reconciler) stamp() clock.Stamp { return clock.Take(r.clock) }

// natural decides whether a request that sets a state may be sent again now. Settle of every
// earlier sending must be over: one that takes effect late would undo what comes next. No later
// mutation may have changed the same. If it isn't open, the try ends with the outcome. If it isn't usable
// either, the next strategy has its turn.
func (s resend) natural(ctx context.Context, t *try) (out outcome, open, usable bool) {
	m := *t.mutation
	m.Policy = m.Policy.Heeding(cautionOf(t.operation))
	left, begun := untilSettled(&m, s.now(), s.ledger.Process())
	if !ledger.NaturalOpen(&m, s.now(), s.ledger.Process()) {
		waits := (!begun || left > 0) && m.Policy.Natural && !m.ResendClosed
		if waits && !asksOtherwise(t.operation.Strategies) {
			out = s.observe(ctx, t, sighting{reason: "it is sent again once nothing that was sent before can take effect any more"})
			return out, false, true
		}
		out, usable = t.pass("used up, too late, or too early to be sent again")
		return out, false, usable
	}
	why, err := s.ledger.LaterOfTarget(ctx, t.mutation)
	switch {
	case err != nil:
		return s.observe(ctx, t, sighting{reason: "the ledger could not say what was changed since"}), false, true
	case why != "":
		out, usable = t.pass("%s", why)
		return out, false, usable
	}
	return outcome{}, true, true
}

// stillNatural is asked immediately before byte one. The record is the one from before this
// resend, as its own sending has no end yet.
func (s resend) stillNatural(ctx context.Context, t *try) error {
	if !ledger.NaturalOpen(t.mutation, s.now(), s.ledger.Process()) {
		return errors.New("it is too late to set the state again")
	}
	why, err := s.ledger.LaterOfTarget(ctx, t.mutation)
	if err != nil {
		return fmt.Errorf("the ledger could not say what was changed since: %w", err)
	}
	if why != "" {
		return errors.New(why)
	}
	return nil
}

// asksOtherwise reports whether there is a way to ask without sending.
func asksOtherwise(list []rules.Strategy) bool {
	return slices.ContainsFunc(list, func(s rules.Strategy) bool {
		return s.Kind == rules.StrategyProbe || s.Kind == rules.StrategyExec
	})
}

// record gives the end of a sending of m to the ledger. If the ledger doesn't take it, the
// recorder goes on trying until it does, or the Reconciler is closed. The record stays taken
// until then, so that nothing is sent meanwhile.
func (r *Reconciler) record(ctx context.Context, m *ledger.Mutation, f ledger.EndDispatch, answer *dispatch.Content) (ledger.Moved, error) {
	finished, err := r.ledger.EndDispatch(context.WithoutCancel(ctx), f)
	if err == nil || dispatch.Permanent(err) {
		return finished, err
	}
	// An inline try's caller can't park the record before this dispatch has its end. So that end hands
	// the record to the runner.
	f.Inline = false
	r.busy.hold(f.Key)
	r.recorder.GoOn(&dispatch.Outcome{
		Mutation: m, Content: answer,
		Record: func(ctx context.Context) (ledger.Moved, error) { return r.ledger.EndDispatch(ctx, f) },
		Taken: func() {
			r.busy.free(f.Key)
			r.Kick()
		},
	})
	return finished, err
}
