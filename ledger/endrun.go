package ledger

import (
	"context"
	"errors"
	"fmt"
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

// end ends a run that goes on. In its grace it ends by a definite failure, of which a person is asked.
func (c *command) end(r *Run, e ending) error { return c.endBy(r, e, r.FailingKey) }

// endBy is end by a definite failure of the mutation of this key, nil for none.
func (c *command) endBy(r *Run, e ending, key *Key) error {
	graced := e.state == RunAborted && r.State == RunFailing
	if graced {
		if err := c.escalateGrace(r); err != nil {
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
func (l *Ledger) FailRun(
	ctx context.Context, id string, key Key, digest string, class verdict.Class, reason string, unauthorized bool,
) (*Run, error) {
	return l.onRun(ctx, id, func(c *command, r *Run) error {
		return c.fail(r, failure{key, digest, class, reason, unauthorized})
	})
}

// failure is a definite failure of one mutation, as a run meets it.
type failure struct {
	key          Key
	digest       string
	class        verdict.Class
	reason       string
	unauthorized bool
}

// fail makes r meet a definite failure:
//
//  1. With on_failure return the script is told, and the run goes on.
//  2. After a transient failure or a 401 the run is failing, for a grace that nothing extends.
//  3. Any other failure, or one after the grace, aborts the run and fails the item.
func (c *command) fail(r *Run, f failure) error {
	if r.OnFailure == FailureReturn {
		return nil
	}
	if f.class != verdict.Transient && !f.unauthorized || r.State == RunFailing && c.graceOver(r) {
		return c.endBy(r, ending{RunAborted, f.class, f.reason, f.key.ID(), ActorProxy, true}, &f.key)
	}
	r.Class, r.Reason, r.Cause = f.class, f.reason, f.key.ID()
	if r.State != RunFailing {
		r.State, r.FailingTries = RunFailing, 0
		r.FailingUntil = c.now.Wall.Add(c.config.RetryGrace)
		r.FailingKey, r.FailingDigest = &f.key, f.digest
	}
	return c.putRun(r)
}

// graceOver reports whether a failing run may not try again.
func (c *command) graceOver(r *Run) bool {
	return over(c.now, r.FailingUntil) || r.FailingTries >= c.config.RetryGraceTries
}

// mayRetry reports whether the run is failing and may try this mutation again.
func (r *Run) mayRetry(key Key) bool {
	return r.State == RunFailing && r.FailingKey != nil && *r.FailingKey == key
}

// succeed makes a failing run go on after the same mutation succeeded.
func (c *command) succeed(runID string, key Key) (*Run, error) {
	r, err := c.runOf(runID)
	if err != nil || r == nil || !r.mayRetry(key) {
		return r, err
	}
	restore(r)
	return r, c.putRun(r)
}

// restore takes a run out of its grace.
func restore(r *Run) {
	r.State, r.Class, r.Reason, r.Cause = RunRunning, "", "", ""
	r.FailingKey, r.FailingDigest, r.FailingUntil, r.FailingTries = nil, "", time.Time{}, 0
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

// escalateGrace asks a person about the failure that the grace didn't heal.
func (c *command) escalateGrace(r *Run) error {
	if r.FailingKey == nil {
		return nil
	}
	m, err := found(c.Mutation(*r.FailingKey))
	if err != nil || m == nil {
		return err
	}
	before, mv := m.Escalation, c.at(ActorProxy, r.Reason)
	if m.escalateFailure(mv); m.Escalation == before {
		return nil
	}
	return c.store(m, m.State, "escalated", mv, "", "")
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
