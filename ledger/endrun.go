package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"keep-proxy/internal/verdict"
)

// ending says how a run ends.
type ending struct {
	state  RunState
	class  verdict.Class
	reason string
	// cause is the ID of the mutation that ended it, if one did.
	cause string
	actor string
	// failed makes the item failed: a definite failure, or finish with outcome failed.
	failed bool
}

// end ends a run that goes on. In a grace it ends by a definite failure, of which a person is asked.
func (c *command) end(r *Run, e ending) error { return c.endBy(r, e, nil) }

// endBy is end by a definite failure of the mutation of this key, nil for none.
func (c *command) endBy(r *Run, e ending, key *Key) error {
	graced := e.state == RunAborted && r.State == RunFailing
	if graced {
		if err := c.endGraces(r, key); err != nil {
			return err
		}
	}
	e.failed = graced || e.state == RunAborted && e.failed
	r.State, r.Class, r.Reason, r.Cause, r.EndedAt = e.state, e.class, e.reason, e.cause, c.now.Wall
	r.FailingUntil = time.Time{}
	if err := c.putRun(r); err != nil {
		return fmt.Errorf("ending run %s: %w", r.ID, err)
	}
	c.tell("run_"+string(e.state), c.at(e.actor, e.reason), Event{Mutation: e.cause, Run: r.ID, Workflow: r.Workflow, Item: r.Item})
	if r.Many() {
		return c.failItemOf(r, e, key)
	}
	item, err := found(c.Item(r.Workflow, r.Item))
	if err != nil || item == nil || item.ActiveRun != r.ID {
		return err
	}
	item.ActiveRun = ""
	if e.failed && item.State == ItemOpen {
		item.State, item.Reason, item.Cause = ItemFailed, e.reason, e.cause
	}
	return c.putItem(item)
}

// onRun evaluates fn on a run that goes on; one that has ended is returned as it is.
func (l *Ledger) onRun(ctx context.Context, id string, fn func(*command, *Run) error) (*Run, error) {
	return evaluate(ctx, l, func(c *command) (*Run, error) {
		r, err := c.Run(id)
		switch {
		case err != nil:
			return nil, fmt.Errorf("run %s: %w", id, err)
		case r.State.Ended():
			return r, nil
		}
		return r, fn(c, r)
	})
}

// EndRun ends a run from outside, such as `runs end`. One that has ended is returned as it is.
func (l *Ledger) EndRun(ctx context.Context, id string, class verdict.Class, reason, actor string) (*Run, error) {
	if reason == "" || actor == "" {
		return nil, invalid("ending a run needs a reason and an actor")
	}
	return l.onRun(ctx, id, func(c *command, r *Run) error {
		return c.end(r, ending{RunAborted, class, reason, r.Cause, actor, false})
	})
}

// RefuseRun ends a managed run after one of its requests was refused because of a stop. What the run saw of the world
// is incomplete. The ID of the mutation that stops is cause. A run that has ended is returned as it is.
func (l *Ledger) RefuseRun(ctx context.Context, id, why, cause string) (*Run, error) {
	return l.onRun(ctx, id, func(c *command, r *Run) error { return c.refuse(r, why, cause) })
}

func (c *command) refuse(r *Run, why, cause string) error {
	return c.end(r, ending{RunAborted, verdict.Transient, why, cause, ActorProxy, false})
}

// FailRun lets a run meet the failure of another run's dispatch that it joined, as its on_failure says. A run
// that has ended is returned as it is.
func (l *Ledger) FailRun(ctx context.Context, id string, f Failure) (*Run, error) {
	return l.onRun(ctx, id, func(c *command, r *Run) error { return c.fail(r, f) })
}

// Failure is a definite failure of one mutation, as a run meets it.
type Failure struct {
	Key          Key
	Digest       string // of the payload that the run wants sent
	Class        verdict.Class
	Reason       string
	Unauthorized bool
	RetryAfter   time.Time // when the API wants to be asked again, if it said so
}

// mostFailing is by how many mutations a run may fail at once. Beyond them a retry waits as any other mutation does.
const mostFailing = 64

// fail makes r meet a definite failure:
//
//  1. With on_failure return the script is told, and the run goes on.
//  2. A failure that is neither transient nor a 401, or comes when the grace is over, aborts the run and fails the item.
//     So does one whose RetryAfter leaves no time for a try.
//  3. Any other leaves the run failing by this mutation too. Its grace lasts RetryGrace, or as long beyond RetryAfter.
func (c *command) fail(r *Run, f Failure) error {
	if r.OnFailure == FailureReturn {
		return nil
	}
	all, i := r.failing(f.Key)
	if i < 0 {
		i, all = len(all), append(all, Failing{FailingKey: f.Key, FailingDigest: f.Digest,
			FailingUntil: c.now.Wall.Add(c.config.RetryGrace), FailingLimit: c.now.Wall.Add(c.config.RetryGraceMax)})
	}
	g := &all[i]
	late := !f.RetryAfter.IsZero() && g.FailingLimit.Sub(f.RetryAfter) < time.Second
	if late {
		f.Reason += "; it asks to wait until " + f.RetryAfter.UTC().Format(time.RFC3339) + ", longer than runs.retry_grace_max"
	}
	if late || f.Class != verdict.Transient && !f.Unauthorized || over(c.now, g.FailingUntil) || g.FailingTries >= c.config.RetryGraceTries {
		return c.endBy(r, ending{RunAborted, f.Class, f.Reason, f.Key.ID(), ActorProxy, true}, &f.Key)
	}
	if i >= mostFailing {
		return nil
	}
	g.FailingClass, g.FailingReason = f.Class, f.Reason
	until := f.RetryAfter.Add(c.config.RetryGrace)
	if until = until.Add(min(0, g.FailingLimit.Sub(until))); until.After(g.FailingUntil) {
		g.FailingUntil = until
	}
	r.failBy(all)
	return c.putRun(r)
}

