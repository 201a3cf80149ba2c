package ledger

import (
	"context"
	"time"
)

// Park ends the inline try without an outcome: the record, in flight and judged,
// becomes needs_reconcile (due at nextTryAt), indeterminate, or applied with an
// unknown result, and the run that caused it is paused unless the mutation is
// applied. dispatchID is the newest dispatch. A record that is not in flight any
// more is returned as it is.
func (l *Ledger) Park(
	ctx context.Context, key Key, dispatchID string, nextTryAt time.Time, reason string,
) (Finished, error) {
	return l.finishing(ctx, func(c *command) (*Mutation, *Run, error) {
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

// giveUpInline moves a judged record out of flight.
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

// withoutAnswer is the trigger of an end without a whole success: an answer that
// an earlier dispatch left settles the record instead.
func (m *Mutation) withoutAnswer(on Trigger) Trigger {
	if m.Committed && m.ResultState != ResultNone {
		return OnLateSuccess
	}
	return on
}
