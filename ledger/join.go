package ledger

import "context"

// Join decides about a request that waited for another run's, or an unmanaged
// scope's, sending or replay of the mutation, and would get its answer. What Claim
// refuses because of the run, the item or a repeat is refused here, too, the mutation
// counts as one of the run's, and one of many items takes the item. Nothing is ever dispatched: DecideJoin says
// that the request may have the answer. Errors are as for Claim.
func (l *Ledger) Join(ctx context.Context, q Claim) (Claimed, error) {
	return l.claiming(ctx, &q, (*claiming).join)
}

// join takes the steps of a claim that are about who asks.
func (c *claiming) join() (*Claimed, error) {
	refusal, err := c.refusedBy(c.checkRun, c.checkItem, c.checkAllowance, c.takeItem)
	if err != nil || refusal != nil {
		return refusal, err
	}
	if len(c.matches) > 1 {
		return c.ambiguous()
	}
	if c.m == nil {
		return nil, invalid("there is no mutation %s to wait for", c.q.Key.ID())
	}
	if c.m.State == Applied || c.m.State == Skipped || c.m.Watching {
		if again, err := c.repeated(); err != nil || again {
			return c.refuseRepeat(), err
		}
	}
	return &Claimed{Decision: DecideJoin}, c.useRun(false)
}
