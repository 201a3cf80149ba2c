package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ItemAction is a decision of a person, or of a host, on a whole item.
type ItemAction string

const (
	// ItemClose makes an open or failed item done: it can't produce new effects.
	ItemClose ItemAction = "done"
	// ItemSkip leaves out what is left of the item, for good.
	ItemSkip ItemAction = "skip"
	// ItemReopen lets runs of the item in again. What is applied stays applied.
	ItemReopen ItemAction = "reopen"
	// ItemNewAttempt begins the item anew: all of its work is done once more.
	ItemNewAttempt ItemAction = "new_attempt"
)

// DecideItem is such a decision.
type DecideItem struct {
	Workflow, Item string
	Action         ItemAction
	Actor, Reason  string
	// Version is the item's version that was seen; 0 for any.
	Version int64
	// Attempt is the one that ends (ItemNewAttempt only, required there): a repeat raises it once.
	Attempt int
	// WithMutations skips the item's mutations first, as far as a person may (ItemSkip only).
	WithMutations bool
}

// ItemChange is one decision in an item's own history.
type ItemChange struct {
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	What    string    `json:"what"`
	Why     string    `json:"why,omitempty"`
	Attempt int       `json:"attempt"`
	From    ItemState `json:"from"`
	To      ItemState `json:"to"`
}

// maxItemChanges is how many decisions an item keeps with itself; the history has all.
const maxItemChanges = 50

// skipStep is how many mutations one command skips; where they are too long for that, one.
const skipStep = 32

// DecideItem carries out a decision on an item. What is so already stays unchanged.
//
// It answers ErrInvalid, ErrNotFound or ErrVersion, and ErrAttempt for another attempt than the current one.
// ErrItemBusy: a run of it goes on. ErrItemUnresolved: a mutation of it is unresolved, watching or in flight.
// ErrItemState: its state doesn't allow the decision.
//
// WithMutations takes several commands. From the first on the item admits neither run nor claim. After a
// crash in the middle it waits for a person, who can repeat the decision.
func (l *Ledger) DecideItem(ctx context.Context, d DecideItem) (*Item, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.WithMutations {
		barred, err := l.skipMutations(ctx, d)
		if err != nil {
			return nil, err
		}
		if d.Version != 0 {
			d.Version = barred // What somebody else decided in between was not seen.
		}
	}
	return evaluate(ctx, l, func(c *command) (*Item, error) { return c.decideItem(d) })
}

// check reports what is wrong with the decision itself.
func (d DecideItem) check() error {
	if _, ok := itemMoves[d.Action]; !ok {
		return invalid("%q is no decision on an item", d.Action)
	}
	if strings.HasPrefix(d.Item, oncePrefix) && (d.Action == ItemReopen || d.Action == ItemNewAttempt) {
		return invalid("item %q belongs to one run with once; a re-run is an item of its own", d.Item)
	}
	var e InvalidError
	e.decided(d.Actor, d.Reason)
	e.add(d.Version < 0, "version", "negative", "give the version of the item that you saw, or leave it out")
	e.add(d.WithMutations && d.Action != ItemSkip, "with_mutations", "goes with skip only", "leave it out")
	e.add(d.Action == ItemNewAttempt && d.Attempt < 1, "attempt", "missing: attempts count from 1", "name the one that ends")
	e.add(d.Action != ItemNewAttempt && d.Attempt != 0, "attempt", "goes with new_attempt only", "leave it out")
	return e.err()
}

// itemMoves says from which states a decision leads where. None of them hides a question.
var itemMoves = map[ItemAction]struct {
	from []ItemState
	to   ItemState
}{
	ItemClose:      {[]ItemState{ItemOpen, ItemFailed}, ItemDone},
	ItemSkip:       {[]ItemState{ItemOpen, ItemFailed, ItemNeedsAttention}, ItemSkipped},
	ItemReopen:     {[]ItemState{ItemDone, ItemFailed, ItemNeedsAttention, ItemSkipped}, ItemOpen},
	ItemNewAttempt: {[]ItemState{ItemOpen, ItemDone, ItemFailed, ItemNeedsAttention, ItemSkipped}, ItemOpen},
}

