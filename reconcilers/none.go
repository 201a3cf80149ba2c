package reconcilers

import "context"

// none is the strategy of an operation that can't be asked about: it leaves the
// question to a person.
type none struct{ *Reconciler }

func (n none) try(ctx context.Context, t *try) (outcome, bool) {
	return n.exhaust(ctx, t, t.strategy.Why), true
}
