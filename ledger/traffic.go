package ledger

import "time"

// Traffic notes, without waiting, that a request of the run came to the proxy. One request of each run costs that.
func (l *Ledger) Traffic(seen Run) {
	if seen.Traffic || seen.State.Ended() {
		return
	}
	l.note(func(tx Tx, _ time.Time) error {
		r, err := found(tx.Run(seen.ID))
		if err != nil || r == nil || r.Traffic || r.State.Ended() {
			return err
		}
		r.Traffic = true
		r.Version++
		return tx.PutRun(r)
	})
}

// unused reports whether the run requires traffic, and none came. What it should do went around the proxy, or wasn't done.
func (r *Run) unused() bool { return r.RequireTraffic && !r.Traffic }
