package badgerstore

import (
	"bytes"
	"hash/maphash"
)

// changed holds what the open batch has changed, the one before it, and those that the engine
// doesn't have yet. What a command reads here of the first two may not be durable yet. A nil one
// holds nothing.
type changed struct {
	backlog *backlog
	horizon *horizon
	// parcels are those of the backlog as the batch was begun; the batch before may lie in
	// none of them.
	parcels []*parcel
	// number is the open batch's; now are its changes, before those of the last one.
	number      uint64
	now, before *changes
}

// changes are those of one batch, each key once, in the order in which they came first.
type changes struct {
	list []delta
	// first leads from the hash of a key to the last change of a key that has it, counted
	// from 1.
	first map[uint64]int
}

// delta is an entry with the hash of its key, and the place of the change of another key of the
// same hash, counted from 1; 0 if there is none.
type delta struct {
	entry
	hash uint64
	next int
}

func newChanges() *changes { return &changes{first: map[uint64]int{}} }

// find returns the change of k, nil if there is none.
func (c *changes) find(hash uint64, k []byte) *delta {
	for at := c.first[hash]; at > 0; at = c.list[at-1].next {
		if bytes.Equal(c.list[at-1].key, k) {
			return &c.list[at-1]
		}
	}
	return nil
}

// set makes e the change of its key.
func (c *changes) set(hash uint64, e entry) {
	if known := c.find(hash, e.key); known != nil {
		known.sealed = e.sealed
		return
	}
	c.append(hash, e)
}

// append adds the change of a key that has none.
func (c *changes) append(hash uint64, e entry) {
	c.list = append(c.list, delta{e, hash, c.first[hash]})
	c.first[hash] = len(c.list)
}

// below tells fn of each change below prefix.
func (c *changes) below(prefix []byte, fn func(entry)) {
	for i := range c.list {
		if e := c.list[i].entry; bytes.HasPrefix(e.key, prefix) {
			fn(e)
		}
	}
}

func (c *changes) clear() {
	clear(c.list)
	c.list = c.list[:0]
	clear(c.first)
}

func newChanged(h *horizon, l *backlog) *changed {
	return &changed{backlog: l, horizon: h, now: newChanges(), before: newChanges()}
}

// begin makes number the open batch. One that was begun before and wasn't written
// changed nothing. The snapshot of the engine for it is taken later, and end follows.
func (c *changed) begin(number uint64) {
	c.parcels = c.backlog.parcels()
	if number != c.number {
		c.number = number
		c.now, c.before = c.before, c.now
	}
	c.now.clear()
}

// end says that the batch reads no more.
func (c *changed) end() {
	c.parcels = nil
}

// rest lets go of what the last batches held, unless it may not be durable yet. There must be no
// open batch.
func (c *changed) rest() {
	if !c.horizon.behind() {
		c.now, c.before = newChanges(), newChanges()
	}
}

func (c *changed) hash(k []byte) uint64 { return maphash.Bytes(c.backlog.seed, k) }

func (c *changed) add(e entry) { c.now.set(c.hash(e.key), e) }

// value returns what lies under k if one of the batches has changed it, which may be nil:
// it was removed. It is valid in this batch.
func (c *changed) value(k []byte) (sealed []byte, ok bool) {
	if c == nil || len(c.now.list)+len(c.before.list)+len(c.parcels) == 0 {
		return nil, false
	}
	hash := c.hash(k)
	e := c.now.find(hash, k)
	if e == nil {
		e = c.before.find(hash, k)
	}
	if e == nil {
		return c.backlog.valueIn(c.parcels, hash, k)
	}
	return e.sealed, true
}

// syncing reports whether the last batch isn't durable yet.
func (c *changed) syncing() bool {
	return len(c.before.list) > 0 && c.horizon.durable.Load() < c.number-1
}

// in returns the number of the commit that isn't durable and changed k, 0 if there
// is none.
func (c *changed) in(k []byte) uint64 {
	if !c.any() {
		return 0
	}
	hash := c.hash(k)
	if c.now.find(hash, k) != nil {
		return c.number
	}
	if c.before.find(hash, k) != nil && c.syncing() {
		return c.number - 1
	}
	return 0
}

func (c *changed) has(k []byte) bool { return c.in(k) > 0 }

func (c *changed) any() bool { return c != nil && (len(c.now.list) > 0 || c.syncing()) }

// overlay tells fn of each change below prefix, older ones first.
func (c *changed) overlay(prefix []byte, fn func(entry)) {
	if c == nil {
		return
	}
	c.backlog.overlayIn(c.parcels, prefix, fn)
	c.before.below(prefix, fn)
	c.now.below(prefix, fn)
}