// failing lists by what a failing run fails, the grace that ends first before the others. The key's place in it is i, -1 for none.
func (r *Run) failing(key Key) (all []Failing, i int) {
	if r.State == RunFailing && r.FailingKey != (Key{}) {
		all = append([]Failing{r.Failing}, r.FailingMore...)
		all[0].FailingClass, all[0].FailingReason = r.Class, r.Reason
	}
	return all, slices.IndexFunc(all, func(f Failing) bool { return f.FailingKey == key })
}

// failBy makes r failing by all of these, which are its own from now on. Without any the run goes on.
func (r *Run) failBy(all []Failing) {
	if len(all) == 0 {
		r.State, r.Class, r.Reason, r.Cause, r.Failing, r.FailingMore = RunRunning, "", "", "", Failing{}, nil
		return
	}
	slices.SortStableFunc(all, func(a, b Failing) int { return a.FailingUntil.Compare(b.FailingUntil) })
	r.Failing, r.FailingMore = all[0], all[1:]
	r.State, r.Class, r.Reason, r.Cause = RunFailing, r.FailingClass, r.FailingReason, r.FailingKey.ID()
}

// mayRetry reports whether the run is failing and may try this mutation again.
func (r *Run) mayRetry(key Key) bool {
	_, i := r.failing(key)
	return i >= 0
}

// succeed takes a mutation out of those by which its run is failing.
func (c *command) succeed(runID string, key Key) (*Run, error) {
	r, err := c.runOf(runID)
	if err != nil || r == nil || !r.mayRetry(key) {
		return r, err
	}
	all, i := r.failing(key)
	r.failBy(slices.Delete(all, i, i+1))
	return r, c.putRun(r)
}

// pause ends the run that caused an unknown outcome, whatever its block scope.
func (c *command) pause(runID string, m *Mutation, why string) (*Run, error) {
	if runID == "" {
		return nil, nil
	}
	r, err := found(c.Run(runID))
	if err != nil || r == nil || r.State.Ended() {
		return r, err
	}
	return r, c.end(r, ending{RunPausedReconciliation, verdict.Indeterminate, why, m.ID, ActorProxy, false})
}

// Heartbeat moves the run's time limit to ttl from now; ErrRunEnded if it has ended.
func (l *Ledger) Heartbeat(ctx context.Context, id string, ttl time.Duration) (*Run, error) {
	if ttl <= 0 {
		return nil, invalid("ttl %s is not positive", ttl)
	}
	r, err := l.onRun(ctx, id, func(c *command, r *Run) error {
		if c.overdue(r) {
			return c.expire(r)
		}
		r.ExpiresAt = c.now.Wall.Add(ttl)
		return c.putRun(r)
	})
	if err == nil && r.State.Ended() {
		return r, ErrRunEnded
	}
	return r, err
}

// overdue reports whether the run's time limit, or its grace, is over.
func (c *command) overdue(r *Run) bool {
	return !r.State.Ended() && r.Closing == "" && (over(c.now, r.ExpiresAt) || over(c.now, r.FailingUntil))
}

// expire ends an overdue run by the failure of its grace, else by its time limit.
func (c *command) expire(r *Run) error {
	if r.State == RunFailing {
		return c.end(r, ending{RunAborted, r.Class, r.Reason, r.Cause, ActorProxy, true})
	}
	return c.end(r, ending{RunAborted, verdict.Transient, "the run's time limit is over", r.Cause, ActorProxy, false})
}

// endGraces asks a person about each failure that no grace healed. In a run of many items the item of each fails; that
// of key is left to endBy.
func (c *command) endGraces(r *Run, key *Key) error {
	all, _ := r.failing(Key{})
	for _, g := range all {
		m, err := found(c.Mutation(g.FailingKey))
		if err == nil && m != nil {
			before, mv := m.Escalation, c.at(ActorProxy, g.FailingReason)
			if m.escalateFailure(mv); m.Escalation != before {
				err = c.store(m, m.State, "escalated", mv, "", "")
			}
		}
		if err == nil && r.Many() && (key == nil || *key != g.FailingKey) {
			err = c.failItemOf(r, ending{failed: true, reason: g.FailingReason}, &g.FailingKey)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ExpireRuns ends the runs whose time limit or grace is over. It goes on with those whose finishing was interrupted.
// It returns the number of both. What failed is tried again by the next call; its errors are joined.
func (l *Ledger) ExpireRuns(ctx context.Context) (int, error) {
	running, err := l.Running()
	if err != nil {
		return 0, err
	}
	ended := 0
	var problems []error
	for i := range running {
		done, err := l.expireRun(ctx, &running[i])
		if err != nil {
			problems = append(problems, err)
		}
		if done {
			ended++
		}
	}
	return ended, errors.Join(problems...)
}

// expireRun ends one run if it is overdue, which is read again in the command.
func (l *Ledger) expireRun(ctx context.Context, seen *Run) (bool, error) {
	now := l.config.Now()
	if seen.Closing != "" && !seen.State.Ended() {
		_, err := l.closeMany(ctx, seen)
		if errors.Is(err, ErrRunUnfinished) {
			err = nil // It goes on, until its own time limit.
		}
		return err == nil, err
	}
	if seen.State.Ended() || !over(now, seen.ExpiresAt) && !over(now, seen.FailingUntil) {
		return false, nil
	}
	done := false
	_, err := l.onRun(ctx, seen.ID, func(c *command, r *Run) error {
		if done = c.overdue(r); !done {
			return nil
		}
		return c.expire(r)
	})
	return done && err == nil, err
}
