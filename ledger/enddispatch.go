package ledger

import (
	"cmp"
	"context"
	"errors"
	"time"

	"keep-proxy/internal/verdict"
)

// MarkCommitted records a success before its whole answer is known: absence, "it did not happen" and further
// dispatches are closed. A record that is committed, applied or skipped is returned as it is.
func (l *Ledger) MarkCommitted(ctx context.Context, key Key, dispatchID string, status int) (*Mutation, error) {
	return evaluate(ctx, l, func(c *command) (*Mutation, error) {
		m, d, err := c.fenced(key, dispatchID)
		if err != nil || m.Committed || m.State == Applied || m.State == Skipped {
			return m, err
		}
		d.Head, d.Status = true, status
		from, mv := m.State, c.at(ActorProxy, "the answer's head says success")
		if err := c.move(m, OnCommitted, c.facts(m, d, 0), mv); err != nil {
			return nil, err
		}
		if err := c.store(m, from, OnCommitted, mv, dispatchID, ""); err != nil || m.State == InFlight {
			return m, err
		}
		_, err = c.afterMove(m, d.Run, false, false)
		return m, err
	})
}

// fenced loads a record and the dispatch of it that this process sends.
func (c *command) fenced(key Key, dispatchID string) (*Mutation, *Dispatch, error) {
	m, err := c.Mutation(key)
	if err != nil {
		return nil, nil, err
	}
	d := m.Dispatch(dispatchID)
	if d == nil {
		return nil, nil, invalid("mutation %s has no dispatch %q", m.ID, dispatchID)
	}
	if !c.owns(d) {
		return nil, nil, &NotAllowedError{
			State: m.State, On: OnSuccess, Reason: "dispatch " + d.ID + " belongs to another process",
		}
	}
	return m, d, nil
}

// EndDispatch records the end of a dispatch, and moves record and run by the table:
//
//  1. A success with its whole answer makes the record applied, also if it is an older dispatch's. While a newer
//     dispatch is in flight, it makes the record committed.
//  2. A success without its answer makes the record committed, and asks for the result.
//  3. Any other verdict of an older dispatch is recorded only.
//  4. While an earlier dispatch is unresolved, a failure leaves the record unknown.
//
// Only the dispatch's process may finish it, once; but a success may follow an uncertain end.
func (l *Ledger) EndDispatch(ctx context.Context, f EndDispatch) (Moved, error) {
	return l.moving(ctx, func(c *command) (*Mutation, *Run, error) { return c.endDispatch(&f) })
}

// finishing evaluates fn and gathers its answer.
func (l *Ledger) moving(ctx context.Context, fn func(*command) (*Mutation, *Run, error)) (Moved, error) {
	return evaluate(ctx, l, func(c *command) (out Moved, err error) {
		out.Mutation, out.Run, err = fn(c)
		return out, err
	})
}

func (c *command) endDispatch(f *EndDispatch) (*Mutation, *Run, error) {
	m, d, err := c.fenced(f.Key, f.Dispatch.ID)
	if err != nil {
		return nil, nil, err
	}
	judged := f.verdict()
	if d.unsent() && judged == VerdictUncertain {
		judged = VerdictNotSent
		f.Dispatch.Class, f.Dispatch.Reason = verdict.Transient, whyUnsent
	}
	if d.Verdict != "" && !outdoes(judged, d.Verdict) {
		return nil, nil, &NotAllowedError{State: m.State, On: OnSuccess, Reason: "dispatch " + d.ID + " has its verdict already"}
	}
	c.recordEnd(d, f, judged)
	on, known := c.ended(m, d, f)
	if on == "" {
		return c.keepEnd(m, d)
	}
	return c.moveByEnd(m, d, f, on, known)
}

// outdoes reports whether a dispatch with the old verdict may be given this one: a success that tells more.
func outdoes(verdict, old Verdict) bool {
	switch verdict {
	case VerdictApplied:
		return old == VerdictUncertain || old == VerdictCommitted
	case VerdictCommitted, VerdictAccepted:
		return old == VerdictUncertain
	default:
		return false
	}
}

// verdict is the verdict as far as the rest proves it: a success without an answer is a committed one.
func (f *EndDispatch) verdict() Verdict {
	switch v := f.Dispatch.Verdict; v {
	case VerdictFailed, VerdictNotSent, VerdictUncertain:
		return v
	case VerdictAccepted:
		if f.Result != nil && !f.TooLarge {
			return v
		}
	case VerdictApplied, VerdictCommitted:
		if f.TooLarge || v == VerdictApplied && f.Result != nil {
			return VerdictApplied
		}
		return VerdictCommitted
	}
	return VerdictUncertain
}

