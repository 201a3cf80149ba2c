package app

import (
	"context"

	"keep-proxy/ledger"
)

// deciding is the ledger as the admin API uses it: a person's decision wakes the
// runner, which would look at a record that is to be checked again only when
// something else is due.
type deciding struct {
	*ledger.Ledger
	kick func()
}

// decisions is the ledger that the admin API is given.
func (a *App) decisions() deciding { return deciding{Ledger: a.ledger, kick: a.reconciler.Kick} }

// RunObligation implements admin.Ledger.
func (d deciding) RunObligation(ctx context.Context, q ledger.RunObligation) (*ledger.Mutation, error) {
	m, err := d.Ledger.RunObligation(ctx, q)
	if err == nil {
		d.kick()
	}
	return m, err
}

// Resolve implements admin.Ledger.
func (d deciding) Resolve(ctx context.Context, r ledger.Resolve) (ledger.Finished, error) {
	finished, err := d.Ledger.Resolve(ctx, r)
	if err == nil {
		d.kick()
	}
	return finished, err
}
