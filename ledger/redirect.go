package ledger

import "slices"

// mostRedirected bounds the redirected mutations that an item lists. Of older ones no second address is known.
const mostRedirected = 64

// redirected lists m, which is done elsewhere by the word of a 307 or 308, with its item.
func (c *command) redirected(m *Mutation) error {
	if m.State != Failed || m.MovedTo == "" {
		return nil
	}
	item, err := found(c.Item(m.Workflow, m.Item))
	if item == nil || slices.Contains(item.Redirected, m.Key) {
		return err
	}
	item.Redirected = append(slices.Clip(item.Redirected[max(0, len(item.Redirected)+1-mostRedirected):]), m.Key)
	return c.putItem(item)
}
