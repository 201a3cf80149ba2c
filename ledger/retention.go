package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Retention says how long what has its outcome is kept whole. The zero value keeps all.
type Retention struct {
	// Keep is how long after its last change; 0 keeps all.
	Keep time.Duration
	// Forget removes the record: the same request would be sent. Else contents go, and it is refused.
	Forget bool
}

// Forgettable reports whether r lets go of m, as far as the record tells:
//
//  1. It is applied, failed or skipped, and nothing is under way or asked about it.
//  2. Its last change is longer ago than r.Keep and settle. Within one boot, by the boot clock too.
//  3. It has something to forget: contents or, where all is forgotten, the record.
//
// The record goes after the contents, as long again later, once its API forgot its vendor key.
func (r Retention) Forgettable(m *Mutation, now Stamp) bool {
	switch m.State {
	case Applied, Failed, Skipped:
	default:
		return false
	}
	if m.Undo != nil && m.State == Failed {
		return false // It is owed still.
	}
	if r.Keep <= 0 || m.Queued() || m.Escalated() || m.Unresolved() || m.Watching {
		return false
	}
	if !m.Forgotten.IsZero() && !r.Forget {
		return false
	}
	wait := max(r.Keep, m.Policy.Settle)
	if !m.Forgotten.IsZero() {
		wait = max(wait, m.Policy.KeyWindow, m.KeyKnown)
	}
	return m.unchangedFor(now) > wait
}

// unchangedFor is how long m has been as it is. The boot clock bounds what the wall clock says.
func (m *Mutation) unchangedFor(now Stamp) time.Duration {
	age := now.Wall.Sub(m.UpdatedAt)
	if last := m.LastSeen(); last.sameBoot(now) {
		age = min(age, now.Boot-last.Boot)
	}
	return age
}

// LastSeen is the last moment that the sendings of m recorded on every clock, zero for none.
func (m *Mutation) LastSeen() Stamp {
	if d := m.Current(); d != nil {
		return cmp.Or(d.Ended, d.Started)
	}
	return Stamp{}
}

// ForgetCounts tells what Forget did.
type ForgetCounts struct {
	// Dropped records lost their contents; Removed are gone.
	Dropped, Removed int
}

// Forget lets go of what r lets go of, in one transaction. A record stays while a run works on its item, or an
// effect of it is to be undone.
func (l *Ledger) Forget(ctx context.Context, keys []Key, r Retention) (ForgetCounts, error) {
	return evaluate(ctx, l, func(c *command) (counts ForgetCounts, err error) {
		for _, key := range keys {
			if err := c.forget(key, r, &counts); err != nil {
				return counts, err
			}
		}
		return counts, nil
	})
}

func (c *command) forget(key Key, r Retention, counts *ForgetCounts) error {
	m, err := c.Mutation(key)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || !r.Forgettable(m, c.now) || c.sending(m, 0) {
		return err
	}
	if owes, err := c.owes(m); err != nil || owes {
		return err
	}
	item, err := found(c.Item(m.Workflow, m.Item))
	if err != nil {
		return err
	}
	if busy, err := c.worksOn(item); err != nil || busy {
		return err
	}
	mv := c.at(ActorRetention, fmt.Sprintf("nothing changed it for longer than %s", r.Keep))
	if !m.Forgotten.IsZero() {
		counts.Removed++
		return c.remove(m, item, mv)
	}
	m.dropContents(c.now.Wall)
	counts.Dropped++
	return c.store(m, m.State, "forgotten", mv, "", "")
}

// worksOn reports whether a run works on the item. A run of many items that was ended still names it.
func (c *command) worksOn(item *Item) (bool, error) {
	if item == nil || item.ActiveRun == "" {
		return false, nil
	}
	r, err := c.runOf(item.ActiveRun)
	return r != nil && !r.State.Ended(), err
}

// remove takes the record away, and with the last one an item that is over; their events stay.
func (c *command) remove(m *Mutation, item *Item, mv move) error {
	e := m.event()
	e.From = m.State
	c.tell("removed", mv, e)
	if err := c.useUp(m); err != nil {
		return err
	}
	if err := c.DropMutation(m); err != nil || item == nil || !item.over() {
		return err
	}
	left, err := c.ItemMutations(m.Workflow, m.Item)
	if err != nil || len(left) > 0 {
		return err
	}
	return c.DropItem(item)
}

// dropContents leaves of m what tells it from others and what became of it.
func (m *Mutation) dropContents(now time.Time) {
	m.Forgotten = now
	m.Request.Header, m.Request.Body.Dropped = nil, m.Request.Body.SHA256 != ""
	m.Diff, m.Kept = nil, nil
	if m.Result != nil {
		m.Result.Header, m.Result.Body.Dropped = nil, m.Result.Body.SHA256 != ""
		m.Result.Trailer = nil
	}
}

// forgotten refuses what was applied, and its answer dropped, unless the rule answers for that.
func (c *claiming) forgotten() (*Claimed, error) {
	if c.covered() && c.q.OnNoResult {
		return &Claimed{Decision: DecideStandIn}, c.useRun(false)
	}
	return c.endByLogic(refused("forgotten", "Mutation %s (%s) was applied, and retention dropped its answer on %s. It is not sent again.",
		c.m.ID, c.m.Target, c.m.Forgotten.UTC().Format(time.RFC3339)))
}

// What a removed record made is still there, with its marker and vendor key. A later record of the key must not take
// that for its own, so it gets others. A used marker is kept as evidence of no connector.

// markedBy is from what marker and vendor keys derive: the key, and how many records of it were removed.
func markedBy(k Key, remade int) Key {
	if remade == 0 {
		return k
	}
	buf := append([]byte("keep/v1 remade\x00"), k[:]...)
	return sha256.Sum256(binary.BigEndian.AppendUint64(buf, uint64(max(remade, 0))))
}

// mark gives the new record m a marker that no removed record had, and counts these.
func (c *command) mark(m *Mutation) error {
	for m.Remade = 0; ; m.Remade++ {
		m.Marker = Marker(markedBy(m.Key, m.Remade))
		switch _, err := c.EvidenceOf("", "", m.Marker); {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		}
	}
}

// useUp notes that the marker of m, which is removed, isn't free.
func (c *command) useUp(m *Mutation) error {
	return c.PutEvidence("", "", Marker(markedBy(m.Key, m.Remade)), m.Key)
}

// Owns reports whether an object that is evidence for owner is m's own. Where records of its key were removed
// before, it is only if m itself found it.
func (m *Mutation) Owns(owner Key, object string) bool {
	if owner != m.Key || m.Remade == 0 {
		return owner == m.Key
	}
	return slices.ContainsFunc(m.Observations, func(o Observation) bool {
		return (o.Seen == SeenApplied || o.Seen == SeenDuplicate) && slices.Contains(o.Objects, object)
	})
}
