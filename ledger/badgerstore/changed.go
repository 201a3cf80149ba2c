package badgerstore

import "hash/maphash"

// changed tells which keys a batch has changed so far: what a command read of them
// isn't durable yet. It keeps hashes, so that it may say yes where it should say no,
// never the other way round. A nil one holds nothing.
type changed struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newChanged() *changed {
	return &changed{maphash.MakeSeed(), map[uint64]struct{}{}}
}

func (c *changed) add(k []byte) {
	if c != nil {
		c.hashes[maphash.Bytes(c.seed, k)] = struct{}{}
	}
}

func (c *changed) has(k []byte) bool {
	if c == nil || len(c.hashes) == 0 {
		return false
	}
	_, ok := c.hashes[maphash.Bytes(c.seed, k)]
	return ok
}

func (c *changed) any() bool { return c != nil && len(c.hashes) > 0 }

func (c *changed) clear() { clear(c.hashes) }
