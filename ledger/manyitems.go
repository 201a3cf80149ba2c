package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Items is on how many items a run works.
type Items string

const (
	// ItemsOne: the run is opened with its item; the default, and stored as nothing.
	ItemsOne Items = ""
	// ItemsMany: each mutation names its item, which the run takes at the first.
	ItemsMany Items = "many"
)

// Many reports whether the run works on many items.
func (r *Run) Many() bool { return r.Items == ItemsMany }

// closeStep is how many items one command lets go, which a transaction must hold.
const closeStep = 100

// takeItem makes the claim's item the run's own. A refusal is of this request alone.
func (c *claiming) takeItem() (*Claimed, error) {
	if c.run == nil || !c.run.Many() || c.item != nil && c.item.ActiveRun == c.run.ID {
		return nil, nil
	}
	if c.item == nil {
		var err error
		if c.item, err = c.newItem(c.q.Workflow, c.q.Item); err != nil {
			return nil, err
		}
	}
	if err := c.makeRoom(c.item, false); errors.Is(err, ErrItemBusy) {
		return refused("item-busy", "Item %q is worked on by run %s; nothing was sent for it.", c.item.Item, c.item.ActiveRun), nil
	} else if err != nil {
		return nil, err
	}
	if err := c.reread(); err != nil {
		return nil, err
	}
	c.item.State, c.item.Reason, c.item.Cause = ItemOpen, "", ""
	c.item.ActiveRun, c.item.Shared = c.run.ID, true
	return nil, c.putItem(c.item)
}

// reread reads item and records again, which ending the earlier run may have changed.
func (c *claiming) reread() error {
	if c.item.ActiveRun == "" {
		return nil
	}
	stored, err := c.Item(c.q.Workflow, c.q.Item)
	if err != nil {
		return err
	}
	c.item = stored
	for i, m := range c.matches {
		if c.matches[i], err = c.Mutation(m.Key); err != nil {
			return err
		}
		if c.m == m {
			c.m = c.matches[i]
		}
	}
	return nil
}

// failItemOf makes the item of the mutation that ended a run of many items failed.
func (c *command) failItemOf(r *Run, e ending, key *Key) error {
	if !e.failed || key == nil {
		return nil
	}
	m, err := found(c.Mutation(*key))
	if err != nil || m == nil {
		return err
	}
	item, err := found(c.Item(m.Workflow, m.Item))
	if err != nil || item == nil || item.ActiveRun != r.ID || item.State != ItemOpen {
		return err
	}
	item.ActiveRun, item.Shared = "", false
	item.State, item.Reason, item.Cause = ItemFailed, e.reason, m.ID
	return c.putItem(item)
}

// finishMany finishes a run of many items. It keeps the run from claiming, looks at its mutations, and closes its
// items, a few at a time. Whatever interrupts that, ExpireRuns goes on with it.
func (l *Ledger) finishMany(ctx context.Context, id string, keepOpen bool) (*Run, error) {
	r, err := l.closeClaims(ctx, id, keepOpen)
	if err != nil || r.State == RunFinished {
		return r, err
	}
	return l.closeMany(ctx, r)
}

// closeClaims keeps the run from claiming any more.
func (l *Ledger) closeClaims(ctx context.Context, id string, keepOpen bool) (*Run, error) {
	return evaluate(ctx, l, func(c *command) (*Run, error) {
		r, err := c.Run(id)
		switch {
		case err != nil:
			return nil, fmt.Errorf("run %s: %w", id, err)
		case r.State == RunFinished || r.Closing != "":
			return r, nil
		case r.State != RunRunning:
			return nil, unfinished(r)
		}
		r.Closing = ClosingDone
		if keepOpen {
			r.Closing = ClosingOpen
		}
		return r, c.putRun(r)
	})
}

// unfinished refuses for a run that doesn't go on.
func unfinished(r *Run) error {
	return fmt.Errorf("%w: it is %s: %s", ErrRunUnfinished, r.State, r.Reason)
}

// What becomes of the items of a run that is being finished.
const (
	// ClosingDone: they are closed.
	ClosingDone = "done"
	// ClosingOpen: they stay open.
	ClosingOpen = "open"
)

// closeMany goes on with a run that is being finished.
func (l *Ledger) closeMany(ctx context.Context, r *Run) (*Run, error) {
	// Nothing of the run is claimed any more, so that what is known stays so.
	err := l.View(ctx, func(v View) error { return cmp.Or(mayFinish(v, r), r.unrefused(r.missingOf(""))) })
	if err != nil {
		if errors.Is(err, ErrRunUnfinished) {
			err = errors.Join(err, l.reopenClaims(ctx, r.ID))
		}
		return nil, err
	}
	for {
		var left int
		err := l.update(ctx, func(c *command) (err error) {
			r, left, err = c.closeSome(r.ID)
			return err
		})
		if err != nil {
			return nil, err
		}
		if left == 0 && r.State == RunAborted {
			return nil, r.unrefused(r.Missing())
		}
		if left == 0 {
			return r, nil
		}
	}
}

// reopenClaims lets a run go on that could not be finished.
func (l *Ledger) reopenClaims(ctx context.Context, id string) error {
	_, err := l.onRun(ctx, id, func(c *command, r *Run) error {
		if r.Closing == "" {
			return nil
		}
		r.Closing = ""
		return c.putRun(r)
	})
	return err
}

// closeSome lets a few items go, ends the run after the last, and returns how many it looked at.
func (c *command) closeSome(id string) (*Run, int, error) {
	r, err := c.Run(id)
	switch {
	case err != nil:
		return r, 0, err
	case r.State == RunFinished:
		return r, 0, nil
	case r.State.Ended() || r.Closing == "":
		// Somebody ended it meanwhile, or let it go on.
		return r, 0, unfinished(r)
	}
	items, err := c.TakenItems(id, closeStep)
	if err != nil {
		return nil, 0, err
	}
	for _, item := range items {
		if err := c.letGo(r, item); err != nil {
			return nil, 0, err
		}
	}
	if len(items) == 0 && r.lacks() {
		return r, 0, c.endRefused(r)
	}
	if len(items) == 0 {
		return r, 0, c.end(r, ending{RunFinished, "", "", "", ActorProxy, false})
	}
	return r, len(items), nil
}

// letGo closes one item, unless the outcome of somebody else's mutation is open there.
func (c *command) letGo(r *Run, item *Item) error {
	item.ActiveRun, item.Shared = "", false
	if missing := r.missingOf(item.Item); len(missing) > 0 && item.State == ItemOpen {
		item.State, item.Reason = ItemFailed, whyRefused(missing)
	}
	if r.Closing == ClosingDone && item.State == ItemOpen {
		err := mayClose(c, item.Workflow, item.Item)
		switch {
		case err == nil:
			return c.close(r, item)
		case !errors.Is(err, ErrRunUnfinished):
			return err
		}
	}
	return c.putItem(item)
}
