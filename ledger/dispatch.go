package ledger

import (
	"context"
	"maps"
	"slices"

	"keep-proxy/internal/verdict"
)

// maxDispatches is how many dispatches a record lists; older ones that don't matter are in the events.
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

// generationFailed reports whether every dispatch of the present generation failed for certain: then the
// next claim raises it.
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

// carriesOther reports whether the open generation of a native key has carried another payload.
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

// Covers reports whether a request with these digests has the same payload, a minor variant, or an accepted
// one.
func (m *Mutation) Covers(payload, significant string) bool {
	if payload == m.PayloadDigest || (significant != "" && significant == m.SignificantDigest) {
		return true
	}
	return slices.Contains(m.Accepted, payload)
}

// whyUnsent is why a sending in steps that was lost early is a failure.
const whyUnsent = "nothing was kept of its first step, so that the step that takes effect was not sent"

// Bounds of what preparing steps may leave in a record.
const (
	maxKept      = 32
	maxKeptBytes = 16 << 10
)

// Prepared keeps what a dispatch's preparing steps gave, as JSON, before the step that takes effect. After an
// error that step must not be sent, and the dispatch has had no effect, whatever became durable. Only its
// process may call it, once, while the record is in flight by it.
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

// unsent reports whether the newest dispatch had no effect for certain, and no earlier one is unresolved.
func (m *Mutation) unsent() bool {
	d := m.Current()
	return d != nil && d.unsent() && (d.Verdict == "" || d.Verdict.Failure()) && !m.openBefore(len(m.Dispatches)-1)
}

// fail gives a dispatch that was not sent its verdict.
func (d *Dispatch) fail(class verdict.Class, reason string) {
	d.Verdict, d.Class, d.Reason, d.Resolved = VerdictNotSent, class, reason, true
}
