// Package background counts work that outlives what began it, so that a shutdown can
// wait for it.
//
// # Failure
//
// Work that comes after the wait has begun isn't begun: Go says so, and its caller has to
// do without. A panic in the work is not caught here. Wait has no deadline; the work
// itself must have one.
package background

import "sync"

// Group is work that goes on in the background until Wait. Its zero value is ready.
//
// It differs from sync.WaitGroup in one thing: work may be begun at any moment, also while somebody waits or
// afterwards. A WaitGroup's counter would be misused then. What comes too late is refused, as there is nobody left to
// wait for it.
type Group struct {
	mu      sync.Mutex
	ended   bool
	working sync.WaitGroup
}

// Go begins work on a goroutine of its own, and reports whether it did. After Wait was called it does not.
func (g *Group) Go(work func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.working.Go(work)
	return true
}

// Begin begins work of the caller's own goroutine, and reports whether it may: after Wait was
// called it may not. Work that began calls End when it has ended.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.working.Add(1)
	}
	return !g.ended
}

// End ends what Begin began.
func (g *Group) End() { g.working.Done() }

// Wait lets no more work begin and returns when all that began has ended.
func (g *Group) Wait() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.working.Wait()
}
