package ledger

import (
	"slices"

	"keep-proxy/internal/verdict"
)

// unwatch ends the following of a 202, which is nobody's result unless the mutation is applied.
func (m *Mutation) unwatch() {
	if !m.Watching {
		return
	}
	m.Watching = false
	if m.State != Applied {
		m.Result, m.ResultState = nil, ResultNone
	}
}

// watchOver reports whether a 202 was followed for as long as its rule says.
func (c *command) watchOver(m *Mutation) bool { return c.now.Age(m.UnknownSince) >= m.Policy.WatchMax }

// judgeWatched turns what a look at an accepted mutation showed into a trigger. Its result is the 202.
func (c *command) judgeWatched(m *Mutation, o *Observation) (Trigger, Facts, error) {
	switch o.Seen {
	case SeenApplied:
		return OnObservedApplied, FactResult.If(m.Result != nil), nil
	case SeenFailed:
		// An earlier sending may have been accepted too, under another name.
		followed := m.followed()
		for i := range m.Dispatches {
			if !m.Dispatches[i].Resolved && i != followed {
				o.Reason = join(o.Reason, "an earlier sending of it is unresolved")
				return OnWatchOver, 0, nil
			}
		}
		return OnWatchFailed, 0, nil
	default:
		o.Seen = SeenRetry
		return OnRetry, 0, nil
	}
}

// followed is the dispatch whose 202 is followed: the last one that was accepted, -1 for none.
func (m *Mutation) followed() int {
	for i, d := range slices.Backward(m.Dispatches) {
		if d.Verdict == VerdictAccepted {
			return i
		}
	}
	return -1
}

// failFollowed makes the dispatch whose 202 was followed a failed one, so that the next sending gets another vendor
// key. It returns that dispatch, nil for none.
func (m *Mutation) failFollowed() *Dispatch {
	i := m.followed()
	if i < 0 {
		return nil
	}
	d := &m.Dispatches[i]
	d.Verdict, d.Class, d.Reason = VerdictFailed, m.Class, m.Reason
	return d
}

// watchClass is the class of a failure of what was accepted.
func (m *Mutation) watchClass() verdict.Class {
	if m.Policy.WatchClass == "" {
		return verdict.Precondition
	}
	return m.Policy.WatchClass
}
