package reconcilers

import (
	"context"
	"time"

	"keep-proxy/ledger"
)

// Counts say what one round came to.
type Counts struct {
	// Tried is how many records were tried.
	Tried int
	// Applied, Failed and Indeterminate are the states they were moved on to.
	Applied, Failed, Indeterminate int
	// Waiting are those whose outcome is still unknown.
	Waiting int
	// Dropped are those that somebody else moved on meanwhile.
	Dropped int
	// Errors are those whose try the ledger did not take.
	Errors int
	// Paused says that the ledger is not healthy, so that nothing was tried.
	Paused bool
	// Next is when a record will be due; zero if none is waiting.
	Next time.Time
}

// RunOnce tries every record that is due now, and returns when all of the tries
// have ended. It is one round of [Reconciler.Run].
func (r *Reconciler) RunOnce(ctx context.Context) Counts {
	round := newRound()
	for {
		started, paused := r.pass(ctx, round)
		round.tries.Wait()
		if started == 0 {
			round.counts.Next, round.counts.Paused = round.next, paused
			return round.counts
		}
		round.outdate()
	}
}

// Run works until ctx ends: it sleeps until a record is due, or Kick wakes it. Then
// it waits for what is under way, of which a resend is not cut short, and returns.
func (r *Reconciler) Run(ctx context.Context) {
	round := newRound()
	defer round.tries.Wait()
	for ctx.Err() == nil {
		_, paused := r.pass(ctx, round)
		r.sleep(ctx, round, paused)
	}
}

// sleep waits until what is due has to be listed anew, or until a Kick. It also ends with a try,
// whose place the next one takes.
func (r *Reconciler) sleep(ctx context.Context, in *round, paused bool) {
	wait := r.settings.Poll
	if !paused && !r.busy.full() {
		wait = min(in.rest(r.now()), wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-in.ended:
	case <-r.kick:
		in.outdate()
	case <-timer.C:
		in.outdate()
	}
}

// pass starts a try for each due record for which there is a place, and returns how
// many. What is due but has no place stands in line for the end of another try.
func (r *Reconciler) pass(ctx context.Context, in *round) (started int, paused bool) {
	if r.ledger.Healthy() != nil || ctx.Err() != nil || r.halted() {
		in.forget()
		return 0, true
	}
	now := r.now()
	if !r.busy.full() && in.listable(now.Mono) {
		if err := r.list(ctx, now, in); err != nil {
			in.forget()
			return 0, true
		}
	}
	for ctx.Err() == nil && !r.halted() && !r.busy.full() {
		k, ok := in.lines.pick(r.busy)
		if !ok {
			break
		}
		if r.start(ctx, k, in) {
			started++
		}
	}
	return started, false
}

// list puts in line what is due, and what a wall clock that was set back has delayed. The latter's
// try plans the next one anew.
func (r *Reconciler) list(ctx context.Context, now ledger.Stamp, in *round) error {
	if in.listing() {
		in.wall.open = true
	}
	due, next, err := r.ledger.Due(ctx, now.Wall)
	if err != nil {
		return err
	}
	in.lines.list()
	for _, k := range due {
		if in.lines.has(k) {
			continue
		}
		if connector := r.connectorOf(ctx, k); connector != "" {
			in.lines.put(connector, k)
		}
	}
	in.sooner(next)
	if in.wall.setBack(now) {
		if err := r.listStranded(ctx, now, in); err != nil {
			return err
		}
	}
	in.lines.listed(now.Mono, r.now().Mono)
	return nil
}

// listStranded puts what isn't due but was written at a time that is still to come. If a line has no
// room for it, the next listing looks again.
func (r *Reconciler) listStranded(ctx context.Context, now ledger.Stamp, in *round) error {
	later, _, err := r.ledger.Due(ctx, now.Wall.Add(beyond))
	if err != nil {
		return err
	}
	all := true
	for _, k := range later {
		if in.lines.has(k) {
			continue
		}
		if m, err := r.read(ctx, k); err == nil && stranded(m, now.Wall) {
			all = in.lines.put(m.Connector, k) && all
		}
	}
	if all {
		in.wall.looked()
	}
	return nil
}

// connectorOf returns the connector of a queued record, "" for any other.
func (r *Reconciler) connectorOf(ctx context.Context, k ledger.Key) string {
	if connector := r.ledger.ConnectorOf(k); connector != "" {
		return connector
	}
	if m, err := r.read(ctx, k); err == nil && m.Queued() {
		return m.Connector
	}
	return ""
}

// start makes one try in its own goroutine if the record is still due. If there is no place for it,
// it joins its connector's line.
func (r *Reconciler) start(ctx context.Context, k ledger.Key, in *round) bool {
	now := r.now()
	m, err := r.read(ctx, k)
	if err != nil || !m.Queued() {
		return false
	}
	late := stranded(m, now.Wall)
	if !r.busy.open(k, now.Mono) {
		if late {
			in.wall.open = true
		}
		return false
	}
	if m.NextTryAt.After(now.Wall) && !late {
		in.sooner(m.NextTryAt)
		return false
	}
	if !r.busy.start(k, m.Connector) {
		in.lines.put(m.Connector, k)
		return false
	}
	r.metrics.Working(1)
	r.working.Add(1)
	if r.halted() {
		// It was kept back before this try was counted.
		r.working.Add(-1)
		r.metrics.Working(-1)
		r.busy.done(m.Connector)
		r.busy.free(k)
		in.forget()
		return false
	}
	in.tries.Go(func() {
		defer r.working.Add(-1)
		out := r.work(ctx, m)
		if out.seen == "error" {
			r.busy.postpone(k, r.now().Mono, r.settings.Base)
		}
		r.metrics.Working(-1)
		r.busy.done(m.Connector)
		r.busy.free(k)
		in.end(out)
	})
	return true
}

// read reads a record as it is now.
func (r *Reconciler) read(ctx context.Context, k ledger.Key) (m *ledger.Mutation, err error) {
	err = r.ledger.Read(ctx, func(v ledger.View) error {
		m, err = v.Mutation(k)
		return err
	})
	return m.Clone(), err
}
