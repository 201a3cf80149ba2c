package upstream

import (
	"context"
	"net/http"
	"slices"
	"strings"
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
		if idle := now - c.idleSince; idle < p.freshFor && c.lasts(idle) && c.quiet() {
			c.link.Reused = true
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

// sweep closes idle connections that are no longer fresh, and runs again when the next one is due.
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

// ClientKey is where the context of a request holds the client's connection it came by, if any. The
// value can be compared and is unique. Connections on which somebody logged in are that client's
// alone.
type ClientKey struct{}

// nobody is whose a connection is that isn't used again.
type nobody struct{}

// mostBound bounds the idle connections on which somebody logged in: those of clients that have gone
// nobody takes any more.
const mostBound = 64

// bindsConnection reports whether a request logs in for all that follows on the connection, as with
// NTLM (RFC 4559 §6). The next request there would act in that name (RFC 9110 §3.3).
func bindsConnection(h http.Header) bool {
	for _, field := range h["Authorization"] {
		scheme, _, _ := strings.Cut(strings.TrimLeft(field, " \t"), " ")
		if strings.EqualFold(scheme, "Negotiate") || strings.EqualFold(scheme, "NTLM") {
			return true
		}
	}
	return false
}

// keyFor is what the connection of a request is kept for. A client that logged in keeps its own
// connection while that one lives. Its later requests don't log in again.
func (p *pool) keyFor(ctx context.Context, r *plan) endpoint {
	key := r.endpoint()
	if r.binds {
		p.bound.Store(true)
	} else if !p.bound.Load() {
		return key
	}
	own := key
	own.client = ctx.Value(ClientKey{})
	switch {
	case r.binds && own.client == nil:
		own.client = nobody{}
	case own.client == nil, !r.binds && !p.keeps(own):
		return key
	}
	return own
}

// keeps reports whether there are idle connections for key.
func (p *pool) keeps(key endpoint) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle[key]) > 0
}

// dropSurplus closes the longest idle connection that somebody logged in on, if there are too many
// of those.
func (p *pool) dropSurplus() {
	p.mu.Lock()
	var oldest *conn
	bound := 0
	for key, conns := range p.idle {
		if key.client == nil || len(conns) == 0 {
			continue
		}
		bound += len(conns)
		if oldest == nil || conns[0].idleSince < oldest.idleSince {
			oldest = conns[0]
		}
	}
	if bound > mostBound {
		p.idle[oldest.key] = slices.Delete(p.idle[oldest.key], 0, 1)
	} else {
		oldest = nil
	}
	p.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
}
