package ledger

import "context"

// WhatObserved names the event of a request that no rule declares, and that was let through.
const WhatObserved = "observed"

// Observed notes durably that a request of no connector is let through, and counts it for its run, before it is sent.
func (l *Ledger) Observed(ctx context.Context, e Event) error {
	return l.update(ctx, func(c *command) error {
		e.At, e.Actor, e.What, e.Evidence = c.now.Wall, ActorProxy, WhatObserved, bound(e.Evidence)
		c.Append(e)
		r, err := found(c.Run(e.Run))
		if err != nil || r == nil || r.State.Ended() {
			return err
		}
		r.Observed++
		return c.putRun(r)
	})
}
