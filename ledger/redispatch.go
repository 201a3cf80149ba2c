package ledger

import (
	"context"
	"time"
)

// DefaultMaxDispatches is the policy's number where it is missing.
const DefaultMaxDispatches = 2

// RedispatchOpen reports whether an absence lets m be sent again by itself. The rule says redispatch, and it was sent
// fewer than max_dispatches times, without resends. An undo is sent as often as Undo.Allowed says.
func RedispatchOpen(m *Mutation) bool {
	if m.Undo != nil {
		return m.Undo.Sent < m.Undo.Allowed
	}
	if m.Policy.OnAbsent != AbsentRedispatch {
		return false
	}
	limit := m.Policy.MaxDispatches
	if limit <= 0 {
		limit = DefaultMaxDispatches
	}
	sent := 0
	for i := range m.Dispatches {
		if !m.Dispatches[i].Resend {
			sent++
		}
	}
	return sent < limit
}

// escalateAbsence asks a person about what did not happen, and was sent too often to be sent again.
func (m *Mutation) escalateAbsence(mv move) {
	if m.Undo != nil {
		m.undoFailed(m.Undo.Next, mv)
		return
	}
	if m.Policy.OnAbsent == AbsentRedispatch && m.RedispatchSince.IsZero() {
		mv.why = "it did not happen, and it was sent as often as max_dispatches allows: " + mv.why
		m.escalate(EscalationAbsent, mv)
	}
}

// escalateRedispatch asks a person about a redispatch that failed: no run meets its failure.
func (m *Mutation) escalateRedispatch(mv move) {
	if m.escalateFailure(mv); m.asked() == EscalationPermission || m.asked() == EscalationPrecondition {
		return
	}
	mv.why = "it did not happen, was sent again, and failed: " + mv.why
	m.escalate(EscalationAbsent, mv)
}

// Redispatch records the sending that a believed absence queued, before it is sent. The gate of the same
// transaction looks at item and workflow; the run is over:
//
//  1. It leaves the queue, and stays failed, if the item takes no mutation or has another attempt. So it does if the
//     open generation carried another payload. So it does if an absence leads to less by the settings of now. An undo
//     is owed whatever became of its item.
//  2. It is asked again at NextTryAt if the scope is stopped, or a newer effect is to be undone first. So it is if
//     what is undone may still take effect.
//  3. Else it is in flight under the same vendor key. The caller sends it, once.
//
// Without a dispatch nothing may be sent. ErrVersion if the record moved, ErrNotAllowed if it isn't queued.
func (l *Ledger) Redispatch(ctx context.Context, r Redispatch) (*Mutation, *Dispatch, error) {
	var m *Mutation
	sent := false
	err := l.update(ctx, func(c *command) (err error) {
		m, sent, err = c.redispatch(r)
		return err
	})
	if err != nil || !sent {
		return m, nil, err
	}
	return m, m.Current(), nil
}

// CallOffRedispatch takes a record out of the queue that can't be sent, and tells a person. With a time it is put off
// instead, unless it waited for longer than MaxAge. Errors are as for Redispatch.
func (l *Ledger) CallOffRedispatch(ctx context.Context, key Key, version int64, until time.Time, reason string) (*Mutation, error) {
	return evaluate(ctx, l, func(c *command) (*Mutation, error) {
		m, err := c.queued(key, version)
		if err != nil {
			return nil, err
		}
		if waited := c.now.Wall.Sub(m.RedispatchSince); !until.IsZero() && waited < c.config.Reconcile.MaxAge {
			return m, c.putOff(m, until, reason)
		}
		mv := c.at(ActorRunner, "it did not happen, and it can't be sent again: "+reason)
		kind := EscalationAbsent
		if m.Undo != nil {
			mv.why, kind = "it can't be undone by itself: "+reason, EscalationUndo
		}
		m.escalate(kind, mv)
		return m, c.leaveQueue(m, mv)
	})
}

// queued loads a record that waits to be sent again.
func (c *command) queued(key Key, version int64) (*Mutation, error) {
	m, err := c.expect(key, version)
	if err != nil {
		return nil, err
	}
	if m.State != Failed || m.RedispatchSince.IsZero() {
		return nil, &NotAllowedError{State: m.State, On: OnRedispatch, Reason: "it is not queued to be sent again"}
	}
	return m, nil
}

