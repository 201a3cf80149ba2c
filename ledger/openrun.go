package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/verdict"
)

// DefaultRunTTL is the time limit of a run that asks for none.
const DefaultRunTTL = time.Hour

// oncePrefix begins the item of a run that declares that a re-run is new work.
const oncePrefix = "once:"

// IfDone is what opening a run does with an item that is done or skipped.
type IfDone string

const (
	// IfDoneRefuse answers ErrItemDone; the default.
	IfDoneRefuse IfDone = ""
	// IfDoneRead opens a run that reads only and leaves the item as it is.
	IfDoneRead IfDone = "run"
)

// OpenRun opens a managed run, and its item if there is none, or it failed. It answers ErrInvalid, ErrItemDone or
// ErrItemAttention, and ErrAttempt for another attempt than the current one. ErrItemBusy: a run of the item goes on,
// and Takeover doesn't end it. A *BlockedError: an unresolved mutation stops the scope.
func (l *Ledger) OpenRun(ctx context.Context, o OpenRun) (*Run, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return evaluate(ctx, l, func(c *command) (*Run, error) { return c.openRun(o) })
}

// check reports what is wrong with the command itself.
func (o OpenRun) check() error {
	switch {
	case o.Workflow == "":
		return invalid("a run needs a workflow")
	case o.Items != ItemsOne && o.Items != ItemsMany:
		return invalid("items %q: want many, or nothing", o.Items)
	case o.Items == ItemsMany && (o.Item != "" || o.Once || o.Attempt != 0):
		return invalid("a run of many items has no item and no attempt of its own, and isn't once")
	case o.Items == ItemsMany:
	case o.Once == (o.Item != ""):
		return invalid("a run needs either an item or once")
	case strings.HasPrefix(o.Item, oncePrefix):
		return invalid("the item %q is kept for runs with once", o.Item)
	case o.Once && o.Attempt > 1:
		return invalid("a run with once has attempt 1")
	case o.Attempt < 0:
		return invalid("attempt %d: attempts count from 1", o.Attempt)
	case o.TTL < 0:
		return invalid("ttl %s is negative", o.TTL)
	}
	for _, meant := range o.Tolerate {
		if code, host, _ := strings.Cut(meant, ":"); code == "" || host == "" {
			return invalid("tolerate %q: want CODE:HOST, such as unmatched:telemetry.example.com", meant)
		}
	}
	switch {
	case !slices.Contains([]Mutations{"", MutationsMany, MutationsOne, MutationsNone}, o.Mutations):
		return invalid("mutations %q: want many, one or none", o.Mutations)
	case !slices.Contains([]OnFailure{"", FailureAbort, FailureReturn}, o.OnFailure):
		return invalid("on_failure %q: want abort or return", o.OnFailure)
	case !slices.Contains([]IfDone{IfDoneRefuse, IfDoneRead}, o.IfDone):
		return invalid("if_done %q: want run, or nothing", o.IfDone)
	case !slices.Contains([]BlockScope{"", BlockWorkflow, BlockItem, BlockMutation}, o.BlockScope):
		return invalid("block_scope %q: want workflow, item or mutation", o.BlockScope)
	}
	return nil
}

func (c *command) openRun(o OpenRun) (*Run, error) {
	id := c.newID()
	if o.Items == ItemsMany {
		if err := c.admitScope(o); err != nil {
			return nil, err
		}
		r := c.newRun(id, o, 0)
		return r, c.opened(r)
	}
	if o.Once {
		o.Item, o.Attempt = oncePrefix+id, 1
	}
	item, err := c.admitItem(o)
	if err != nil {
		return nil, err
	}
	if err := c.admitScope(o); err != nil {
		return nil, err
	}
	if item.over() {
		return c.openReading(id, o, item)
	}
	if err := c.makeRoom(item, o.Takeover); err != nil {
		return nil, err
	}
	// Ending the earlier run may have changed the item.
	if stored, err := found(c.Item(o.Workflow, o.Item)); err != nil {
		return nil, err
	} else if stored != nil {
		item = stored
	}
	r := c.newRun(id, o, item.Attempt)
	item.State, item.Reason, item.Cause, item.ActiveRun = ItemOpen, "", "", id
	if o.Title != "" {
		item.Title = o.Title
	}
	if err := c.putItem(item); err != nil {
		return nil, err
	}
	return r, c.opened(r)
}

