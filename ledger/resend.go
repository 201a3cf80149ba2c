package ledger

import (
	"context"
	"math"
	"time"
)

// How often a mutation is resent, and an idempotent one.
const (
	maxResends           = 3
	maxIdempotentResends = DefaultUndoTries
)

func (m *Mutation) maxResends() int {
	if m.Policy.Idempotent {
		return maxIdempotentResends
	}
	return maxResends
}

// ResendOpen reports whether m may be resent, by a sending that ends within deadline. Its rule has the strategy. It
// was resent fewer than three times (an idempotent undo: eight), and none of these failed. WindowOpen holds.
func ResendOpen(m *Mutation, now Stamp, deadline time.Duration) bool {
	return m.Policy.Resend && !m.Policy.Natural && !m.ResendClosed && m.ResendTries < m.maxResends() && WindowOpen(m, now, deadline)
}

// WindowOpen reports whether age + deadline + settle < 0.9 × window. Then the API surely remembers the vendor key
// until a sending that ends within deadline has settled. The age is that of the generation's first dispatch, on the
// wall or the boot clock, whichever is larger. After another start of the machine it is closed, since the wall clock
// may be wrong. It is read again before byte one. What is idempotent has no window.
func WindowOpen(m *Mutation, now Stamp, deadline time.Duration) bool {
	p := m.Policy
	if p.Idempotent {
		return true
	}
	if p.KeyWindow <= 0 || deadline <= 0 {
		return false
	}
	settle, _, _ := p.bounds()
	for i := range m.Dispatches {
		if d := &m.Dispatches[i]; d.Generation == m.Generation {
			return now.sameBoot(d.Started) && sum(now.Age(d.Started), deadline, settle) < p.KeyWindow/10*9
		}
	}
	return false
}

// sum adds durations that aren't negative; one too long to be told is the longest.
func sum(all ...time.Duration) (total time.Duration) {
	for _, d := range all {
		if total += d; total < 0 {
			return math.MaxInt64
		}
	}
	return total
}

// Resend records a dispatch by the resend strategy before it is sent. The record is in_flight and its dispatch was
// judged, or it is in needs_reconcile. ResendOpen or NaturalOpen must hold. ErrVersion if the record moved. Ask
// WindowOpen again before byte one.
func (l *Ledger) Resend(ctx context.Context, r Resend) (*Mutation, *Dispatch, error) {
	m, err := evaluate(ctx, l, func(c *command) (*Mutation, error) { return c.resend(r) })
	if err != nil {
		return nil, nil, err
	}
	return m, m.Current(), nil
}

func (c *command) resend(r Resend) (*Mutation, error) {
	m, err := c.expect(r.Key, r.Version)
	if err != nil {
		return nil, err
	}
	if r.DispatchID == "" || m.Dispatch(r.DispatchID) != nil {
		return nil, invalid("a resend of %s needs a dispatch id of its own", m.ID)
	}
	from, mv := m.State, c.at(ActorRunner, "sent again with the same vendor key")
	if m.Policy.Natural {
		mv.why = "sent again, since it sets a state"
	}
	if from == InFlight {
		mv.actor = ActorProxy
	}
	m.Policy = m.Policy.Heeding(r.Caution)
	open := ResendOpen(m, c.now, r.Deadline) || NaturalOpen(m, c.now, c.Process())
	f := c.facts(m, nil, FactResendOpen.If(open))
	if err := c.move(m, OnResend, f, mv); err != nil {
		return nil, err
	}
	gaps, err := c.Gaps()
	if err != nil {
		return nil, err
	}
	m.ResendTries++
	m.addDispatch(Dispatch{
		ID: r.DispatchID, Owner: c.Process().ID, Run: m.Run, Generation: m.Generation, Gaps: len(gaps),
		Resend: true, PayloadDigest: m.PayloadDigest, Started: c.now,
	})
	if m.State == NeedsReconcile {
		m.RunningAge += max(r.Ran, 0)
		// The runner looks again if the end of this sending is never recorded.
		m.NextTryAt = c.now.Wall.Add(r.Deadline)
	}
	return m, c.store(m, from, OnResend, mv, r.DispatchID, "")
}

// expect loads the record that the caller saw.
func (c *command) expect(key Key, version int64) (*Mutation, error) {
	m, err := c.Mutation(key)
	if err != nil {
		return nil, err
	}
	if m.Version != version {
		return nil, ErrVersion
	}
	return m, nil
}
