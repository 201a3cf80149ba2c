package ledger

import "time"

// Defaults of a policy whose number is missing.
const (
	DefaultSettle        = 5 * time.Minute
	DefaultConfirmations = 2
	DefaultSpacing       = 10 * time.Second
)

// bounds returns the policy's numbers for believing absence; a missing or
// negative one is the default.
func (p Policy) bounds() (settle time.Duration, confirmations int, spacing time.Duration) {
	settle, confirmations, spacing = p.Settle, p.Confirmations, p.Spacing
	if settle <= 0 {
		settle = DefaultSettle
	}
	if confirmations <= 0 {
		confirmations = DefaultConfirmations
	}
	if spacing <= 0 {
		spacing = DefaultSpacing
	}
	return settle, confirmations, spacing
}

// Settled reports whether every dispatch of m ended at least settle before now,
// so that none of them can take effect any more.
//
//  1. A recorded end counts on the monotonic clock while the boot is the same.
//  2. A recorded end of another boot counts from this process's start.
//  3. A dispatch without a recorded end counts from this process's start if its
//     owner is gone.
//  4. One that this process may still be sending has not ended.
//
// A record without dispatches, and a time that can't be compared, are not
// settled. The process must be the only one that has the ledger open.
func Settled(m *Mutation, now Stamp, process Process) bool {
	settle, _, _ := m.Policy.bounds()
	for i := range m.Dispatches {
		since, ok := quietSince(&m.Dispatches[i], now, process)
		if !ok {
			return false
		}
		if quiet, sameBoot := now.MonoSince(since); !sameBoot || quiet < settle {
			return false
		}
	}
	return len(m.Dispatches) > 0
}

// quietSince returns the moment from which the dispatch counts as ended, and
// whether it has ended at all.
func quietSince(d *Dispatch, now Stamp, process Process) (Stamp, bool) {
	switch {
	case d.Ended != (Stamp{}) && d.Ended.BootID != "" && d.Ended.BootID == now.BootID:
		return d.Ended, true
	case d.Ended != (Stamp{}), gone(d, process):
		return process.Started, true
	}
	return Stamp{}, false
}

// gone reports whether the dispatch's owner is known not to send any more.
func gone(d *Dispatch, process Process) bool {
	return process.ID != "" && d.Owner != process.ID
}

// Deniable reports whether a person may say that m did not happen. Without force
// settle must be over, so that each dispatch has a recorded end or a lost owner.
func Deniable(m *Mutation, now Stamp, process Process, force bool) bool {
	if force {
		return true
	}
	return Settled(m, now, process)
}

// deniableFrom returns the time by the wall clock from which Deniable needs no force, in whole
// seconds and none too early, and whether that can be told: not while a sending goes on.
func deniableFrom(m *Mutation, now Stamp, process Process) (time.Time, bool) {
	settle, _, _ := m.Policy.bounds()
	var left time.Duration
	for i := range m.Dispatches {
		since, ended := quietSince(&m.Dispatches[i], now, process)
		quiet, sameBoot := now.MonoSince(since)
		if !ended || !sameBoot {
			return time.Time{}, false
		}
		left = max(left, settle-quiet)
	}
	return now.Wall.Add(left + time.Second - 1).UTC().Truncate(time.Second), len(m.Dispatches) > 0
}

// stillPossible says that a sending of m may still take effect, and how long it may, so that
// a person can wait for the end of that instead of deciding before.
func stillPossible(m *Mutation, now Stamp, process Process) string {
	words := "a sending of it may still take effect"
	if at, known := deniableFrom(m, now, process); known {
		return words + " until " + at.Format(time.RFC3339) + "; before that it needs force"
	}
	return words + "; it needs force"
}