func (c *command) redispatch(r Redispatch) (*Mutation, bool, error) {
	m, err := c.queued(r.Key, r.Version)
	if err != nil {
		return nil, false, err
	}
	if r.DispatchID == "" || m.Dispatch(r.DispatchID) != nil {
		return nil, false, invalid("a redispatch of %s needs a dispatch id of its own", m.ID)
	}
	closed, err := c.closedFor(m)
	if err != nil {
		return nil, false, err
	}
	if closed != "" {
		return m, false, c.leaveQueue(m, c.at(ActorRunner, closed))
	}
	if m.Undo == nil && m.Policy.Heeding(r.Caution).OnAbsent != AbsentRedispatch {
		return m, false, c.heedAbsent(m, r.Caution.OnAbsent)
	}
	waits, err := c.waitsFor(m, r)
	if err != nil {
		return nil, false, err
	}
	if waits != "" {
		return m, false, c.putOff(m, r.NextTryAt, waits)
	}
	gap, err := c.queuedInGap(m)
	if err != nil {
		return nil, false, err
	}
	if gap != nil {
		return m, false, c.redispatchedIn(gap, m, r)
	}
	from, mv := m.State, c.at(ActorRunner, "sent again with the same vendor key, as it is not there")
	if err := c.move(m, OnRedispatch, c.facts(m, nil, 0), mv); err != nil {
		return nil, false, err
	}
	if m.Undo != nil {
		mv.why = "an effect of mutation " + m.Undo.Of.ID() + " is taken back"
		if err := m.beginUndo(r.NextTryAt); err != nil {
			return nil, false, err
		}
	}
	m.Class, m.Reason, m.RetryAfter = "", "", time.Time{}
	m.ResendTries, m.ResendClosed = 0, false
	gaps, err := c.Gaps()
	if err != nil {
		return nil, false, err
	}
	m.addDispatch(Dispatch{
		ID: r.DispatchID, Owner: c.Process().ID, Generation: m.Generation, Gaps: len(gaps),
		Redispatch: true, PayloadDigest: m.PayloadDigest, Started: c.now,
	})
	return m, true, c.store(m, from, OnRedispatch, mv, r.DispatchID, "")
}

// waitsFor says what m waits for in the queue; "" if for nothing.
func (c *command) waitsFor(m *Mutation, r Redispatch) (string, error) {
	all, err := c.blockers(m.Workflow)
	if err != nil {
		return "", err
	}
	for i := range all {
		if all[i].Key != m.Key && all[i].stops(m.Workflow, m.Item) {
			return "mutation " + all[i].ID + " stops the scope", nil
		}
	}
	newer, err := c.newerOwed(m)
	if err != nil {
		return "", err
	}
	if newer != nil {
		return newer.ID + " takes back a newer effect of the same mutation, and comes first", nil
	}
	return c.undoneActive(m, r.Caution)
}

// closedFor says why m may not be sent again for its item; "" if it may.
func (c *command) closedFor(m *Mutation) (string, error) {
	if m.Undo != nil {
		return "", nil
	}
	item, err := c.Item(m.Workflow, m.Item)
	switch {
	case err != nil:
		return "", err
	case item.State != ItemOpen && item.State != ItemFailed:
		return "not sent again: the item is " + string(item.State), nil
	case item.Attempt != m.Attempt:
		return "not sent again: the item has another attempt", nil
	case m.carriesOther(m.PayloadDigest):
		return "not sent again: its vendor key was used with another payload", nil
	}
	return "", nil
}

// heedAbsent takes m out of the queue, as by the settings of now an absence leads to something else.
func (c *command) heedAbsent(m *Mutation, now OnAbsent) error {
	mv := c.at(ActorRunner, "it did not happen, and by the settings of now it isn't sent again by itself (on_absent: "+string(now)+")")
	if now == AbsentEscalate {
		m.escalate(EscalationAbsent, mv)
	}
	return c.leaveQueue(m, mv)
}

// putOff leaves m in the queue until a later time.
func (c *command) putOff(m *Mutation, until time.Time, why string) error {
	m.NextTryAt = until
	return c.store(m, m.State, "redispatch_put_off", c.at(ActorRunner, why), "", "")
}

// leaveQueue takes m out of the queue; it stays failed.
func (c *command) leaveQueue(m *Mutation, mv move) error {
	m.RedispatchSince, m.NextTryAt = time.Time{}, time.Time{}
	return c.store(m, m.State, "redispatch_called_off", mv, "", "")
}
