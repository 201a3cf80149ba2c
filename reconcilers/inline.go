package reconcilers

import (
	"context"
	"fmt"

	"keep-proxy/ledger"
)

// Inline makes the one try that follows an uncertain dispatch, while m is still in
// flight, and returns the record as it is afterwards: applied if the effect was
// found or a resend succeeded, and still in flight if not, for the proxy to park.
// An absence is hardly ever believed here: settle would have to be over, as the rule's bounds
// allow where the connector's rate lets the asking wait.
//
// It takes at most Settings.Inline, but for what it has to record, and does nothing
// for a record that is not in flight with its dispatch judged, or whose API asked
// to be left alone for now, or while sending is kept back. With an error the record is as it was, as far as is
// known.
func (r *Reconciler) Inline(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
	waits := m.RetryAfter.After(r.clock.Now())
	if r.settings.Inline < 0 || waits || r.halted() || m.State != ledger.InFlight || !m.Unresolved() || !r.busy.claim(m.Key) {
		return m, nil
	}
	defer r.busy.free(m.Key)
	ctx, cancel := context.WithTimeout(ctx, r.settings.Inline)
	defer cancel()
	out := r.run(ctx, m, true)
	if out.err != nil {
		return m, fmt.Errorf("inline try at %s: %w", m.ID, out.err)
	}
	if out.finished.Mutation == nil {
		return m, nil
	}
	return out.finished.Mutation, nil
}
