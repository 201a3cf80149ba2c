package ledger

import "slices"

// unwatch ends the following of a 202. Unless the mutation is applied its stored answer
// goes: it promised only what then didn't come, and is nobody's result.
func (m *Mutation) unwatch() {
	if !m.Watching {
		return
	}
	m.Watching = false
	if m.State != Applied {
		m.Result, m.ResultState = nil, ResultNone
	}
}

// watchOver reports whether a 202 was followed for as long as its rule says, on the
// clock that passed more.
func (c *command) watchOver(m *Mutation) bool { return c.now.Age(m.UnknownSince) >= m.Policy.WatchMax }

// judgeWatched turns what a look at an accepted mutation showed into a trigger: its end,
// or nothing yet. Its result is the 202 that the script got.
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

// failFollowed gives the dispatch whose 202 was followed the verdict that its end is: a definite
// failure, so that the next sending isn't answered by the API, for its vendor key, with this one's 202.
// It returns that dispatch, nil for none.
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
func (m *Mutation) watchClass() Class {
	if m.Policy.WatchClass == "" {
		return ClassPrecondition
	}
	return m.Policy.WatchClass
}
