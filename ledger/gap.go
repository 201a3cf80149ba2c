package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/verdict"
)

// Gap is a time of which the ledger knows nothing: an older copy was restored, or a loss was accepted. While
// it is open, a mutation that would be sent and may have been sent in it counts as unknown.
type Gap struct {
	// Number counts from 1.
	Number int `cbor:"1,keyasint" json:"number"`
	// Since is the last moment of which the ledger knows all; zero if it is new.
	Since time.Time `cbor:"2,keyasint" json:"since"`
	// Until is when the ledger took up its work again.
	Until time.Time `cbor:"3,keyasint" json:"until"`
	// Asked is the moment that was named as the copy's.
	Asked time.Time `cbor:"4,keyasint,omitzero" json:"asked,omitzero"`
	// Cause is GapRestored or GapLoss.
	Cause  string `cbor:"5,keyasint" json:"cause"`
	Actor  string `cbor:"6,keyasint" json:"actor"`
	Reason string `cbor:"7,keyasint" json:"reason"`
	// Marked says that all that was active is marked as possibly sent.
	Marked bool `cbor:"8,keyasint,omitempty" json:"marked,omitempty"`
	// Confirmed are the scopes of which a person knows what happened in the gap.
	Confirmed []Confirmed `cbor:"9,keyasint,omitempty" json:"confirmed,omitempty"`
	// Closed is when all was confirmed.
	Closed time.Time `cbor:"10,keyasint,omitzero" json:"closed,omitzero"`
}

// Causes of a gap.
const (
	GapRestored = "restored"
	GapLoss     = "loss"
)

// Confirmed is a workflow, or one item of it.
type Confirmed struct {
	Workflow string    `cbor:"1,keyasint"           json:"workflow"`
	Item     string    `cbor:"2,keyasint,omitempty" json:"item,omitempty"`
	At       time.Time `cbor:"3,keyasint"           json:"at"`
}

// maxConfirmed bounds the scopes that are confirmed one by one.
const maxConfirmed = 1000

// ReasonLoss is why items are held after an accepted loss.
const ReasonLoss = "a loss of the ledger was accepted: what happened since isn't known"

// Open reports whether anything may still be unknown because of g.
func (g *Gap) Open() bool { return g.Closed.IsZero() }

// owner is the process that dispatches of the gap belong to: none that lives.
func (g *Gap) owner() string { return fmt.Sprintf("gap %d", g.Number) }

// covers reports whether a mutation of the scope may have been sent in g. Record and item may be nil.
func (g *Gap) covers(workflow, item string, m *Mutation, i *Item) bool {
	if !g.Open() {
		return false
	}
	for _, c := range g.Confirmed {
		if c.Workflow == workflow && (c.Item == "" || c.Item == item) {
			return false
		}
	}
	if strings.HasPrefix(item, oncePrefix) && i != nil && i.Gaps >= g.Number {
		// Its name was drawn after the gap.
		return false
	}
	return m == nil || !m.knownSince(g)
}

// Covers reports whether a claim of m is refused because of g.
func (g *Gap) Covers(m *Mutation, i *Item) bool { return g.covers(m.Workflow, m.Item, m, i) }

// knownSince reports whether m was asked about because of g, or sent after it, whatever the clocks said.
func (m *Mutation) knownSince(g *Gap) bool {
	return slices.ContainsFunc(m.Dispatches, func(d Dispatch) bool {
		return d.Gap == g.Number || d.Gap == 0 && d.Gaps >= g.Number
	})
}

// dispatch is the sending that may have been made in g.
func (g *Gap) dispatch(m *Mutation, id string) Dispatch {
	return Dispatch{
		ID: id, Owner: g.owner(), Gap: g.Number, Generation: m.Generation, PayloadDigest: m.PayloadDigest,
		Started: Stamp{Wall: g.Since}, Lost: true,
	}
}

