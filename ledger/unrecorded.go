package ledger

import (
	"slices"
	"sync"
)

// Unrecorded are the mutations whose outcome the ledger couldn't record, so that its records don't stop anything.
// Gate, claims, redispatches and the opening of runs hold them against requests too. The zero value holds none.
type Unrecorded struct {
	mu       sync.RWMutex
	blockers map[Key]Blocker
	// runs are over, though the ledger couldn't be told yet.
	runs  map[string]Over
	added func()
}

// Over is why a run is over that the ledger may still take for running.
type Over struct {
	// Cause names what ended it, mostly a mutation by its ID.
	Cause string
	Why   string
}

// Watch lets added be called after each addition, of a run too. There is one who watches.
func (u *Unrecorded) Watch(added func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.added = added
}

// Add stops what depends on m, and the run, if any, that was told of its unknown outcome.
func (u *Unrecorded) Add(m *Mutation, told string, over Over) {
	b := blockerOf(m)
	b.State = InFlight
	u.change(func() {
		if u.blockers == nil {
			u.blockers = make(map[Key]Blocker)
		}
		u.blockers[m.Key] = b
		u.end(told, over)
	})
}

// End says that the run is over, and that the ledger doesn't know.
func (u *Unrecorded) End(run string, over Over) {
	u.change(func() { u.end(run, over) })
}

func (u *Unrecorded) end(run string, over Over) {
	if run == "" {
		return
	}
	if u.runs == nil {
		u.runs = make(map[string]Over)
	}
	u.runs[run] = over
}

// change makes an addition, and tells who watches.
func (u *Unrecorded) change(add func()) {
	u.mu.Lock()
	add()
	added := u.added
	u.mu.Unlock()
	if added != nil {
		added()
	}
}

// Recorded says that the ledger stops, from now on, what depends on k.
func (u *Unrecorded) Recorded(k Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.blockers, k)
}

// Ended says that the ledger knows that the run is over.
func (u *Unrecorded) Ended(run string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.runs, run)
}

// Over says why a run is over that the ledger may still take for running.
func (u *Unrecorded) Over(run string) (Over, bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	over, is := u.runs[run]
	return over, is
}

// All lists the mutations.
func (u *Unrecorded) All() []Blocker { return u.beside(nil) }

// beside lists what stops by the records, and then the mutations.
func (u *Unrecorded) beside(recorded []Blocker) []Blocker {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if len(u.blockers) == 0 {
		return recorded
	}
	list := slices.Grow(slices.Clone(recorded), len(u.blockers))
	for _, b := range u.blockers {
		list = append(list, b)
	}
	return list
}

// blockers are what stops the workflow or a part of it.
func (c *command) blockers(workflow string) ([]Blocker, error) {
	recorded, err := c.Blockers(workflow)
	return c.ledger.unrecorded.beside(recorded), err
}
