package app

import (
	"context"
	"fmt"
	"time"
)

// markGaps opens the gap of a ledger that was restored, and marks what was active
// before this one or an earlier one, ahead of recovery.
func (a *App) markGaps(ctx context.Context) error {
	if since := a.options.Restored; !since.IsZero() {
		// The same word may be of an earlier restore, whose gap the copy holds.
		held, _ := a.store.Behind()
		gap, err := a.ledger.RestoredBehind(ctx, since, held, a.options.Operator, "serve --restored "+since.Format(time.RFC3339))
		if err != nil {
			return fmt.Errorf("restored ledger: %w", err)
		}
		if gap.Open() {
			a.note(fmt.Sprintf("the ledger is a copy of %s: what would be sent, and may have been sent since, is asked about first; "+
				"keep-proxy ledger confirm ends that once you know what was done", gap.Since.UTC().Format(time.RFC3339)))
		}
	}
	if err := a.ledger.MarkGaps(ctx); err != nil {
		return err
	}
	return a.store.GapNoted()
}
