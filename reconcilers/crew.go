package reconcilers

import "sync"

// crew is the goroutines that try. One that has ended its try waits for another, until the
// crew is dismissed: a new one would grow its stack anew.
type crew struct {
	// hand gives a try to one that waits, or lets it go.
	hand chan func()

	mu sync.Mutex
	// waiting is how many wait, or are just about to; whoever takes one off gives it
	// something by hand.
	waiting int
	// dismissed lets those go, too, that are under way, unless there is more to do.
	dismissed bool
}

func newCrew() *crew { return &crew{hand: make(chan func())} }

// do runs f in a goroutine of its own.
func (c *crew) do(f func()) {
	c.mu.Lock()
	c.dismissed = false
	waits := c.waiting > 0
	if waits {
		c.waiting--
	}
	c.mu.Unlock()
	if waits {
		c.hand <- f
		return
	}
	go func() {
		for ; f != nil; f = c.next() {
			f()
		}
	}()
}

// next is what a goroutine does next, nil for nothing.
func (c *crew) next() func() {
	c.mu.Lock()
	dismissed := c.dismissed
	if !dismissed {
		c.waiting++
	}
	c.mu.Unlock()
	if dismissed {
		return nil
	}
	return <-c.hand
}

// dismiss lets all goroutines go, those under way when they have ended.
func (c *crew) dismiss() {
	c.mu.Lock()
	n := c.waiting
	c.waiting, c.dismissed = 0, true
	c.mu.Unlock()
	for range n {
		c.hand <- nil
	}
}
