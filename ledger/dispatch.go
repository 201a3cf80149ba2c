package ledger

import "slices"

// maxDispatches is how many dispatches a record lists before the oldest ones
// that can't matter any more are dropped; their events remain.
const maxDispatches = 32

// addDispatch appends d. What steps of an earlier one gave tells nothing about it.
func (m *Mutation) addDispatch(d Dispatch) {
	m.Kept = nil
	m.Dispatches = append(m.Dispatches, d)
	if len(m.Dispatches) <= maxDispatches {
		return
	}
	kept := m.Dispatches[:0]
	excess := len(m.Dispatches) - maxDispatches
	for _, d := range m.Dispatches {
		if excess > 0 && d.Generation < m.Generation && d.Verdict.Failure() {
			excess--
			continue
		}
		kept = append(kept, d)
	}
	m.Dispatches = kept
}

// generationFailed reports whether every dispatch of the present generation
// ended in a definite failure verdict, proven not sent included: then, and only
// then, the next claim raises the generation.
func (m *Mutation) generationFailed() bool {
	sent := false
	for i := range m.Dispatches {
		if d := &m.Dispatches[i]; d.Generation == m.Generation {
			if !d.Verdict.Failure() {
				return false
			}
			sent = true
		}
	}
	return sent
}

// carriesOther reports whether the present generation, which stays open, has
// carried another payload than digest: with a native key it must never carry two.
func (m *Mutation) carriesOther(digest string) bool {
	if !m.Policy.NativeKey || m.generationFailed() {
		return false
	}
	for i := range m.Dispatches {
		if d := &m.Dispatches[i]; d.Generation == m.Generation && d.PayloadDigest != digest {
			return true
		}
	}
	return false
}

// Covers reports whether the stored result answers a request with these digests:
// the same payload, one that differs in minor places only, or an accepted one.
func (m *Mutation) Covers(payload, significant string) bool {
	if payload == m.PayloadDigest || (significant != "" && significant == m.SignificantDigest) {
		return true
	}
	return slices.Contains(m.Accepted, payload)
}
