package ledger

// maxObservations is how many observations a record lists before the oldest ones
// that count for nothing are dropped; their events remain.
const maxObservations = 64

// countsAsAbsence reports whether the observation is one of the confirmations of
// absence, and if not, why not. The rules are those of docs/semantics.md §6,
// "Believing absence", read again inside the transaction:
//
//	(a) the asking started after settle of every dispatch was over,
//	(b) and at least the spacing after the confirmation before it;
//	(c) the rule says that absence is proof;
//	(d) the record is not committed.
func (c *command) countsAsAbsence(m *Mutation, o *Observation, proof bool) (bool, string) {
	switch {
	case m.Committed:
		return false, "the mutation is known to have happened"
	case !proof:
		return false, "the rule doesn't take absence as proof"
	case !Settled(m, o.At, c.Process()) || !Settled(m, c.now, c.Process()):
		return false, "settle was not over when the asking started"
	}
	if _, ok := c.now.MonoSince(o.At); !ok {
		return false, "the time of asking can't be compared with now"
	}
	_, _, spacing := m.Policy.bounds()
	if last := m.lastConfirmation(o.At); last != nil {
		if gap, _ := o.At.MonoSince(last.At); gap < spacing {
			return false, "it came too soon after the confirmation before it"
		}
	}
	return true, ""
}

// confirmations counts the valid confirmations of absence that can be compared
// with now: those of another boot don't count.
func (m *Mutation) confirmations(now Stamp) int {
	n := 0
	for i := range m.Observations {
		if m.Observations[i].confirms(now) {
			n++
		}
	}
	return n
}

// recount takes back, where m is judged by longer bounds than before, what was counted under these and
// doesn't come up to the longer ones: by them it was asked too early, or too soon after the one before.
func (c *command) recount(m *Mutation, was Policy) {
	before, _, between := was.bounds()
	settle, _, spacing := m.Policy.bounds()
	if settle <= before && spacing <= between {
		return
	}
	var last *Observation
	for i := range m.Observations {
		o := &m.Observations[i]
		if !o.Counted || o.Voided {
			continue
		}
		if last != nil && o.At.BootID == last.At.BootID {
			gap, _ := o.At.MonoSince(last.At)
			o.Counted = gap >= spacing
		}
		if o.Counted = o.Counted && Settled(m, o.At, c.Process()); !o.Counted {
			o.Reason = join(o.Reason, "it was asked too early for the settings of now")
			continue
		}
		last = o
	}
}

// lastConfirmation is the newest valid confirmation of the same boot as now.
func (m *Mutation) lastConfirmation(now Stamp) *Observation {
	for i := len(m.Observations) - 1; i >= 0; i-- {
		if o := &m.Observations[i]; o.Counted && !o.Voided && o.At.BootID == now.BootID {
			return o
		}
	}
	return nil
}

// confirms reports whether o is a valid confirmation made before now in its boot.
func (o *Observation) confirms(now Stamp) bool {
	_, sameBoot := now.MonoSince(o.At)
	return o.Seen == SeenAbsent && o.Counted && !o.Voided && sameBoot
}

// addObservation appends o, and drops the oldest one that counts for nothing
// when there are too many.
func (m *Mutation) addObservation(o Observation) {
	m.Observations = append(m.Observations, o)
	if len(m.Observations) <= maxObservations {
		return
	}
	for i := range m.Observations {
		if old := &m.Observations[i]; old.Voided || !old.Counted {
			m.Observations = append(m.Observations[:i], m.Observations[i+1:]...)
			m.Dropped++
			return
		}
	}
}
