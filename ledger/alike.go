package ledger

import "context"

// SentAlike names another mutation of m's operation that may have made what was made since
// m was first sent, and says why; "" if there is none. Of those whose sendings may have taken
// effect since then it asks alike, which says whether what was found may be of that one as
// well as of m. Another version of the rule may call the operation by another name, so that
// alike is asked about whatever was sent under one, too.
//
// One that failed made nothing, and of one that was asked about it is known what it made:
// that is its evidence, and nobody else's. An answer alone doesn't name what it made.
func (l *Ledger) SentAlike(ctx context.Context, m *Mutation, alike func(other *Mutation) bool) (string, error) {
	first := m.Dispatches[0].Started
	mayHaveMadeIt := func(other *Mutation) bool {
		return (other.Operation == m.Operation || other.ConnectorHash != m.ConnectorHash) &&
			other.State != Failed && !other.namesItsObject() && other.mayTakeEffectAfter(first)
	}
	return l.touchedSince(ctx, m, mayHaveMadeIt, func(other *Mutation) string {
		if !alike(other) {
			return ""
		}
		return "it may be what mutation " + other.ID + " made, which can't be told apart"
	})
}

// namesItsObject reports whether what m made was found, and is its evidence. Several objects by a tie that
// isn't strong are nobody's: which of them is m's, if any, isn't known.
func (m *Mutation) namesItsObject() bool {
	if m.State != Applied {
		return false
	}
	for i := range m.Observations {
		o := &m.Observations[i]
		if (o.Seen == SeenApplied || o.Seen == SeenDuplicate && o.Strong) && len(o.Objects) > 0 {
			return true
		}
	}
	return false
}

// mayTakeEffectAfter reports whether a sending of m may have taken effect after then. A
// success took effect before its answer had come; what ended otherwise may do so later.
func (m *Mutation) mayTakeEffectAfter(then Stamp) bool {
	for i := range m.Dispatches {
		d := &m.Dispatches[i]
		ago, known := then.MonoSince(d.Ended)
		before := known && ago > 0 || d.Ended.BootID != "" && d.Ended.BootID != then.BootID
		succeeded := d.Verdict == VerdictApplied || d.Verdict == VerdictCommitted
		if !d.Verdict.Failure() && !d.unsent() && (!succeeded || !before) {
			return true
		}
	}
	return false
}
