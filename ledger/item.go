package ledger

import (
	"crypto/sha256"
	"encoding/hex"
)

// ItemID is the name by which people refer to an item: "i-" and 20 hex digits
// that depend on workflow and item alone.
func ItemID(workflow, item string) string {
	sum := sha256.Sum256([]byte("keep/v1 item\x00" + workflow + "\x00" + item))
	return "i-" + hex.EncodeToString(sum[:10])
}

// newItem is an item at its first attempt, not stored yet. A ledger that has lost
// nothing holds no mutation of it, which spares the look for their rules.
func (c *command) newItem(workflow, item string) (*Item, error) {
	i := &Item{
		ID: ItemID(workflow, item), Workflow: workflow, Item: item,
		State: ItemOpen, Attempt: 1, OpenedAt: c.now.Wall,
	}
	gaps, err := c.Gaps()
	i.Gaps = len(gaps)
	if err == nil && len(gaps) == 0 {
		i.Rules = []ItemRule{}
	}
	return i, err
}

// mutationsOf reads the mutations of an item, the oldest first.
func mutationsOf(v View, workflow, item string) ([]*Mutation, error) {
	keys, err := v.ItemMutations(workflow, item)
	list := make([]*Mutation, len(keys))
	for i := 0; err == nil && i < len(keys); i++ {
		list[i], err = v.Mutation(keys[i])
	}
	return list, err
}

// putItem stores the next version of i.
func (c *command) putItem(i *Item) error {
	i.Version++
	i.UpdatedAt = c.now.Wall
	return c.PutItem(i)
}

// putRun stores the next version of r.
func (c *command) putRun(r *Run) error {
	r.Version++
	return c.PutRun(r)
}

// needAttention makes the item wait for a person because of m. What came of the item meanwhile
// stands: one that is over, or at another attempt, is not waited with, and one that waits
// already goes on waiting for what it does.
func (c *command) needAttention(m *Mutation, why string) error {
	item, err := c.Item(m.Workflow, m.Item)
	if err != nil || item.Attempt != m.Attempt || item.State != ItemOpen && item.State != ItemFailed {
		return err
	}
	item.State, item.Reason, item.Cause = ItemNeedsAttention, why, m.ID
	return c.putItem(item)
}

// attended opens the item again if it waited because of m, unless another question that
// items wait for is open there still.
func (c *command) attended(m *Mutation) error {
	item, err := found(c.Item(m.Workflow, m.Item))
	if err != nil || item == nil || item.State != ItemNeedsAttention || item.Cause != m.ID || item.heldByLoss() {
		return err
	}
	if m.asks(EscalationMismatch) || m.asks(EscalationDrift) || m.asks(EscalationVerify) {
		return nil
	}
	item.State, item.Reason, item.Cause = ItemOpen, "", ""
	return c.putItem(item)
}
