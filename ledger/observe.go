package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"keep-proxy/internal/verdict"
)

// Observe records what a reconcile try saw, and moves the record by it.
//
// An absence is believed as docs/semantics.md §6 says, read again in the transaction. Another mutation's evidence
// makes any observation a retry. After the last try, or the longest running time, the record is exhausted.
// ErrVersion: the record moved since the asking began. In flight it takes observations of the inline try only, once
// its dispatch was judged.
func (l *Ledger) Observe(ctx context.Context, o Observe) (Moved, error) {
	return l.moving(ctx, func(c *command) (*Mutation, *Run, error) { return c.observe(&o) })
}

// Exhaust ends automation for a record in needs_reconcile, and a person is asked. The record becomes indeterminate
// or, if committed, applied without a result. ErrVersion as for Observe.
func (l *Ledger) Exhaust(ctx context.Context, key Key, version int64, reason string) (Moved, error) {
	return l.moving(ctx, func(c *command) (*Mutation, *Run, error) {
		m, err := c.expect(key, version)
		if err != nil {
			return nil, nil, err
		}
		mv := c.at(ActorRunner, reason)
		from := m.State
		if err := c.move(m, OnExhausted, c.facts(m, nil, 0), mv); err != nil {
			return nil, nil, err
		}
		m.Reason = reason
		r, err := c.afterMove(m, m.Run, false, false)
		if err != nil {
			return nil, nil, err
		}
		return m, r, c.store(m, from, OnExhausted, mv, "", "")
	})
}

func (c *command) observe(q *Observe) (*Mutation, *Run, error) {
	m, err := c.expect(q.Key, q.Version)
	if err != nil {
		return nil, nil, err
	}
	if q.Inline != (m.State == InFlight) {
		return nil, nil, &NotAllowedError{State: m.State, On: OnRetry, Reason: "the inline try is for records in flight only"}
	}
	was := m.Policy
	m.Policy = m.Policy.Heeding(q.Caution)
	c.recount(m, was)
	o := q.Observation
	on, known, err := c.judge(m, &o, q)
	if err != nil {
		return nil, nil, err
	}
	m.addObservation(o)
	m.RunningAge += max(q.Ran, 0)
	if q.Reached && Settled(m, o.At, c.Process()) {
		m.Tries++
	}
	m.NextTryAt = q.NextTryAt
	if q.RetryAfter.After(m.RetryAfter) {
		m.RetryAfter = q.RetryAfter
	}
	if known.Has(FactResult) && q.Result != nil {
		if err := c.keepResult(m, q.Result, "observation", q.Body); err != nil {
			return nil, nil, err
		}
	}
	return c.moveByObservation(m, &o, on, known, q)
}

// judge turns what was seen into a trigger and facts, and ties the objects to the mutation.
func (c *command) judge(m *Mutation, o *Observation, q *Observe) (Trigger, Facts, error) {
	o.Counted, o.Voided = false, false
	taken, err := c.evidenceTaken(m, o)
	if err != nil {
		return "", 0, err
	}
	if taken != "" {
		o.Seen, o.Reason = SeenRetry, taken
	}
	if o.Seen == SeenDuplicate && o.namesTwice() {
		// What is newer is undone, and the one that is kept must not be among it.
		o.Seen, o.Reason = SeenRetry, "an object is named twice"
	}
	known := FactStrong.If(o.Strong)
	if m.Watching {
		return c.judgeWatched(m, o)
	}
	switch o.Seen {
	case SeenApplied, SeenDuplicate:
		known |= FactResult.If(q.Result != nil)
		if o.Seen == SeenDuplicate {
			if o.Strong {
				err = c.tie(m, o)
			}
			return OnObservedDuplicate, known &^ FactResult.If(!o.Strong), err
		}
		return OnObservedApplied, known, c.tie(m, o)
	case SeenAbsent:
		counts, why := c.countsAsAbsence(m, o, q.AbsenceIsProof)
		o.Counted = counts
		if !counts {
			o.Reason = join(o.Reason, why)
			return OnObservedAbsent, known, nil
		}
		_, wanted, _ := m.Policy.bounds()
		return OnObservedAbsent, known | FactBelievable.If(m.confirmations(o.At)+1 >= wanted), nil
	case SeenRetry:
		return OnRetry, known, nil
	case SeenFailed:
		// Only what was accepted fails by what is seen; see judgeWatched.
	}
	// An unknown word says nothing.
	o.Reason = join(o.Reason, fmt.Sprintf("unknown observation %q", o.Seen))
	o.Seen = SeenRetry
	return OnRetry, known, nil
}