func (g *Gap) why() string {
	since := "its beginning"
	if !g.Since.IsZero() {
		since = g.Since.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("whether it was sent between %s and %s isn't known (%s)", since, g.Until.UTC().Format(time.RFC3339), g.Cause)
}

// gapOf returns the gap in which a mutation of the scope may have been sent, nil for none.
func (c *command) gapOf(workflow, item string, m *Mutation, i *Item) (*Gap, error) {
	gaps, err := c.Gaps()
	if err != nil {
		return nil, err
	}
	for n := range gaps {
		if gaps[n].covers(workflow, item, m, i) {
			return &gaps[n], nil
		}
	}
	return nil, nil
}

// queuedInGap is the gap in which a queued m may have been sent already, nil for none.
func (c *command) queuedInGap(m *Mutation) (*Gap, error) {
	if m.Undo != nil && m.Policy.Idempotent {
		return nil, nil
	}
	i, err := found(c.Item(m.Workflow, m.Item))
	if err != nil {
		return nil, err
	}
	return c.gapOf(m.Workflow, m.Item, m, i)
}

// redispatchedIn records, instead of a queued sending, that it may have been made in g.
func (c *command) redispatchedIn(g *Gap, m *Mutation, r Redispatch) error {
	from, mv := m.State, c.at(ActorRecovery, g.why())
	if err := c.move(m, OnRedispatch, c.facts(m, nil, 0), mv); err != nil {
		return err
	}
	if m.Undo != nil {
		m.Undo.Next = r.NextTryAt
	}
	m.Class, m.RetryAfter = "", time.Time{}
	return c.lostIn(g, m, from, OnRedispatch, r.DispatchID, mv)
}

// lostIn records that m, which was just put in flight, may have been sent in g: its owner is lost.
func (c *command) lostIn(g *Gap, m *Mutation, from State, on Trigger, dispatch string, mv move) error {
	d := g.dispatch(m, dispatch)
	m.addDispatch(d)
	m.Current().Owner, m.Current().Lost = c.Process().ID, false
	if err := c.store(m, from, on, mv, dispatch, ""); err != nil {
		return err
	}
	*m.Current() = d
	// Sending it again is no way to ask: its generation may have been another.
	m.Reason, m.ResendTries, m.ResendClosed = mv.why, 0, true
	if err := c.move(m, OnOwnerLost, c.facts(m, nil, 0), mv); err != nil {
		return err
	}
	return c.store(m, InFlight, OnOwnerLost, mv, dispatch, "")
}

// inGap records that the mutation may have been sent in g, and refuses the claim.
func (c *claiming) inGap(g *Gap) (*Claimed, error) {
	first := c.m == nil
	from, err := c.prepare()
	if err != nil {
		return nil, err
	}
	mv := c.at(ActorRecovery, g.why())
	if err := c.move(c.m, OnClaim, c.facts(c.m, nil, 0), mv); err != nil {
		return nil, err
	}
	switch {
	case first && g.Since.IsZero():
		// Nothing tells what was made in the gap from what was there before.
		c.m.Policy.Reconciler, c.m.Policy.Resend = false, false
	case first:
		// What was made in the gap was not made before the claim.
		c.m.CreatedAt = g.Since
	}
	if err := c.keepContent(); err != nil {
		return nil, err
	}
	if err := c.lostIn(g, c.m, from, OnClaim, c.q.DispatchID, mv); err != nil {
		return nil, err
	}
	out, err := c.blocked([]Blocker{blockerOf(c.m)})
	if err != nil {
		return nil, err
	}
	out.Detail = fmt.Sprintf("Of mutation %s, %s; nothing goes on until that is known.", c.m.ID, mv.why)
	return out, nil
}

// Restored opens a gap from since, or from the ledger's last moment if that is earlier. Said again, it opens
// none and returns the newest.
func (l *Ledger) Restored(ctx context.Context, since time.Time, actor, reason string) (Gap, error) {
	return l.RestoredBehind(ctx, since, 0, actor, reason)
}

// RestoredBehind is Restored for a copy that ends before what was acknowledged, and holds that many gaps.
func (l *Ledger) RestoredBehind(ctx context.Context, since time.Time, held int, actor, reason string) (Gap, error) {
	if actor == "" || reason == "" {
		return Gap{}, invalid("a restore needs an actor and a reason")
	}
	last, err := l.lastKnown(ctx)
	if err != nil {
		return Gap{}, err
	}
	var gap Gap
	err = l.update(ctx, func(c *command) error {
		gaps, err := c.Gaps()
		if err != nil {
			return err
		}
		if since.After(c.now.Wall) {
			return invalid("the copy can't be of %s: that is still to come", since.Format(time.RFC3339))
		}
		for _, g := range slices.Backward(gaps[min(max(held, 0), len(gaps)):]) {
			if g.Cause == GapRestored && g.Asked.Equal(since) {
				gap = g
				return nil
			}
		}
		gap = Gap{
			Number: len(gaps) + 1, Since: since, Asked: since, Until: c.now.Wall,
			Cause: GapRestored, Actor: PersonActor(actor), Reason: reason,
		}
		if last.Before(since) {
			gap.Since = last
		}
		c.tell("gap_opened", c.at(gap.Actor, reason), Event{Evidence: gap.why()})
		return c.PutGaps(append(slices.Clone(gaps), gap))
	})
	return gap, err
}

// lastKnown is the time of the newest event.
func (l *Ledger) lastKnown(ctx context.Context) (last time.Time, err error) {
	err = l.View(ctx, func(v View) error {
		e, err := found(v.LastEvent())
		if e != nil {
			last = e.At
		}
		return err
	})
	return last, err
}

// MarkGaps ends the runs of before a new gap. It adds to unresolved mutations what may have been sent in the gap. It
// runs before Recover, at each start, and goes on where it was cut short.
func (l *Ledger) MarkGaps(ctx context.Context) error {
	var gaps []Gap
	if err := l.View(ctx, func(v View) (err error) { gaps, err = v.Gaps(); return err }); err != nil {
		return err
	}
	for i := range gaps {
		if gaps[i].Marked {
			continue
		}
		if err := l.markGap(ctx, &gaps[i]); err != nil {
			return fmt.Errorf("mark what was active before the gap: %w", err)
		}
	}
	return nil
}

func (l *Ledger) markGap(ctx context.Context, g *Gap) error {
	runs, err := all(Filter{Unresolved: true}, func(f Filter) (Page[*Run], error) { return l.Runs(ctx, f) })
	if err != nil {
		return err
	}
	for _, r := range runs {
		if _, err := l.onRun(ctx, r.ID, func(c *command, r *Run) error {
			why := "the ledger was restored: what this run did since isn't known"
			return c.end(r, ending{RunPausedAttention, verdict.Indeterminate, why, r.Cause, ActorRecovery, false})
		}); err != nil {
			return err
		}
	}
	mutations, err := l.allIn(ctx, InFlight, NeedsReconcile, Indeterminate, Failed)
	if err != nil {
		return err
	}
	for _, m := range mutations {
		if err := l.update(ctx, func(c *command) error { return c.markSent(m.Key, g) }); err != nil {
			return err
		}
	}
	return l.update(ctx, func(c *command) error {
		gaps, err := c.Gaps()
		if err != nil {
			return err
		}
		gaps = slices.Clone(gaps)
		gaps[g.Number-1].Marked = true
		return c.PutGaps(gaps)
	})
}

// all lists every page.
func all[T any](f Filter, list func(Filter) (Page[T], error)) (out []T, err error) {
	for {
		page, err := list(f)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if f.Cursor = page.Next; f.Cursor == "" {
			return out, nil
		}
	}
}

// markSent adds the sending that may have been made in g to an unresolved record. It takes a failed record out of the
// queue. An undo stays there: that it may have been sent is seen when its turn comes.
func (c *command) markSent(key Key, g *Gap) error {
	m, err := c.Mutation(key)
	if err != nil || m.knownSince(g) {
		return err
	}
	mv := c.at(ActorRecovery, g.why())
	switch {
	case m.State == Failed && m.Queued() && m.Undo == nil:
		return c.leaveQueue(m, mv)
	case m.Committed:
		return nil
	case m.State != InFlight && m.State != NeedsReconcile && m.State != Indeterminate:
		return nil
	}
	m.loseDispatches(c.Process())
	m.addDispatch(g.dispatch(m, c.newID()))
	m.voidObservations()
	m.ResendClosed = true
	if m.State == InFlight {
		return c.loseOwner(m, func(*Mutation) time.Time { return c.now.Wall }, &RecoverCounts{})
	}
	return c.store(m, m.State, "gap", mv, m.Current().ID, "")
}

// ConfirmGap says that a person knows what happened in all open gaps, in this scope or everywhere.
type ConfirmGap struct {
	Workflow, Item, Actor, Reason string
}

// ConfirmGaps ends the effect of gaps in a scope. It opens the items that an accepted loss held, and returns how
// many. Mutations that are asked about because of a gap stay so.
func (l *Ledger) ConfirmGaps(ctx context.Context, q ConfirmGap) (released int, err error) {
	var e InvalidError
	e.decided(q.Actor, q.Reason)
	e.add(q.Item != "" && q.Workflow == "", "item", "given without its workflow", "name the workflow too")
	if err := e.err(); err != nil {
		return 0, err
	}
	items, err := l.heldItems(ctx, q)
	if err != nil {
		return 0, err
	}
	for _, i := range items {
		if err := l.update(ctx, func(c *command) error { return c.letIn(i, q) }); err != nil {
			return released, err
		}
		released++
	}
	confirmed := false
	err = l.update(ctx, func(c *command) error {
		confirmed = false
		gaps, err := c.Gaps()
		if err != nil {
			return err
		}
		gaps = slices.Clone(gaps)
		for i := range gaps {
			if !gaps[i].Open() {
				continue
			}
			confirmed = true
			if err := gaps[i].confirm(q, c.now.Wall); err != nil {
				return err
			}
		}
		if !confirmed {
			return nil
		}
		c.tell("gap_confirmed", c.at(PersonActor(q.Actor), q.Reason), Event{Workflow: q.Workflow, Item: q.Item})
		return c.PutGaps(gaps)
	})
	if err == nil && !confirmed && released == 0 {
		err = invalid("no gap is open: there is nothing to confirm")
	}
	return released, err
}

// confirm notes the scope; everything closes the gap.
func (g *Gap) confirm(q ConfirmGap, now time.Time) error {
	if q.Workflow == "" {
		g.Closed, g.Confirmed = now, nil
		return nil
	}
	if len(g.Confirmed) >= maxConfirmed {
		return invalid("%d scopes are confirmed one by one; confirm the workflow, or everything", maxConfirmed)
	}
	g.Confirmed = append(slices.Clone(g.Confirmed), Confirmed{q.Workflow, q.Item, now})
	return nil
}

// heldItems are those of the scope that an accepted loss holds.
func (l *Ledger) heldItems(ctx context.Context, q ConfirmGap) ([]*Item, error) {
	items, err := all(Filter{Workflow: q.Workflow, Item: q.Item, Limit: 1000}, func(f Filter) (Page[*Item], error) { return l.Items(ctx, f) })
	return slices.DeleteFunc(items, func(i *Item) bool {
		return !i.heldByLoss() || q.Item != "" && i.Item != q.Item
	}), err
}

// heldByLoss reports whether an accepted loss holds the item.
func (i *Item) heldByLoss() bool { return i.State == ItemNeedsAttention && i.Reason == ReasonLoss }

func (c *command) letIn(i *Item, q ConfirmGap) error {
	item, err := c.Item(i.Workflow, i.Item)
	if err != nil || !item.heldByLoss() {
		return err
	}
	item.State, item.Reason, item.Cause = ItemOpen, "", ""
	c.tell("item_confirmed", c.at(PersonActor(q.Actor), q.Reason), Event{Workflow: i.Workflow, Item: i.Item})
	return c.putItem(item)
}
