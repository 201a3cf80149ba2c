package reconcilers

import (
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

func (r *Reconciler) stamp() clock.Stamp { return clock.Take(r.clock) }

// ended returns the dispatch with its end, its verdict and what was seen of it.
func ended(d ledger.Dispatch, ev upstream.Evidence, v upstream.Verdict) ledger.Dispatch {
	d.Ended = ledger.Stamp(ev.Ended)
	d.Verdict, d.Class, d.Reason = verdict(ev, v.Kind), ledger.Class(v.Class), v.Reason
	d.BytesWritten, d.Head, d.Status, d.BodyComplete = ev.BytesWritten, ev.Head, ev.Status, ev.BodyComplete
	d.ErrorClass, d.Error = string(ev.ErrorClass), ev.Error
	d.Protocol, d.Remote = ev.Protocol, ev.Remote
	return d
}

// verdict translates a kind of verdict; an unknown one is uncertain.
func verdict(ev upstream.Evidence, k upstream.VerdictKind) ledger.Verdict {
	switch k {
	case upstream.Applied, upstream.TooLarge:
		return ledger.VerdictApplied
	case upstream.Committed:
		return ledger.VerdictCommitted
	case upstream.Failed:
		if ev.NotSent || ev.Refused && !ev.Head {
			return ledger.VerdictNotSent
		}
		return ledger.VerdictFailed
	case upstream.Uncertain:
	}
	return ledger.VerdictUncertain
}
