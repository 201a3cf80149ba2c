package upstream

import (
	"slices"
	"sync"
	"time"

	"keep-proxy/internal/clock"
)

// maxIdle bounds the idle connections to one upstream.
const maxIdle = 256

// pool keeps connections between dispatches, for as long as they are fresh.
type pool struct {
	clock    clock.Clock
	freshFor time.Duration

	mu     sync.Mutex
	idle   map[string][]*conn // the one used last is last
	closed bool
}

func newPool(c clock.Clock, freshFor time.Duration) *pool {
	return &pool{clock: c, freshFor: freshFor, idle: map[string][]*conn{}}
}

// get returns an idle connection that is fresh and quiet, or nil. Those that are
// not it closes.
func (p *pool) get(key string) *conn {
	for {
		c := p.pop(key)
		if c == nil {
			return nil
		}
		if p.clock.Boot()-c.idleSince < p.freshFor && c.quiet() {
			c.reused = true
			return c
		}
		c.close()
	}
}

func (p *pool) pop(key string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.idle[key]
	if len(conns) == 0 {
		return nil
	}
	c := conns[len(conns)-1]
	p.idle[key] = conns[:len(conns)-1]
	c.idleTimer.Stop()
	return c
}

// put takes a connection back after a whole exchange.
func (p *pool) put(c *conn) {
	c.idleSince = p.clock.Boot()
	if p.freshFor <= 0 || !p.push(c) {
		c.close()
	}
}

func (p *pool) push(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle[c.key]) >= maxIdle {
		return false
	}
	if c.idleTimer == nil {
		c.idleTimer = time.AfterFunc(p.freshFor, func() { p.evict(c) })
	} else {
		c.idleTimer.Reset(p.freshFor)
	}
	p.idle[c.key] = append(p.idle[c.key], c)
	return true
}

// evict closes a connection that stayed idle until it was no longer fresh. If it
// was taken meanwhile it is not there any more, and stays.
func (p *pool) evict(c *conn) {
	p.mu.Lock()
	conns := p.idle[c.key]
	i := slices.Index(conns, c)
	if i >= 0 && p.clock.Boot()-c.idleSince < p.freshFor {
		// An earlier timer, or one whose clock runs ahead of the boot-time clock.
		c.idleTimer.Reset(p.freshFor)
		i = -1
	}
	if i >= 0 {
		p.idle[c.key] = slices.Delete(conns, i, i+1)
		if len(p.idle[c.key]) == 0 {
			delete(p.idle, c.key)
		}
	}
	p.mu.Unlock()
	if i >= 0 {
		c.close()
	}
}

// drain closes every idle connection; if for good, no connection is kept any more.
func (p *pool) drain(forGood bool) {
	p.mu.Lock()
	idle := p.idle
	p.idle = map[string][]*conn{}
	p.closed = p.closed || forGood
	p.mu.Unlock()
	for _, conns := range idle {
		for _, c := range conns {
			c.idleTimer.Stop()
			c.close()
		}
	}
}
