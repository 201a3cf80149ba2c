package ledger

import (
	"context"
	"maps"
)

// whyUnsent is why a sending in steps that was lost early is a failure.
const whyUnsent = "nothing was kept of its first step, so that the step that takes effect was not sent"

// Bounds of what preparing steps may leave in a record.
const (
	maxKept      = 32
	maxKeptBytes = 16 << 10
)

// Prepared keeps what the preparing steps of a dispatch gave, each value as JSON, before
// the step that can take effect is sent. With an error that step must not be sent: the
// dispatch is then proven not to have taken effect, whether or not the values became
// durable. Only the process that owns the dispatch may call it, once, while the record
// is in flight by this dispatch.
func (l *Ledger) Prepared(ctx context.Context, key Key, dispatchID string, kept map[string]string) (*Mutation, error) {
	size := 0
	for name, value := range kept {
		size += len(name) + len(value)
	}
	if len(kept) > maxKept || size > maxKeptBytes {
		return nil, invalid("a preparing step keeps %d values of %d bytes; %d of %d are the most", len(kept), size, maxKept, maxKeptBytes)
	}
	return evaluate(ctx, l, func(c *command) (*Mutation, error) {
		m, d, err := c.fenced(key, dispatchID)
		if err != nil {
			return nil, err
		}
		if m.State != InFlight || m.Current().ID != d.ID || d.Verdict != "" || d.Lost || !d.unsent() {
			return nil, &NotAllowedError{State: m.State, On: "prepared", Reason: "dispatch " + d.ID + " is not being prepared"}
		}
		m.Kept, d.Prepared = maps.Clone(kept), true
		return m, c.store(m, m.State, "prepared", c.at(ActorProxy, "what its preparing steps gave is kept; now it is sent"), d.ID, "")
	})
}

// unsent reports whether the newest dispatch is proven to have had no effect, and no
// earlier one is unresolved.
func (m *Mutation) unsent() bool {
	d := m.Current()
	return d != nil && d.unsent() && (d.Verdict == "" || d.Verdict.Failure()) && !m.openBefore(len(m.Dispatches)-1)
}

// fail gives a dispatch that was not sent its verdict.
func (d *Dispatch) fail(class Class, reason string) {
	d.Verdict, d.Class, d.Reason, d.Resolved = VerdictNotSent, class, reason, true
}