// ItemActions lists the decisions that an item's state allows.
func ItemActions(i *Item) []ItemAction {
	var open []ItemAction
	for _, a := range []ItemAction{ItemClose, ItemSkip, ItemReopen, ItemNewAttempt} {
		d := DecideItem{Item: i.Item, Action: a, Actor: "-", Reason: "-"}
		if a == ItemNewAttempt {
			d.Attempt = i.Attempt
		}
		if d.check() == nil && allows(i.State, a) {
			open = append(open, a)
		}
	}
	return open
}

func allows(s ItemState, a ItemAction) bool {
	return slices.Contains(itemMoves[a].from, s)
}

func (c *command) decideItem(d DecideItem) (*Item, error) {
	item, err := c.freeItem(d)
	if err != nil {
		return nil, err
	}
	move := itemMoves[d.Action]
	switch {
	case d.Action != ItemNewAttempt && item.State == move.to:
		return item, nil
	case d.Action == ItemNewAttempt && item.Attempt != d.Attempt:
		return nil, fmt.Errorf("%w: item %q is at attempt %d, not %d", ErrAttempt, item.Item, item.Attempt, d.Attempt)
	case !allows(item.State, d.Action):
		return nil, fmt.Errorf("%w: item %q is %s", ErrItemState, item.Item, item.State)
	}
	if err := mayClose(c, item.Workflow, item.Item); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrItemUnresolved, err)
	}
	if err := c.answerCause(item, d); err != nil {
		return nil, err
	}
	if d.Action == ItemNewAttempt {
		item.Attempt++
		item.Drifts = nil
	}
	from := item.State
	item.State, item.Reason, item.Cause, item.ActiveRun, item.Shared = move.to, "", "", "", false
	if item.State == ItemSkipped {
		item.Reason = d.Reason
	}
	c.remember(item, d, from)
	return item, c.putItem(item)
}

// freeItem reads the item, and ends a run of it that is overdue; any other keeps it busy.
func (c *command) freeItem(d DecideItem) (*Item, error) {
	item, err := c.Item(d.Workflow, d.Item)
	if err != nil {
		return nil, fmt.Errorf("item %q: %w", d.Item, err)
	}
	if d.Version != 0 && item.Version != d.Version {
		return nil, fmt.Errorf("item %q: %w: it is at version %d", d.Item, ErrVersion, item.Version)
	}
	if item.ActiveRun == "" {
		return item, nil
	}
	if err := c.makeRoom(item, false); err != nil {
		return nil, err
	}
	return c.Item(d.Workflow, d.Item)
}

// answers reports whether the decision answers a question that made the item wait. Only ItemSkip and ItemNewAttempt
// answer a drift, or a world that disagrees. After any other decision it can come up again.
func (d DecideItem) answers(kind string) bool {
	over := d.Action == ItemSkip || d.Action == ItemNewAttempt
	return kind == EscalationMismatch || over && (kind == EscalationDrift || kind == EscalationVerify)
}

// answerCause closes the questions that made the item wait and that the decision answers.
func (c *command) answerCause(item *Item, d DecideItem) error {
	if item.State != ItemNeedsAttention || item.Cause == "" {
		return nil
	}
	all, err := mutationsOf(c, item.Workflow, item.Item)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.ID != item.Cause {
			continue
		}
		if m.Disputed == "" && !slices.ContainsFunc(EscalationKinds(), func(kind string) bool { return d.answers(kind) && m.asks(kind) }) {
			return nil
		}
		m.Disputed = ""
		from, mv := m.State, c.at(PersonActor(d.Actor), d.Reason)
		if m.asked() != EscalationMismatch {
			// It is displaced, acknowledged, or about something else: what isn't answered stays.
			m.closeAsked(d.answers, mv)
			return c.store(m, from, OnAcknowledge, mv, "", "")
		}
		m.closeAsked(func(kind string) bool { return kind != EscalationMismatch && d.answers(kind) }, mv)
		if err := c.move(m, OnAcknowledge, c.facts(m, nil, 0), mv); err != nil {
			if errors.Is(err, ErrNotAllowed) {
				return nil // It stays open on the mutation, where a person can answer it.
			}
			return err
		}
		return c.store(m, from, OnAcknowledge, mv, "", "")
	}
	return nil
}

