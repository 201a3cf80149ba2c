package reconcilers

import (
	"slices"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// claimedAt is when a mutation was claimed, as the wall clock of now would have shown it, and
// whether that can be told. The API is asked by its own clock, of which only the difference
// from ours of now is known: a time that ours showed before it was set would be off by as
// much, so that what the API made would be looked for in the wrong place, or what was there
// before would be taken for ours.
//
// A mutation that may have been sent in a gap was claimed, by the word of a person, when the
// gap began.
func claimedAt(m *ledger.Mutation, now ledger.Stamp) (time.Time, bool) {
	if len(m.Dispatches) == 0 {
		return m.CreatedAt, false
	}
	first := &m.Dispatches[0]
	if first.Gap != 0 {
		return m.CreatedAt, true
	}
	// The oldest dispatches of a record with very many are dropped.
	if at, ok := now.WallOf(first.Started); ok && first.Started.Wall.Equal(m.CreatedAt) {
		return at, true
	}
	return m.CreatedAt, false
}

// sentAt is when the first sending of m began that may have taken effect, by the clock of now; zero
// where that can't be told, or all of them failed for certain. What is like it and was made
// before that, as by somebody who saw the failure, is not of it.
func sentAt(m *ledger.Mutation, now ledger.Stamp) time.Time {
	for i := range m.Dispatches {
		if d := &m.Dispatches[i]; !d.Verdict.Failure() {
			at, _ := now.WallOf(d.Started)
			return at
		}
	}
	return time.Time{}
}

// acceptedAt is when the sending began whose 202 is followed, by the clock of now; zero where that
// can't be told.
func acceptedAt(m *ledger.Mutation, now ledger.Stamp) time.Time {
	for i := range slices.Backward(m.Dispatches) {
		if d := &m.Dispatches[i]; d.Verdict == ledger.VerdictAccepted {
			at, _ := now.WallOf(d.Started)
			return at
		}
	}
	return time.Time{}
}

// envByClock is what a rule may read, with the time of the claim by the clock of now, and
// whether that can be told.
func (t *try) envByClock(now ledger.Stamp) (rules.Env, bool) {
	m := t.mutation
	if t.undone != nil {
		m = t.undone
	}
	env := t.env()
	at, sameBoot := claimedAt(m, now)
	env.Mutation.ClaimedAt, env.Mutation.SentAt = at, sentAt(m, now)
	return env, sameBoot
}