// recordEnd copies what was seen on the wire; what the claim recorded stays.
func (c *command) recordEnd(d *Dispatch, f *EndDispatch, verdict Verdict) {
	seen := f.Dispatch
	seen.ID, seen.Owner, seen.Run, seen.Generation = d.ID, d.Owner, d.Run, d.Generation
	seen.Redispatch, seen.Prepares, seen.Prepared = d.Redispatch, d.Prepares, d.Prepared
	seen.Resend, seen.PayloadDigest, seen.ClientKey, seen.Started = d.Resend, d.PayloadDigest, d.ClientKey, d.Started
	seen.Lost, seen.PassedOn, seen.Verdict = d.Lost, f.PassedOn, verdict
	seen.Resolved = d.Resolved || verdict == VerdictApplied || verdict.Failure()
	if seen.Ended == (Stamp{}) {
		seen.Ended = c.now
	}
	*d = seen
}

// ended names the trigger of the dispatch's end, "" if the record stays as it is, and its facts.
func (c *command) ended(m *Mutation, d *Dispatch, f *EndDispatch) (Trigger, Facts) {
	newest := m.Current().ID == d.ID
	known := FactInline.If(f.Inline)
	switch {
	case m.State == Skipped, m.State == Applied && (m.ResultState == ResultKnown || len(m.Obligations) > 0):
		// Of what is taken back, no answer is kept: it may be of just that.
		return "", 0
	case d.Verdict == VerdictAccepted && (newest || m.State != InFlight) && m.State != Applied && !m.Committed:
		return OnWatch, known
	case d.Verdict == VerdictAccepted && (m.State != InFlight || !newest):
		return "", 0
	case d.Verdict == VerdictAccepted:
		// Success was known before; here is its answer.
		return OnSuccess, known | FactResult
	case d.Verdict == VerdictApplied && newest && m.State == InFlight && f.TooLarge:
		return OnTooLarge, known
	case d.Verdict == VerdictApplied && newest && m.State == InFlight:
		return OnSuccess, known | FactResult
	case d.Verdict == VerdictApplied && m.State == Applied && f.TooLarge:
		return "", 0
	case d.Verdict == VerdictApplied:
		return OnLateSuccess, known | FactResult
	case m.State == Applied:
		return "", 0
	case d.Verdict == VerdictCommitted && (!newest || m.State != InFlight):
		return OnCommitted, known
	case m.State != InFlight && m.State != NeedsReconcile, !newest:
		return "", 0
	case m.Committed && m.ResultState != ResultNone:
		// An earlier dispatch's answer is kept already; this end adds nothing.
		return OnLateSuccess, known | FactResult
	case d.Verdict.Failure():
		return OnDefiniteFailure, known
	}
	return OnUnknown, known
}

// keepEnd stores the end of a dispatch that doesn't move its record.
func (c *command) keepEnd(m *Mutation, d *Dispatch) (*Mutation, *Run, error) {
	mv := c.at(ActorProxy, "the end of a dispatch that doesn't move the record: "+d.Reason)
	if err := c.store(m, m.State, "dispatch_ended", mv, d.ID, ""); err != nil {
		return nil, nil, err
	}
	r, err := c.runOf(d.Run)
	return m, r, err
}

// closeResends ends resending after a failed resend, or the last one. A resend that was not sent doesn't count. An
// upstream that can't be reached is no question to a person.
func (m *Mutation) closeResends(d *Dispatch) {
	if d.Resend && d.Verdict == VerdictNotSent && m.ResendTries > 0 {
		m.ResendTries--
	}
	if d.Resend && d.Verdict == VerdictFailed || m.ResendTries >= m.maxResends() {
		m.ResendClosed = true
	}
}

// moveByEnd carries out the move of a dispatch's end, with its answer.
func (c *command) moveByEnd(m *Mutation, d *Dispatch, f *EndDispatch, on Trigger, known Facts) (*Mutation, *Run, error) {
	tooLarge := f.TooLarge
	if (d.Verdict == VerdictApplied || d.Verdict == VerdictAccepted) && !tooLarge {
		if err := c.keepResult(m, f.Result, "answer", f.Body); err != nil {
			return nil, nil, err
		}
	} else if on == OnLateSuccess {
		tooLarge = tooLarge || m.ResultState == ResultTooLarge
	}
	if d.Verdict == VerdictCommitted {
		m.Committed = true
	}
	m.closeResends(d)
	m.NextTryAt, m.RetryAfter = f.NextTryAt, f.RetryAfter
	from, mv := m.State, c.at(ActorProxy, d.Reason)
	mv.tooLarge = tooLarge
	if err := c.move(m, on, c.facts(m, d, known), mv); err != nil {
		return nil, nil, err
	}
	if m.MovedTo = f.MovedTo; m.State == Failed {
		m.Class, m.Reason = d.Class, d.Reason
	} else if m.State != Applied {
		m.Reason = d.Reason
	}
	r, err := c.afterMove(m, d.Run, f.PassedOn, f.Unauthorized)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case m.Undo != nil:
		m.undoFailed(f.NextTryAt, mv)
	case m.State == Failed && d.Redispatch:
		m.escalateRedispatch(mv)
	case r == nil || !r.mayRetry(m.Key):
		m.escalateFailure(mv)
	}
	return m, r, errors.Join(c.redirected(m), c.store(m, from, on, mv, d.ID, d.Error))
}

