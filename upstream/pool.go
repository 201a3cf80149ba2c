package upstream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxIdle bounds the idle connections to one upstream.
const maxIdle = 256

// pool keeps connections between dispatches, for as long as they are fresh.
type pool struct {
	// now is the clock that the age of an idle connection is measured on.
	now      func() time.Duration
	freshFor time.Duration
	// headBy bounds reading on a connection from when it is taken; zero for who sets
	// deadlines in other ways. It comes before the look, which an old deadline would
	// blind.
	headBy time.Duration

	mu     sync.Mutex
	idle   map[endpoint][]*conn // the one used last is last
	closed bool
	// sweeping says that a timer will sweep.
	sweeping bool
	// bound says that somebody has logged in on a connection.
	bound atomic.Bool
}

func newPool(now func() time.Duration, freshFor time.Duration) *pool {
	return &pool{now: now, freshFor: freshFor, idle: map[endpoint][]*conn{}}
}

// get returns an idle connection that is fresh now and quiet, or nil. Those that are
// not it closes.
func (p *pool) get(key endpoint, now time.Duration) *conn {
	for {
		c := p.pop(key)
		if c == nil {
			return nil
		}
		if now-c.idleSince < p.freshFor && c.readWithin(p.headBy) && c.quiet() {
			c.reused = true
			return c
		}
		c.close()
	}
}

func (p *pool) pop(key endpoint) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	conns := p.idle[key]
	if len(conns) == 0 {
		return nil
	}
	c := conns[len(conns)-1]
	p.idle[key] = conns[:len(conns)-1]
	conns[len(conns)-1] = nil
	return c
}

// put takes a connection back after a whole exchange, which ended just now.
func (p *pool) put(c *conn, now time.Duration) {
	c.idleSince = now
	if p.freshFor <= 0 || c.key.client == (nobody{}) || !p.push(c) {
		c.close()
		return
	}
	if c.key.client != nil {
		p.dropSurplus()
	}
}

func (p *pool) push(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle[c.key]) >= maxIdle {
		return false
	}
	p.idle[c.key] = append(p.idle[c.key], c)
	if !p.sweeping {
		p.sweepIn(p.freshFor)
	}
	return true
}

// sweepIn arranges for the next sweep. One timer serves all connections.
func (p *pool) sweepIn(d time.Duration) {
	p.sweeping = true
	time.AfterFunc(max(d, time.Millisecond), p.sweep)
}

// sweep closes the connections that stayed idle until they were no longer fresh, and
// comes back when the next one will be so.
func (p *pool) sweep() {
	p.mu.Lock()
	now, next := p.now(), time.Duration(-1)
	var stale []*conn
	for key, conns := range p.idle {
		// The ones idle for longest come first.
		n := slices.IndexFunc(conns, func(c *conn) bool { return now-c.idleSince < p.freshFor })
		if n < 0 {
			stale = append(stale, conns...)
			delete(p.idle, key)
			continue
		}
		stale = append(stale, conns[:n]...)
		p.idle[key] = slices.Delete(conns, 0, n)
		if left := p.freshFor - (now - p.idle[key][0].idleSince); next < 0 || left < next {
			next = left
		}
	}
	p.sweeping = false
	if next >= 0 {
		p.sweepIn(next)
	}
	p.mu.Unlock()
	for _, c := range stale {
		c.close()
	}
}

// drain closes every idle connection; if for good, no connection is kept any more.
func (p *pool) drain(forGood bool) {
	p.mu.Lock()
	idle := p.idle
	p.idle = map[endpoint][]*conn{}
	p.closed = p.closed || forGood
	p.mu.Unlock()
	for _, conns := range idle {
		for _, c := range conns {
			c.close()
		}
	}
}
