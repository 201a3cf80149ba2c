package ledger

import (
	"strings"
	"time"

	"keep-proxy/internal/verdict"
)

// Effects are what a move does to a record besides its state, as a set of bits.
type Effects uint16

// The effects.
const (
	// EffectDispatch adds a dispatch and voids every earlier observation.
	EffectDispatch Effects = 1 << iota
	// EffectAnswer keeps the answer at hand, or that it was too large.
	EffectAnswer
	// EffectAnswerLost sets the result to unknown.
	EffectAnswerLost
	// EffectCommitted sets committed.
	EffectCommitted
	// EffectResolve resolves every dispatch.
	EffectResolve
	// EffectQueue sets when the runner looks next.
	EffectQueue
	// EffectReset sets the counters of reconciling to zero.
	EffectReset
	// EffectNewKey raises the generation, which changes the vendor key.
	EffectNewKey
	// EffectAccept takes the disputed payload as covered.
	EffectAccept
	// EffectClose closes the open escalations that the trigger answers.
	EffectClose
	// EffectRedispatch queues the record to be sent again by itself. Moves without EffectKeepQueue end that.
	EffectRedispatch
	// EffectWatch keeps the 202 and lets the runner follow it.
	EffectWatch
	// EffectKeepQueue leaves the record in the queue of those that are sent again.
	EffectKeepQueue
)

// effectNames are in the order of the bits.
var effectNames = [...]string{
	"new dispatch, observations void", "answer kept", "result unknown", "committed", "dispatches resolved",
	"queued for the runner", "counters reset", "generation + 1", "payload accepted", "escalation closed",
	"redispatch queued", "answer 202 kept and followed", "redispatch stays queued",
}

// Has reports whether every effect of g is in e.
func (e Effects) Has(g Effects) bool { return e&g == g }

// String joins the effects in prose.
func (e Effects) String() string {
	return strings.Join(namesOf(uint64(e), effectNames[:]), "; ")
}

// move is what a row needs to be carried out on a record.
type move struct {
	now Stamp
	// actor and why are who moved it, and the reason in a sentence.
	actor, why string
	// tooLarge says that the answer at hand was not kept.
	tooLarge bool
}

// apply carries the row out on m, which has the answer and the next try already. The caller adds the dispatch.
func (m *Mutation) apply(r Row, mv move) error {
	if r.Effects.Has(EffectAnswer) {
		m.ResultState = ResultKnown
		if mv.tooLarge {
			m.Result, m.ResultState = nil, ResultTooLarge
		}
	}
	if r.Effects.Has(EffectAnswerLost) {
		m.Result, m.ResultState = nil, ResultUnknown
	}
	if r.Effects.Has(EffectCommitted) {
		m.Committed = true
	}
	if r.Effects.Has(EffectResolve) {
		m.resolveDispatches()
	}
	if r.Effects.Has(EffectQueue) && m.NextTryAt.IsZero() {
		m.NextTryAt = mv.now.Wall
	}
	if r.Effects.Has(EffectReset) {
		m.Tries, m.RunningAge = 0, 0
	}
	if r.Effects.Has(EffectAccept) {
		m.Accepted, m.Disputed = append(m.Accepted, m.Disputed), ""
	}
	if r.Effects.Has(EffectDispatch) {
		m.voidObservations()
	}
	if r.Effects.Has(EffectNewKey) {
		if err := m.newGeneration(); err != nil {
			return err
		}
	}
	if r.Effects.Has(EffectClose) {
		shown := m.asked()
		m.closeAsked(func(kind string) bool { return answers(r.On, kind, shown) }, mv)
		if r.On != OnAcknowledge && answers(r.On, EscalationMismatch, shown) {
			// What was refused is no answer to what is asked later. Acknowledging decides nothing about it.
			m.Disputed = ""
		}
	}
	if r.Escalation != "" {
		m.escalate(r.Escalation, mv)
	}
	m.follow(r, mv)
	return nil
}

// follow enters the row's state, with what is to be looked at there and when.
func (m *Mutation) follow(r Row, mv move) {
	since, due := m.RedispatchSince, m.NextTryAt
	watching := m.Watching && r.To == NeedsReconcile && !m.Committed
	m.enter(r.To, mv.now)
	if !watching {
		m.unwatch()
	}
	if r.Effects.Has(EffectWatch) {
		if !watching {
			m.UnknownSince = mv.now // The time in which it must end begins with the 202.
		}
		m.Watching, m.ResultState, m.Class = true, ResultKnown, ""
	}
	m.RedispatchSince = time.Time{}
	if r.Effects.Has(EffectRedispatch) {
		m.RedispatchSince, m.NextTryAt = mv.now.Wall, mv.now.Wall
	}
	if r.Effects.Has(EffectKeepQueue) {
		m.RedispatchSince, m.NextTryAt = since, due
	}
}

// enter sets the state and what belongs to it alone.
func (m *Mutation) enter(to State, now Stamp) {
	if to == NeedsReconcile && m.State != NeedsReconcile {
		m.UnknownSince, m.Tries, m.RunningAge = now, 0, 0
	}
	if to != NeedsReconcile {
		m.NextTryAt = time.Time{}
	}
	if to == Applied || to == Skipped {
		m.Class = ""
	}
	if to == NeedsReconcile || to == Indeterminate {
		m.Class = verdict.Indeterminate
	}
	m.State = to
}

// resolveDispatches marks every dispatch as answered for, whatever its own verdict.
func (m *Mutation) resolveDispatches() {
	for i := range m.Dispatches {
		m.Dispatches[i].Resolved = true
	}
}

// voidObservations makes all that was seen before a new dispatch worthless.
func (m *Mutation) voidObservations() {
	for i := range m.Observations {
		m.Observations[i].Voided = true
	}
}

// newGeneration raises the generation and derives its vendor key.
func (m *Mutation) newGeneration() error {
	m.Generation++
	return m.deriveVendorKey()
}

// deriveVendorKey sets the vendor key of the present generation, if the API takes one.
func (m *Mutation) deriveVendorKey() error {
	if m.Policy.KeyFormat == "" && !m.Policy.NativeKey {
		return nil
	}
	key, err := VendorKey(markedBy(m.Key, m.Remade), m.Generation, m.Policy.KeyFormat, m.Policy.KeyMaxLength)
	if err != nil {
		return err
	}
	m.VendorKey = key
	return nil
}