// keepResult takes the answer at hand.
func (c *command) keepResult(m *Mutation, r *Result, source string, body []byte) error {
	m.Result = copied(r)
	m.Result.Source = cmp.Or(r.Source, source)
	return c.keepBody(&m.Result.Body, body)
}

// escalateFailure asks a person about a failure that no retry makes right; it stops nothing. In a run's grace
// it is asked at the end of that, as a refreshed token mends most of them.
func (m *Mutation) escalateFailure(mv move) {
	if m.State != Failed {
		return
	}
	switch m.Class {
	case verdict.Permission:
		m.escalate(EscalationPermission, mv)
	case verdict.Precondition:
		m.escalate(EscalationPrecondition, mv)
	default:
		// Logic is left to repair, transient to the scheduler.
	}
}

// afterMove does to the run what the record's new state means for it.
func (c *command) afterMove(m *Mutation, runID string, passedOn, unauthorized bool) (*Run, error) {
	switch m.State {
	case Applied:
		return c.succeed(runID, m.Key)
	case Failed:
		r, err := c.runOf(runID)
		if err != nil || r == nil || r.State.Ended() || passedOn {
			return r, err
		}
		return r, c.fail(r, Failure{m.Key, m.PayloadDigest, m.Class, m.Reason, unauthorized, m.RetryAfter})
	case NeedsReconcile, Indeterminate:
		if m.Watching {
			// The script has the answer that the API gave it; it may go on.
			return c.succeed(runID, m.Key)
		}
		return c.pause(runID, m, "the outcome of mutation "+m.ID+" is unknown: "+m.Reason)
	default:
		// In flight and skipped mean nothing to the run.
	}
	return c.runOf(runID)
}

// runOf loads a run, nil for an unmanaged scope or a run that was forgotten.
func (c *command) runOf(id string) (*Run, error) {
	if id == "" {
		return nil, nil
	}
	return found(c.Run(id))
}

// Park ends the inline try of a judged record without an outcome. The record becomes needs_reconcile (due at
// nextTryAt), indeterminate, or applied without a result. Unless it is applied, its run is paused. The newest
// dispatch is dispatchID. A record that is not in flight is returned as it is.
func (l *Ledger) Park(
	ctx context.Context, key Key, dispatchID string, nextTryAt time.Time, reason string,
) (Moved, error) {
	return l.moving(ctx, func(c *command) (*Mutation, *Run, error) {
		m, d, err := c.fenced(key, dispatchID)
		if err != nil {
			return nil, nil, err
		}
		if m.State != InFlight {
			r, err := c.runOf(d.Run)
			return m, r, err
		}
		if c.sending(m, 0) || m.Current().ID != d.ID {
			return nil, nil, &NotAllowedError{State: m.State, On: OnUnknown, Reason: "a dispatch has no verdict yet"}
		}
		return c.giveUpInline(m, d, nextTryAt, reason)
	})
}

// giveUpInline moves a judged record out of in_flight.
func (c *command) giveUpInline(m *Mutation, d *Dispatch, nextTryAt time.Time, reason string) (*Mutation, *Run, error) {
	from, mv := m.State, c.at(ActorProxy, reason)
	m.NextTryAt, m.Reason = nextTryAt, reason
	if err := c.move(m, m.withoutAnswer(OnUnknown), c.facts(m, d, FactResult), mv); err != nil {
		return nil, nil, err
	}
	r, err := c.afterMove(m, d.Run, false, false)
	if err != nil {
		return nil, nil, err
	}
	return m, r, c.store(m, from, OnUnknown, mv, d.ID, d.Error)
}

// withoutAnswer is on, or the late success whose answer an earlier dispatch left.
func (m *Mutation) withoutAnswer(on Trigger) Trigger {
	if m.Committed && m.ResultState != ResultNone {
		return OnLateSuccess
	}
	return on
}
