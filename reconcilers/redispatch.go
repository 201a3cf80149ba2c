package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// redispatch sends a mutation again that a believed absence has queued. It sends the stored request
// under the same vendor key, recorded first in a transaction with the gate. What comes of it is
// judged and recorded like any dispatch; an unknown end is the runner's again.
func (r *Reconciler) redispatch(ctx context.Context, m *ledger.Mutation) outcome {
	t := &try{mutation: m, at: r.now(), sends: true}
	return r.attempt(ctx, t, func() outcome { return r.redispatchNow(ctx, t, m) })
}

func (r *Reconciler) redispatchNow(ctx context.Context, t *try, m *ledger.Mutation) outcome {
	if s, err := r.prepare(ctx, t); err != nil {
		// An account that isn't told now may be told later.
		_, untold := errors.AsType[untoldError](err)
		return r.callOff(ctx, t, s.reached && !untold, err)
	}
	if len(t.missing) > 0 {
		return r.callOff(ctx, t, true, errors.New("no credential is configured in place of "+strings.Join(t.missing, ", ")))
	}
	request, err := r.request(t, t.operation.Timeout, nil)
	if err != nil {
		return r.callOff(ctx, t, true, fmt.Errorf("the stored request can't be sent: %w", err))
	}
	if err := r.limits.wait(ctx, t.connector); err != nil {
		return outcome{seen: "stopped", moved: ledger.Moved{Mutation: m}}
	}
	// From here on the sending has its own time: stopping waits for it.
	ctx = context.WithoutCancel(ctx)
	moved, d, err := r.ledger.Redispatch(ctx, ledger.Redispatch{
		Key: m.Key, Version: m.Version, DispatchID: r.newID(), NextTryAt: r.laterRedispatch(m), Caution: cautionOf(t.operation),
	})
	if err != nil {
		return r.lost(outcome{err: err, reason: "the redispatch was not recorded"})
	}
	if d == nil {
		return outcome{seen: "stopped", moved: ledger.Moved{Mutation: moved}}
	}
	after := func(f *ledger.EndDispatch) {
		f.NextTryAt = r.after(moved, t.at, sighting{notBefore: f.RetryAfter})
		if moved.Undo != nil && f.Dispatch.Verdict.Failure() {
			f.NextTryAt = later(r.laterRedispatch(m), f.RetryAfter)
		}
	}
	t.mutation = moved
	if broke := t.guarded(func() {
		redispatchRecorded.Pass()
		if moved.VendorKey != m.VendorKey {
			// After nothing but failures an undo's record has got a new vendor key. What goes out must carry
			// the recorded one.
			request, err = r.request(t, t.operation.Timeout, nil)
		}
	}); broke != "" {
		err = errors.New(broke)
	}
	if err != nil {
		return r.lost(r.unsent(ctx, t, moved, *d, err, after))
	}
	return r.lost(r.sendRecorded(ctx, t, moved, request, *d, redispatchAnswered, after))
}

// unsent records the end of a dispatch for which nothing was sent.
func (r *Reconciler) unsent(ctx context.Context, t *try, m *ledger.Mutation, d ledger.Dispatch, why error, after func(*ledger.EndDispatch)) outcome {
	evidence := upstream.Evidence{NotSent: true, Ended: r.stamp(), ErrorClass: upstream.ErrorRequest, Error: t.secrets.Text(why.Error())}
	v := upstream.Judge(evidence, upstream.Facts{}, verdict.Opinion{})
	f := ledger.EndDispatch{Key: m.Key, Dispatch: dispatch.Ended(d, evidence, v)}
	after(&f)
	out := outcome{seen: string(f.Dispatch.Verdict), reason: v.Reason}
	out.moved, out.err = r.record(ctx, m, f, nil)
	return out
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// callOff takes the record out of the queue, or, for what may mend itself, puts it
// off.
func (r *Reconciler) callOff(ctx context.Context, t *try, forGood bool, why error) outcome {
	out := outcome{seen: "stopped", reason: shorten(t.secrets.Text(why.Error()))}
	var until time.Time
	if !forGood {
		until = r.laterRedispatch(t.mutation)
	}
	out.moved.Mutation, out.err = r.ledger.CallOffRedispatch(
		context.WithoutCancel(ctx), t.mutation.Key, t.mutation.Version, until, out.reason)
	return r.lost(out)
}

// laterRedispatch is when a redispatch that may not go out now is tried again. It backs off like
// asking, from when it was queued.
func (r *Reconciler) laterRedispatch(m *ledger.Mutation) time.Time {
	now := r.now()
	waited := max(now.Wall.Sub(m.RedispatchSince), 0)
	return now.Wall.Add(r.settings.backoff(waited, r.random()))
}
