package badgerstore

import "hash/maphash"

// changed tells which keys the open batch, and the one before it that is being
// synced, have changed: what a command read of them isn't durable yet. It keeps
// hashes, so that it may say yes where it should say no, never the other way round.
// A nil one holds nothing.
type changed struct {
	seed    maphash.Seed
	horizon *horizon
	// number is the open batch's; now are its keys, before those of the last one.
	number      uint64
	now, before map[uint64]struct{}
}

func newChanged(h *horizon) *changed {
	return &changed{maphash.MakeSeed(), h, 0, map[uint64]struct{}{}, map[uint64]struct{}{}}
}

// begin makes number the open batch. One that was begun before and wasn't written
// changed nothing.
func (c *changed) begin(number uint64) {
	if number != c.number {
		c.number = number
		c.now, c.before = c.before, c.now
	}
	clear(c.now)
}

func (c *changed) add(k []byte) {
	if c != nil {
		c.now[maphash.Bytes(c.seed, k)] = struct{}{}
	}
}

// syncing reports whether the last batch isn't durable yet.
func (c *changed) syncing() bool {
	return len(c.before) > 0 && c.horizon.durable.Load() < c.number-1
}

// in returns the number of the commit that isn't durable and changed k, 0 if there
// is none.
func (c *changed) in(k []byte) uint64 {
	if !c.any() {
		return 0
	}
	h := maphash.Bytes(c.seed, k)
	if _, ok := c.now[h]; ok {
		return c.number
	}
	if _, ok := c.before[h]; ok && c.syncing() {
		return c.number - 1
	}
	return 0
}

func (c *changed) has(k []byte) bool { return c.in(k) > 0 }

func (c *changed) any() bool { return c != nil && (len(c.now) > 0 || c.syncing()) }
