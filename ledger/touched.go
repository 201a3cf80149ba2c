package ledger

import (
	"iter"
	"time"
)

// Touches are the times at which something happened to m: it was made, sent, answered,
// looked up or changed.
func (m *Mutation) Touches() iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if !yield(m.CreatedAt) || !yield(m.UpdatedAt) {
			return
		}
		for i := range m.Dispatches {
			if d := &m.Dispatches[i]; !yield(d.Started.Wall) || !yield(d.Ended.Wall) {
				return
			}
		}
		for i := range m.Observations {
			if !yield(m.Observations[i].At.Wall) {
				return
			}
		}
	}
}

// Touched selects mutations by when something happened to them. Its zero value selects
// all.
type Touched struct {
	// Since and Until belong to it; a zero one is no limit.
	Since, Until time.Time
}

// All reports whether it selects all.
func (t Touched) All() bool { return t.Since.IsZero() && t.Until.IsZero() }

// Selects reports whether something happened to m in that time.
func (t Touched) Selects(m *Mutation) bool {
	if t.All() {
		return true
	}
	for at := range m.Touches() {
		if !at.IsZero() && !at.Before(t.Since) && (t.Until.IsZero() || !at.After(t.Until)) {
			return true
		}
	}
	return false
}
