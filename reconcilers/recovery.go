package reconcilers

import (
	"context"
	"fmt"
	"time"

	"keep-proxy/ledger"
)

// Recover moves on what a lost process left in flight; nothing is sent by that
// alone. Call it before the listener opens and before Run: with an error nothing
// may be sent. The runner looks at these records first of all, since each of them
// stops its scope and is likely to be found.
func (r *Reconciler) Recover(ctx context.Context) (ledger.RecoverCounts, error) {
	due := r.clock.Now()
	counts, err := r.ledger.Recover(ctx, func(*ledger.Mutation) time.Time { return due })
	if err != nil {
		return counts, fmt.Errorf("recover what was in flight: %w", err)
	}
	if counts != (ledger.RecoverCounts{}) {
		r.log.Warn().Int(string(ledger.NeedsReconcile), counts.NeedsReconcile).
			Int(string(ledger.Indeterminate), counts.Indeterminate).Int(string(ledger.Applied), counts.Applied).
			Int(string(ledger.Failed), counts.Failed).
			Msg("recovered mutations that a lost process left in flight")
	}
	r.Kick()
	return counts, nil
}
