package badgerstore

import (
	"sync"
	"sync/atomic"
)

// horizon knows how far commits are complete, and how far they are durable. What lies between is
// seen by the committer alone.
type horizon struct {
	written, durable atomic.Uint64

	mu    sync.Mutex
	moved *sync.Cond
}

func newHorizon() *horizon {
	h := new(horizon)
	h.moved = sync.NewCond(&h.mu)
	return h
}

// start says that all up to n is durable.
func (h *horizon) start(n uint64) {
	h.written.Store(n)
	h.durable.Store(n)
}

// wrote says that commit n may become durable from now on.
func (h *horizon) wrote(n uint64) { h.written.Store(n) }

// reached says that all up to n is durable.
func (h *horizon) reached(n uint64) {
	h.mu.Lock()
	h.durable.Store(n)
	h.mu.Unlock()
	h.moved.Broadcast()
}

// wake lets those who wait look whether the store is healthy still.
func (h *horizon) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moved.Broadcast()
}

// behind reports whether something is written that isn't durable.
func (h *horizon) behind() bool { return h.durable.Load() < h.written.Load() }

// await waits until all that is written now is durable, and returns the number of its last
// commit. It fails if that can't become so any more.
func (h *horizon) await(healthy func() error) (n uint64, err error) {
	n = h.written.Load()
	if h.durable.Load() >= n {
		return n, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.durable.Load() < n {
		if err := healthy(); err != nil {
			return n, err
		}
		h.moved.Wait()
	}
	return n, nil
}
