package script

import (
	"strings"
	"sync"
)

// Deck holds the faults that are armed. The zero Deck is ready and empty. It is
// safe for concurrent use: a fault for N requests is given to exactly N.
type Deck struct {
	mu    sync.Mutex
	cards []card
}

type card struct {
	fault Fault
	left  int // Always, or how many requests it still handles
}

// Arm validates the fault and puts it behind those that are armed already.
func (d *Deck) Arm(f Fault) error {
	if err := f.Validate(); err != nil {
		return err
	}
	left := f.Times
	if left == 0 {
		left = 1
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cards = append(d.cards, card{fault: f, left: left})
	return nil
}

// Take returns the first armed fault that matches, and uses it once. Before the
// body is read only faults with an early answer are looked at, after it only
// the others.
func (d *Deck) Take(s Subject, bodyRead bool) (Fault, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.cards {
		c := &d.cards[i]
		if c.fault.EarlyAnswer() == bodyRead || !c.fault.Match.Fits(s) {
			continue
		}
		fault := c.fault
		if c.left != Always {
			c.left--
		}
		if c.left == 0 {
			d.cards = append(d.cards[:i], d.cards[i+1:]...)
		}
		return fault, true
	}
	return Fault{}, false
}

// Armed returns the faults that still wait for requests, Times being what is
// left of them.
func (d *Deck) Armed() []Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Fault, 0, len(d.cards))
	for _, c := range d.cards {
		c.fault.Times = c.left
		out = append(out, c.fault)
	}
	return out
}

// Clear removes every armed fault.
func (d *Deck) Clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cards = nil
}

// Fits reports whether the request is meant.
func (m Match) Fits(s Subject) bool {
	return m.fitsMethod(s.Method) && m.fitsPath(s.Path) &&
		(m.Identity == "" || m.Identity == s.Identity) &&
		(m.When == nil || m.When(s))
}

func (m Match) fitsMethod(method string) bool {
	switch m.Method {
	case "*":
		return true
	case "":
		return method != "GET" && method != "HEAD" && method != "OPTIONS"
	}
	return m.Method == method
}

func (m Match) fitsPath(path string) bool {
	prefix, open := strings.CutSuffix(m.Path, "*")
	if open {
		return strings.HasPrefix(path, prefix)
	}
	return m.Path == "" || m.Path == path
}