// remember appends the decision to both histories.
func (c *command) remember(item *Item, d DecideItem, from ItemState) {
	c.tell("item_"+string(d.Action), c.at(PersonActor(d.Actor), d.Reason), Event{Workflow: item.Workflow, Item: item.Item})
	item.Changes = append(item.Changes, ItemChange{
		At: c.now.Wall, Actor: PersonActor(d.Actor), What: string(d.Action), Why: d.Reason,
		Attempt: item.Attempt, From: from, To: item.State,
	})
	if n := len(item.Changes); n > maxItemChanges {
		item.Changes = item.Changes[n-maxItemChanges:]
	}
}

// skipMutations skips in bounded commands, and returns the item's version after the first.
func (l *Ledger) skipMutations(ctx context.Context, d DecideItem) (version int64, err error) {
	var left []Key
	err = l.update(ctx, func(c *command) error {
		item, keys, err := c.barItem(d)
		if err == nil {
			version, left = item.Version, keys
		}
		return err
	})
	for err == nil && len(left) > 0 {
		n := min(skipStep, len(left))
		if err = l.skipSome(ctx, d, left[:n]); err == nil {
			left = left[n:]
		}
	}
	return version, err
}

// skipSome skips a few; if they are too much for one command, one by one.
func (l *Ledger) skipSome(ctx context.Context, d DecideItem, keys []Key) error {
	err := l.update(ctx, func(c *command) error { return c.skipEach(d, keys) })
	if err == nil || len(keys) == 1 || errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	for _, key := range keys {
		if err := l.update(ctx, func(c *command) error { return c.skipEach(d, []Key{key}) }); err != nil {
			return err
		}
	}
	return nil
}

// barItem lets nobody into the item while its mutations are skipped, and lists those that may be.
func (c *command) barItem(d DecideItem) (*Item, []Key, error) {
	item, err := c.freeItem(d)
	if err != nil || item.State == ItemSkipped {
		return item, nil, err
	}
	if !allows(item.State, ItemSkip) {
		return nil, nil, fmt.Errorf("%w: item %q is %s", ErrItemState, item.Item, item.State)
	}
	all, err := mutationsOf(c, item.Workflow, item.Item)
	if err != nil {
		return nil, nil, err
	}
	var skippable []Key
	for _, m := range all {
		switch {
		case m.State == InFlight, m.Watching, m.Undo != nil && m.Unresolved():
			// Nothing of the item is skipped, as the item couldn't be afterwards.
			return nil, nil, fmt.Errorf("%w: mutation %s is %s", ErrItemUnresolved, m.ID, m.State)
		case m.Undo == nil && allowedToPerson(m, OnSkip):
			// What is owed is waived one by one: what it would take back is there.
			skippable = append(skippable, m.Key)
		}
	}
	if len(skippable) == 0 {
		return item, nil, nil
	}
	// The item forgets its cause, so that an answer to that can't let it in.
	if err := c.answerCause(item, d); err != nil {
		return nil, nil, err
	}
	item.State, item.Cause, item.ActiveRun, item.Shared = ItemNeedsAttention, "", "", false
	item.Reason = fmt.Sprintf("%d of its mutations are being skipped with it; if that was interrupted, skip it again", len(skippable))
	return item, skippable, c.putItem(item)
}

// skipEach skips those of the mutations that may still be skipped.
func (c *command) skipEach(d DecideItem, keys []Key) error {
	for _, key := range keys {
		m, err := c.Mutation(key)
		if err != nil {
			return err
		}
		if m.Undo != nil || !allowedToPerson(m, OnSkip) {
			continue
		}
		decision := Resolve{Key: key, Action: OnSkip, Actor: d.Actor, Reason: d.Reason, Version: m.Version}
		if _, _, err := c.resolve(&decision); err != nil {
			return err
		}
	}
	return nil
}
