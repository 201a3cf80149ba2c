package reconcilers

import (
	"context"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
)

// record gives the end of a sending of m to the ledger. If the ledger doesn't take it, the
// recorder goes on trying until it does, or the Reconciler is closed. The record stays taken
// until then, so that nothing is sent meanwhile.
func (r *Reconciler) record(ctx context.Context, m *ledger.Mutation, f ledger.Finish, answer *dispatch.Content) (ledger.Finished, error) {
	finished, err := r.ledger.Finish(context.WithoutCancel(ctx), f)
	if err == nil || dispatch.Permanent(err) {
		return finished, err
	}
	// An inline try's caller can't park the record before this dispatch has its end,
	// so that end hands it to the runner itself.
	f.Pending = false
	r.busy.hold(f.Key)
	r.recorder.GoOn(&dispatch.Outcome{
		Mutation: m, Content: answer,
		Record: func(ctx context.Context) (ledger.Finished, error) { return r.ledger.Finish(ctx, f) },
		Taken: func() {
			r.busy.free(f.Key)
			r.Kick()
		},
	})
	return finished, err
}
