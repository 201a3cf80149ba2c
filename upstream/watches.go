package upstream

import (
	"slices"
	"sync"
	"time"

	"keep-proxy/internal/clock"
)

// watches are those of the dispatches under way. One timer serves them all: one for each
// dispatch would be made and stopped a thousand times for once that it is needed, and wake
// a thread that waits for the network each time. Go's timers stand still while the machine
// sleeps, so it wakes at least every lookEvery to look at the boot-time clock, as long
// as there is a dispatch.
type watches struct {
	clock     clock.Clock
	lookEvery time.Duration

	mu    sync.Mutex
	under map[*watch]struct{}
	timer *time.Timer // nil before the first dispatch
	// armed says that the timer will look, due when it will at the latest.
	armed bool
	due   time.Time
}

func newWatches(c clock.Clock, lookEvery time.Duration) *watches {
	return &watches{clock: c, lookEvery: lookEvery, under: make(map[*watch]struct{})}
}

// add has a watch looked at, which has so much time left.
func (s *watches) add(w *watch, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under[w] = struct{}{}
	s.arm(left)
}

// remove has it looked at no more, unless that is being done.
func (s *watches) remove(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.under, w)
}

// arm has the timer look when so much time has passed, or sooner. s.mu is held.
func (s *watches) arm(left time.Duration) {
	pause := min(s.lookEvery, max(left, 0))
	due := time.Now().Add(pause)
	switch {
	case s.armed && !due.Before(s.due):
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(pause, s.look)
	default:
		s.timer.Reset(pause)
	}
	s.armed, s.due = true, due
}

// look ends the dispatches whose deadlines have run out. A kill may wait, so nothing is
// held meanwhile.
func (s *watches) look() {
	s.mu.Lock()
	s.armed = false
	under := make([]*watch, 0, len(s.under))
	for w := range s.under {
		under = append(under, w)
	}
	s.mu.Unlock()
	now, left := s.clock.Boot(), []time.Duration{s.lookEvery}
	for _, w := range under {
		if l := w.look(now); l > 0 {
			left = append(left, l)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.under) > 0 {
		s.arm(slices.Min(left))
	}
}
