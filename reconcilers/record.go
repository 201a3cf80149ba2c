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

// record gives the end of a resend to the ledger. If the ledger can't take it, the
// outcome is kept and offered again until it is durable or the Reconciler is
// closed; the record stays taken until then, so that nothing is sent meanwhile.
func (r *Reconciler) record(ctx context.Context, f ledger.Finish) (ledger.Finished, error) {
	finished, err := r.ledger.Finish(context.WithoutCancel(ctx), f)
	if err == nil || !errors.Is(err, ledger.ErrUnavailable) {
		return finished, err
	}
	// An inline try's caller can't park the record before this dispatch has its end,
	// so that end hands it to the runner itself.
	f.Pending = false
	r.busy.hold(f.Key)
	kept := context.WithoutCancel(ctx)
	// After Close nobody offers it any more; the record stays taken.
	r.background.Go(func() {
		defer r.busy.free(f.Key)
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
		if _, err := r.ledger.Finish(ctx, f); !errors.Is(err, ledger.ErrUnavailable) {
			r.Kick()
			return
		}
	}
}
