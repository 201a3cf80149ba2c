package reconcilers

import (
	"time"

	"keep-proxy/ledger"
)

// untilSettled is how long until settle is over for every dispatch of m, on the
// monotonic clock; it reports false while a dispatch of this process has no end,
// for then settle has not begun. A recorded end counts within one boot; any other
// dispatch counts as ended when this process started.
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

// untilConfirmed is how long until the next confirmation of an absence may begin,
// if this try saw one that can count and another is needed; at is when this try
// began.
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

// ran is the running time between the previous try and one that begins at now:
// from whichever is latest of the record becoming unknown, its last observation, its
// last resend and the start of this process. Time in which no process ran is not running time.
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
