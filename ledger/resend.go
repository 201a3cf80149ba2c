package ledger

import (
	"context"
	"math"
	"time"
)

// How often one mutation is sent by the resend strategy, and one of which the same
// request again changes nothing.
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

// ResendOpen reports whether m may be sent once more by the resend strategy, by
// a sending that ends within deadline:
//
//  1. the rule has the strategy;
//  2. fewer than three resends were made (of an idempotent undo, fewer than eight), and
//     none met a failure verdict;
//  3. the window is open, see WindowOpen.
func ResendOpen(m *Mutation, now Stamp, deadline time.Duration) bool {
	return m.Policy.Resend && !m.Policy.Natural && !m.ResendClosed && m.ResendTries < m.maxResends() && WindowOpen(m, now, deadline)
}

// WindowOpen reports whether the API surely remembers the vendor key of m's
// generation until a sending that ends within deadline has settled: its window is
// known, and age + deadline + settle < 0.9 × window. The age counts from the start
// of the generation's first dispatch, on the wall or the boot clock, whichever is
// larger. After another start of the machine it is closed: nothing tells then that the
// wall clock isn't the one of before it was switched off. It is read again before byte one
// of a resend. For what is idempotent by itself it is always open.
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

// sum adds durations that aren't negative. One that is too long to be told is the longest: it
// must not pass for a short one.
func sum(all ...time.Duration) (total time.Duration) {
	for _, d := range all {
		if total += d; total < 0 {
			return math.MaxInt64
		}
	}
	return total
}

// Resend records a dispatch by the resend strategy before it is sent. It is
// allowed from in_flight after the end of the dispatch was judged, and from
// needs_reconcile, and only as ResendOpen or NaturalOpen says. ErrVersion: the record moved
// since it was read. Ask WindowOpen again before byte one.
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
