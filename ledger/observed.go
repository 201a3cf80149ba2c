package ledger

import "time"

// WhatObserved names the event of a request that no rule declares, and that was let through.
const WhatObserved = "observed"

// Observed appends, without waiting, that a request of no connector was let through, and counts it for its run.
func (l *Ledger) Observed(e Event) {
	l.note(func(tx Tx, at time.Time) error {
		e.At, e.Actor, e.What, e.Evidence = at, ActorProxy, WhatObserved, bound(e.Evidence)
		tx.Append(e)
		r, err := found(tx.Run(e.Run))
		if err != nil || r == nil || r.State.Ended() {
			return err
		}
		r.Observed++
		r.Version++
		return tx.PutRun(r)
	})
}
