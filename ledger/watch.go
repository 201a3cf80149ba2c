package ledger

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
		for i := range m.Dispatches {
			if d := &m.Dispatches[i]; !d.Resolved && d.Verdict != VerdictAccepted {
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

// watchClass is the class of a failure of what was accepted.
func (m *Mutation) watchClass() Class {
	if m.Policy.WatchClass == "" {
		return ClassPrecondition
	}
	return m.Policy.WatchClass
}
