package reconcilers

import (
	"context"
	"sync"
	"time"

	"keep-proxy/ledger"
)

// dueLimit is how many due records the runner looks at in one pass.
const dueLimit = 256

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
	round := &round{}
	for {
		started, next, paused := r.pass(ctx, round)
		round.tries.Wait()
		if started == 0 {
			round.counts.Next, round.counts.Paused = next, paused
			return round.counts
		}
	}
}

// Run works until ctx ends: it sleeps until a record is due, or Kick wakes it. Then
// it waits for what is under way, of which a resend is not cut short, and returns.
func (r *Reconciler) Run(ctx context.Context) {
	round := &round{wake: r.Kick}
	defer round.tries.Wait()
	for ctx.Err() == nil {
		_, next, _ := r.pass(ctx, round)
		r.sleep(ctx, next)
	}
}

// sleep waits until next, at most Poll, or for a Kick.
func (r *Reconciler) sleep(ctx context.Context, next time.Time) {
	wait := r.settings.Poll
	if until := next.Sub(r.clock.Now()); !next.IsZero() && until < wait {
		wait = max(until, 0)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.kick:
	case <-timer.C:
	}
}

// round is a number of tries that are waited for together.
type round struct {
	tries sync.WaitGroup
	// wake is called at each try's end; nil for nothing.
	wake func()

	wall wallWatch

	mu     sync.Mutex
	counts Counts
}

// pass starts a try for each due record for which there is a place, and returns how
// many, and when the next record will be due. What is due but has no place waits for
// the end of another try.
func (r *Reconciler) pass(ctx context.Context, in *round) (started int, next time.Time, paused bool) {
	if r.ledger.Healthy() != nil || ctx.Err() != nil || r.halted() {
		return 0, time.Time{}, true
	}
	now := r.now()
	keys, next, err := r.ledger.Due(ctx, now.Wall, dueLimit)
	if err != nil {
		return 0, time.Time{}, true
	}
	for _, k := range keys {
		if r.busy.open(k, now.Mono) && r.start(ctx, k, in) {
			started++
		}
	}
	if in.wall.setBack(now) {
		started += r.passStranded(ctx, now, in)
	}
	return started, next, false
}

// passStranded starts a try for each record whose next try a wall clock that was
// set back has put off. The try plans the next one anew.
func (r *Reconciler) passStranded(ctx context.Context, now ledger.Stamp, in *round) (started int) {
	keys, _, err := r.ledger.Due(ctx, now.Wall.Add(beyond), dueLimit)
	if err != nil {
		return 0
	}
	left := false
	for _, k := range keys {
		m, err := r.read(ctx, k)
		if err != nil || !stranded(m, now.Wall) {
			continue
		}
		if r.busy.open(k, now.Mono) && r.start(ctx, k, in) {
			started++
			continue
		}
		left = true
	}
	in.wall.looked(left)
	return started
}

// start makes one try in a goroutine of its own, if there is a place for it.
func (r *Reconciler) start(ctx context.Context, k ledger.Key, in *round) bool {
	m, err := r.read(ctx, k)
	if err != nil || !m.Queued() {
		return false
	}
	running, ok := r.busy.start(k, m.Connector)
	if !ok {
		return false
	}
	r.metrics.Working(running)
	r.working.Add(1)
	if r.halted() {
		// It was kept back before this try was counted.
		r.working.Add(-1)
		r.metrics.Working(r.busy.done(m.Connector))
		r.busy.free(k)
		return false
	}
	in.tries.Go(func() {
		defer r.working.Add(-1)
		out := r.work(ctx, m)
		if out.seen == "error" {
			r.busy.postpone(k, r.now().Mono, r.settings.Base)
		}
		in.count(out)
		r.metrics.Working(r.busy.done(m.Connector))
		r.busy.free(k)
		if in.wake != nil {
			in.wake()
		}
	})
	return true
}

// read reads a record as it is now.
func (r *Reconciler) read(ctx context.Context, k ledger.Key) (m *ledger.Mutation, err error) {
	err = r.ledger.View(ctx, func(v ledger.View) error {
		m, err = v.Mutation(k)
		return err
	})
	return m, err
}

// count adds a try.
func (in *round) count(out outcome) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.counts.Tried++
	switch {
	case out.seen == "dropped":
		in.counts.Dropped++
	case out.err != nil || out.finished.Mutation == nil:
		in.counts.Errors++
	case out.finished.Mutation.State == ledger.Applied:
		in.counts.Applied++
	case out.finished.Mutation.State == ledger.Failed:
		in.counts.Failed++
	case out.finished.Mutation.State == ledger.Indeterminate:
		in.counts.Indeterminate++
	default:
		in.counts.Waiting++
	}
}
