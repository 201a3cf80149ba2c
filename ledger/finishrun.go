package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"keep-proxy/internal/verdict"
)

// Outcomes of a run, as its host reports them.
const (
	OutcomeDone   = "done"
	OutcomeFailed = "failed"
)

// FinishRun ends a run as its host reports it. The same outcome again returns the run as it is. Any other run
// that has ended answers ErrRunEnded.
//
// Done needs a running run, whose mutations are applied, skipped, or failed with the answer delivered (on_failure
// return, 307, 308). Each request that it was refused has got through since, or was skipped: else a *RefusedError.
// Any other run answers ErrRunUnfinished. Done closes the item too, unless keepOpen is set or a person is asked there.
// What was skipped makes the item skipped. Without keepOpen no mutation of the item may be unresolved, watching or in
// flight. A run of many items takes several commands. Its items of which a request was refused become failed.
//
// Failed aborts the run, and the item becomes failed, but those of many stay open. A run that is failing is
// aborted by what it failed by, and one that was refused something by that. What the run is over by, unrecorded,
// comes first.
func (l *Ledger) FinishRun(ctx context.Context, id, outcome string, keepOpen bool) (*Run, error) {
	if outcome != OutcomeDone && outcome != OutcomeFailed {
		return nil, invalid("outcome %q: want done or failed", outcome)
	}
	if err := l.endUnrecorded(ctx, id); err != nil {
		return nil, err
	}
	many := false
	r, err := evaluate(ctx, l, func(c *command) (*Run, error) {
		r, err := c.Run(id)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", id, err)
		}
		if many = r.Many() && outcome == OutcomeDone; many {
			return r, nil
		}
		return r, c.finishRun(r, outcome, keepOpen)
	})
	if err == nil && many {
		return l.finishMany(ctx, id, keepOpen)
	}
	return r, err
}

// endUnrecorded ends a run that is over unrecorded, by what ended it, whatever its host reports.
func (l *Ledger) endUnrecorded(ctx context.Context, id string) error {
	over, is := l.unrecorded.Over(id)
	if !is {
		return nil
	}
	_, err := l.RefuseRun(ctx, id, over.Why, over.Cause)
	return err
}

// FinishedAsFailed is the reason of a run whose host reported a failure.
const FinishedAsFailed = "finished as failed"

func (c *command) finishRun(r *Run, outcome string, keepOpen bool) error {
	switch {
	case r.State == RunFinished && outcome == OutcomeDone:
		return nil
	case r.State == RunAborted && outcome == OutcomeFailed && (r.Reason == FinishedAsFailed || r.FailingKey != (Key{}) || r.lacks()):
		return nil
	case r.State.Ended() && outcome == OutcomeDone:
		return unfinished(r)
	case r.State.Ended():
		return fmt.Errorf("%w: it is %s", ErrRunEnded, r.State)
	case outcome == OutcomeFailed && r.State == RunFailing:
		return c.expire(r)
	case outcome == OutcomeFailed && r.lacks():
		return c.endRefused(r)
	case outcome == OutcomeFailed:
		return c.end(r, ending{RunAborted, verdict.Logic, FinishedAsFailed, r.Cause, ActorProxy, true})
	case r.State != RunRunning:
		return unfinished(r)
	}
	keepOpen = keepOpen || r.ItemDone
	if err := cmp.Or(mayFinish(c, r), r.unrefused(r.Missing())); err != nil {
		return err
	}
	if !keepOpen {
		if err := mayClose(c, r.Workflow, r.Item); err != nil {
			return err
		}
	}
	if err := c.end(r, ending{RunFinished, "", "", "", ActorProxy, false}); err != nil {
		return err
	}
	if keepOpen {
		return nil
	}
	item, err := c.Item(r.Workflow, r.Item)
	if err != nil || item.State != ItemOpen {
		return err // What a person was asked meanwhile stays asked.
	}
	return c.close(r, item)
}

// close makes an item done, or skipped if a person decided that a part of it isn't done.
func (c *command) close(r *Run, item *Item) error {
	e := Event{At: c.now.Wall, Actor: ActorProxy, What: "item_done", Run: r.ID, Workflow: item.Workflow, Item: item.Item}
	if item.State = ItemDone; r.skips(item.Item) {
		item.State, e.What = ItemSkipped, "item_skipped"
	}
	c.Append(e)
	return c.putItem(item)
}

// mayFinish reports which mutation keeps the run from finishing: its own, or one whose answer it was given.
func mayFinish(v View, r *Run) error {
	keys, err := v.RunMutations(r.ID)
	if err != nil {
		return err
	}
	given, err := v.RunDeliveries(r.ID)
	if err != nil {
		return err
	}
	// Those of its own are in both lists; of the others some may be forgotten.
	for i, key := range slices.Concat(given, keys) {
		m, err := v.Mutation(key)
		if i < len(given) && errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		ok, err := letsFinish(v, r, m)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: mutation %s is %s", ErrRunUnfinished, m.ID, m.State)
		}
	}
	return nil
}

// letsFinish reports whether m lets its run finish.
func letsFinish(v View, r *Run, m *Mutation) (bool, error) {
	switch m.State {
	case Applied, Skipped:
		return true, nil
	case Failed:
		d := m.Current()
		if r.OnFailure != FailureReturn && (d == nil || !d.PassedOn) {
			return false, nil
		}
		delivery, err := found(v.Delivery(r.ID, m.Key))
		return delivery != nil && delivery.answers(m), err
	default:
		return false, nil
	}
}

// mayClose reports why a mutation keeps the item from being closed.
func mayClose(v View, workflow, item string) error {
	all, err := mutationsOf(v, workflow, item)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.State == InFlight || m.Watching || m.Unresolved() {
			return fmt.Errorf("%w: mutation %s is %s", ErrRunUnfinished, m.ID, m.State)
		}
	}
	return nil
}
