package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"keep-proxy/internal/verdict"
)

// RecoverCounts tells what recovery found.
type RecoverCounts struct {
	// NeedsReconcile, Indeterminate, Applied and Failed count where the records went.
	NeedsReconcile, Indeterminate, Applied, Failed int
}

// recoverBatch is how many records one transaction moves; where they are too long for it, fewer.
const recoverBatch = 64

// Recover moves on every record in flight whose owner, another process, is lost. It becomes needs_reconcile (due at
// nextTryAt), or indeterminate without a reconciler. It becomes applied if success is known, or failed if it was not
// sent. Nothing is sent again, and their runs are paused. It runs before the listener opens. After an error nothing
// may be sent.
func (l *Ledger) Recover(ctx context.Context, nextTryAt func(*Mutation) time.Time) (RecoverCounts, error) {
	var total RecoverCounts
	keys, err := l.inFlight(ctx)
	for most := recoverBatch; err == nil && len(keys) > 0; {
		n := min(most, len(keys))
		var counts RecoverCounts
		counts, err = l.recoverSome(ctx, keys[:n], nextTryAt)
		switch {
		case err == nil:
			keys = keys[n:]
			total.NeedsReconcile += counts.NeedsReconcile
			total.Indeterminate += counts.Indeterminate
			total.Applied += counts.Applied
			total.Failed += counts.Failed
		case n > 1 && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil:
			most, err = n/2, nil
		}
	}
	if err == nil {
		err = l.recoverResends(ctx, nextTryAt)
	}
	return total, err
}

// recoverSome moves on a few records in one transaction.
func (l *Ledger) recoverSome(ctx context.Context, keys []Key, nextTryAt func(*Mutation) time.Time) (RecoverCounts, error) {
	return evaluate(ctx, l, func(c *command) (counts RecoverCounts, err error) {
		for _, key := range keys {
			if err := c.recover(key, nextTryAt, &counts); err != nil {
				return counts, err
			}
		}
		return counts, nil
	})
}

// recoverResends makes records due whose resend has lost its owner; they stay unknown.
func (l *Ledger) recoverResends(ctx context.Context, nextTryAt func(*Mutation) time.Time) error {
	list, err := l.allIn(ctx, NeedsReconcile)
	if err != nil {
		return err
	}
	for _, m := range list {
		if !m.lostResend(l.Process()) {
			continue
		}
		if err := l.update(ctx, func(c *command) error { return c.recoverResend(m.Key, nextTryAt) }); err != nil {
			return err
		}
	}
	return nil
}

// lostResend reports whether a dispatch has no end, and never will have one.
func (m *Mutation) lostResend(process Process) bool {
	return slices.ContainsFunc(m.Dispatches, func(d Dispatch) bool {
		return d.Ended == (Stamp{}) && !d.Lost && gone(&d, process)
	})
}

func (c *command) recoverResend(key Key, nextTryAt func(*Mutation) time.Time) error {
	m, err := c.Mutation(key)
	if err != nil || m.State != NeedsReconcile || !m.lostResend(c.Process()) {
		return err
	}
	m.loseDispatches(c.Process())
	if next := nextTryAt(m); next.Before(m.NextTryAt) {
		m.NextTryAt = next
	}
	mv := c.at(ActorRecovery, "the proxy that sent it again was lost before the outcome was recorded")
	return c.store(m, m.State, OnOwnerLost, mv, m.Current().ID, "")
}

// loseDispatches marks what an earlier process was sending.
func (m *Mutation) loseDispatches(process Process) {
	for i := range m.Dispatches {
		if d := &m.Dispatches[i]; d.Ended == (Stamp{}) && gone(d, process) {
			d.Lost = true
		}
	}
}

// recover moves one record on if it has lost its owner.
func (c *command) recover(key Key, nextTryAt func(*Mutation) time.Time, counts *RecoverCounts) error {
	m, err := c.Mutation(key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	d := m.Current()
	if m.State != InFlight || d != nil && !gone(d, c.Process()) {
		return nil
	}
	return c.loseOwner(m, nextTryAt, counts)
}

// loseOwner carries out the loss: dispatches without an end stay without one.
func (c *command) loseOwner(m *Mutation, nextTryAt func(*Mutation) time.Time, counts *RecoverCounts) error {
	m.loseDispatches(c.Process())
	from, mv := m.State, c.at(ActorRecovery, "the proxy that sent it was lost before the outcome was recorded")
	if m.unsent() && !m.Committed {
		mv.why = join(mv.why, whyUnsent)
		m.Current().fail(verdict.Transient, mv.why)
	}
	m.NextTryAt, m.Reason = nextTryAt(m), mv.why
	if err := c.move(m, m.withoutAnswer(OnOwnerLost), c.facts(m, nil, FactResult), mv); err != nil {
		return err
	}
	switch m.State {
	case NeedsReconcile:
		counts.NeedsReconcile++
	case Indeterminate:
		counts.Indeterminate++
	case Applied:
		counts.Applied++
	case Failed:
		m.Class = verdict.Transient
		counts.Failed++
	default:
		return fmt.Errorf("recovery of %s led to %s", m.ID, m.State)
	}
	dispatch := ""
	if d := m.Current(); d != nil {
		dispatch = d.ID
	}
	if err := c.store(m, from, OnOwnerLost, mv, dispatch, ""); err != nil {
		return err
	}
	_, err := c.afterMove(m, m.Run, false, false)
	return err
}
