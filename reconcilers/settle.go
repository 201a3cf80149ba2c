package reconcilers

import (
	"slices"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// untilSettled is how long until settle is over for every dispatch of m, on the monotonic clock. It
// reports false while a dispatch of this process has no end, since settle has not begun. A recorded
// end counts within one boot; any other dispatch counts as ended when this process started.
//
// It only times the tries. Whether an absence counts is the ledger's decision.
func untilSettled(m *ledger.Mutation, now ledger.Stamp, process ledger.Process) (time.Duration, bool) {
	settle := positive(m.Policy.Settle, ledger.DefaultSettle)
	var left time.Duration
	for i := range m.Dispatches {
		d := &m.Dispatches[i]
		since, sameBoot := now.MonoSince(d.Ended)
		if !sameBoot {
			if d.Owner == process.ID && !d.Lost && d.Ended == (ledger.Stamp{}) {
				return 0, false
			}
			since, _ = now.MonoSince(process.Started)
		}
		left = max(left, settle-since)
	}
	return left, true
}

// untilConfirmed is how long until the next confirmation of an absence may begin. It holds if the
// try that began at at saw one that can count, and another is needed.
func untilConfirmed(m *ledger.Mutation, at, now ledger.Stamp) time.Duration {
	spacing := positive(m.Policy.Spacing, ledger.DefaultSpacing)
	from := at
	for i := range m.Observations {
		o := &m.Observations[i]
		if !o.Counted || o.Voided {
			continue
		}
		// A try that began too early does not count, so the one before it does.
		if gap, ok := at.MonoSince(o.At); ok && gap < spacing {
			from = o.At
		}
	}
	passed, _ := now.MonoSince(from)
	return spacing - passed
}

// elapsed is the running time since the outcome became unknown, or since a person
// asked to check again.
func elapsed(m *ledger.Mutation, now ledger.Stamp, process ledger.Process) time.Duration {
	if m.State != ledger.NeedsReconcile {
		return 0
	}
	return m.RunningAge + ran(m, now, process)
}

// ran is the running time between the previous try and one that begins at now. It counts from the
// latest of these: the record became unknown, its last observation or resend, this process's start.
// Time in which no process ran is not running time.
func ran(m *ledger.Mutation, now ledger.Stamp, process ledger.Process) time.Duration {
	passed, _ := now.MonoSince(process.Started)
	shorter := func(s ledger.Stamp) {
		if d, ok := now.MonoSince(s); ok {
			passed = min(passed, d)
		}
	}
	shorter(m.UnknownSince)
	for i := range m.Observations {
		shorter(m.Observations[i].At)
	}
	for i := range m.Dispatches {
		if m.Dispatches[i].Resend {
			shorter(m.Dispatches[i].Started)
		}
	}
	return passed
}

// claimedAt is when a mutation was claimed, by the wall clock of now, and whether that is known.
// The API is asked by its own clock, and only its difference from our clock of now is known. With a
// time from before our clock was set, the rule would look at the wrong time. It would miss what the
// API made, or take earlier objects for ours.
//
// A mutation that may have been sent in a gap was claimed, as a person says, when the gap began.
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

// sentAt is when the first sending of m began that may have taken effect, by the clock of now. It
// is zero if unknown, or if all of them failed for certain. What is like it and was made before
// that, as by somebody who saw the failure, is not of it.
func sentAt(m *ledger.Mutation, now ledger.Stamp) time.Time {
	for i := range m.Dispatches {
		if d := &m.Dispatches[i]; !d.Verdict.Failure() {
			at, _ := now.WallOf(d.Started)
			return at
		}
	}
	return time.Time{}
}

// acceptedAt is when the sending began whose 202 is followed, by the clock of now. It is zero if
// that is unknown.
func acceptedAt(m *ledger.Mutation, now ledger.Stamp) time.Time {
	for i := range slices.Backward(m.Dispatches) {
		if d := &m.Dispatches[i]; d.Verdict == ledger.VerdictAccepted {
			at, _ := now.WallOf(d.Started)
			return at
		}
	}
	return time.Time{}
}

// envByClock is what a rule may read, with the claim's time by the clock of now. It reports whether
// that time is known.
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