// opened stores a new run.
func (c *command) opened(r *Run) error {
	if err := c.putRun(r); err != nil {
		return err
	}
	c.Append(Event{At: c.now.Wall, Actor: ActorProxy, What: "run_opened", Run: r.ID, Workflow: r.Workflow, Item: r.Item})
	return nil
}

// openReading opens a run of an item that is over: it reads only, and doesn't make the item busy.
func (c *command) openReading(id string, o OpenRun, item *Item) (*Run, error) {
	r := c.newRun(id, o, item.Attempt)
	r.Mutations, r.ItemDone = MutationsNone, true
	return r, c.opened(r)
}

// over reports whether the item can't produce new effects.
func (i *Item) over() bool { return i.State == ItemDone || i.State == ItemSkipped }

// admitItem returns the run's item, new if there was none, if it admits a run.
func (c *command) admitItem(o OpenRun) (*Item, error) {
	item, err := found(c.Item(o.Workflow, o.Item))
	if err != nil {
		return nil, err
	}
	if item == nil {
		if item, err = c.newItem(o.Workflow, o.Item); err != nil {
			return nil, err
		}
	}
	// Before the item's state: that says something of the current attempt only.
	if o.Attempt != 0 && o.Attempt != item.Attempt {
		return nil, fmt.Errorf("%w: item %q is at attempt %d, not %d", ErrAttempt, item.Item, item.Attempt, o.Attempt)
	}
	switch {
	case item.State == ItemOpen || item.State == ItemFailed:
	case item.over() && o.IfDone == IfDoneRead:
	case item.over():
		return nil, fmt.Errorf("%w: item %q is %s", ErrItemDone, item.Item, item.State)
	default:
		return nil, fmt.Errorf("%w: %s", ErrItemAttention, item.Reason)
	}
	return item, nil
}

// admitScope refuses a run whose scope is stopped. After an unknown of a once run no other once run of the workflow
// starts. Its item would be a new one, and the same work be done again.
func (c *command) admitScope(o OpenRun) error {
	all, err := c.blockers(o.Workflow)
	if err != nil {
		return err
	}
	var stopping []Blocker
	for _, b := range all {
		if b.stops(o.Workflow, o.Item) || o.Once && strings.HasPrefix(b.Item, oncePrefix) {
			stopping = append(stopping, b)
		}
	}
	if len(stopping) > 0 {
		return &BlockedError{Blockers: stopping}
	}
	return nil
}

// makeRoom ends the item's running run if it may be ended.
func (c *command) makeRoom(item *Item, takeover bool) error {
	if item.ActiveRun == "" {
		return nil
	}
	active, err := found(c.Run(item.ActiveRun))
	if err != nil || active == nil || active.State.Ended() {
		return err
	}
	switch {
	case c.overdue(active):
		return c.expire(active)
	case takeover:
		return c.end(active, ending{RunAborted, verdict.Transient, "taken over by another run", active.Cause, ActorProxy, false})
	}
	return fmt.Errorf("%w: run %s of item %q is %s", ErrItemBusy, active.ID, item.Item, active.State)
}

func (c *command) newRun(id string, o OpenRun, attempt int) *Run {
	return &Run{
		ID: id, Workflow: o.Workflow, Item: o.Item, Attempt: attempt, Once: o.Once, Items: o.Items, State: RunRunning,
		Mutations: cmp.Or(o.Mutations, MutationsMany), OnFailure: cmp.Or(o.OnFailure, FailureAbort), BlockScope: o.BlockScope, Title: o.Title,
		ResumeHint: o.ResumeHint, Labels: o.Labels, Tolerate: o.Tolerate, RequireTraffic: o.RequireTraffic, Passthrough: o.Passthrough,
		TokenSHA256: o.TokenSHA256, OpenedAt: c.now.Wall,
		ExpiresAt: c.now.Wall.Add(cmp.Or(o.TTL, DefaultRunTTL)),
	}
}