// namesTwice reports whether one object is listed twice.
func (o *Observation) namesTwice() bool {
	return len(slices.Compact(slices.Sorted(slices.Values(o.Objects)))) != len(o.Objects)
}

// join adds a reason to what the reconciler said.
func join(said, reason string) string {
	if said == "" {
		return reason
	}
	return said + "; " + reason
}

// evidenceTaken says whose evidence one of the objects is, "" if all are free or ours.
func (c *command) evidenceTaken(m *Mutation, o *Observation) (string, error) {
	for _, object := range o.Objects {
		owner, err := c.EvidenceOf(m.Connector, m.Account, object)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		if m.Owns(owner, object) {
			continue
		}
		if owner == m.Key {
			return fmt.Sprintf("object %s is evidence for what mutation %s was before retention removed it", object, m.ID), nil
		}
		return fmt.Sprintf("object %s is evidence for mutation %s", object, owner.ID()), nil
	}
	return "", nil
}

// tie makes the objects evidence for m alone.
func (c *command) tie(m *Mutation, o *Observation) error {
	for _, object := range o.Objects {
		if err := c.PutEvidence(m.Connector, m.Account, object, m.Key); err != nil {
			return err
		}
	}
	return nil
}

// moveByObservation carries the observation out, and exhausts a record that used up its tries.
func (c *command) moveByObservation(m *Mutation, o *Observation, on Trigger, known Facts, q *Observe) (*Mutation, *Run, error) {
	from, mv := m.State, c.at(ActorRunner, join(o.Strategy, o.Reason))
	if q.Inline {
		mv.actor = ActorProxy
	}
	if err := c.move(m, on, c.facts(m, nil, known), mv); err != nil {
		return nil, nil, err
	}
	if m.State == NeedsReconcile && c.exhausted(m) {
		end, why := OnExhausted, "the tries are used up"
		if m.Watching {
			end, why = OnWatchOver, "what was accepted did not end in its time"
		}
		mv.why = join(mv.why, why)
		if err := c.move(m, end, c.facts(m, nil, 0), mv); err != nil {
			return nil, nil, err
		}
	}
	if on == OnObservedDuplicate && m.State == Applied && o.Strong {
		if err := c.oweNewer(m, o, q.Owed, mv); err != nil {
			return nil, nil, err
		}
	}
	switch m.State {
	case Failed:
		m.Class, m.Reason = verdict.Transient, mv.why
		if on == OnWatchFailed {
			m.Class = m.watchClass()
			if d := m.failFollowed(); d != nil && d.Redispatch {
				m.escalateRedispatch(mv)
			} else {
				m.escalateFailure(mv)
			}
			break
		}
		m.escalateAbsence(mv)
	case Indeterminate:
		m.Reason = mv.why
	default:
		// The reason why it was unknown stays.
	}
	r, err := c.afterObservation(m)
	if err != nil {
		return nil, nil, err
	}
	return m, r, c.store(m, from, on, mv, "", o.Evidence)
}

// afterObservation does to the run what the new state means; one that is still unknown paused it before.
func (c *command) afterObservation(m *Mutation) (*Run, error) {
	if m.State == NeedsReconcile || m.State == InFlight {
		return c.runOf(m.Run)
	}
	return c.afterMove(m, m.Run, false, false)
}

// exhausted reports whether the runner has tried long enough.
func (c *command) exhausted(m *Mutation) bool {
	if m.Watching {
		return c.watchOver(m)
	}
	return m.Tries >= c.config.Reconcile.MaxAttempts || m.RunningAge >= c.config.Reconcile.MaxAge
}
