package reconcilers

import (
	"context"
	"errors"
	"time"

	"keep-proxy/ledger"
)

// How often an outcome that the ledger did not take is offered again.
const (
	firstOffer = time.Second
	lastOffer  = 30 * time.Second
)

// record gives the end of a sending of m to the ledger. If the ledger doesn't take it,
// whatever the reason, the outcome is unknown, and the ledger can't stop what depends on it,
// so that it is stopped by [ledger.Unrecorded]; the outcome is kept and offered again until
// it is durable or the Reconciler is closed. The record stays taken until then, so that
// nothing is sent meanwhile.
func (r *Reconciler) record(ctx context.Context, m *ledger.Mutation, f ledger.Finish) (ledger.Finished, error) {
	kept := context.WithoutCancel(ctx)
	finished, err := r.ledger.Finish(kept, f)
	if taken(err) {
		return finished, err
	}
	// An inline try's caller can't park the record before this dispatch has its end,
	// so that end hands it to the runner itself.
	f.Pending = false
	r.busy.hold(f.Key)
	r.unrecorded.Add(m, "", ledger.Over{})
	r.metrics.Unrecorded(1)
	// After Close nobody offers it any more; the record stays taken.
	r.background.Go(func() {
		defer r.busy.free(f.Key)
		defer r.metrics.Unrecorded(-1)
		r.offer(kept, f)
	})
	return finished, err
}

func (r *Reconciler) offer(ctx context.Context, f ledger.Finish) {
	for wait := firstOffer; ; wait = min(2*wait, lastOffer) {
		timer := time.NewTimer(wait)
		select {
		case <-r.life.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if _, err := r.ledger.Finish(ctx, f); taken(err) {
			r.unrecorded.Recorded(f.Key)
			r.Kick()
			return
		}
	}
}

// taken reports whether the ledger has the outcome, or the record has moved on, so that
// offering it again can't help.
func taken(err error) bool {
	return err == nil || errors.Is(err, ledger.ErrNotAllowed) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrVersion)
}
