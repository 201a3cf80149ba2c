package ledger

import (
	"slices"
	"sync"
)

// Unrecorded are the mutations whose outcome the ledger hasn't taken. Until it has, its
// records don't stop what depends on them: who sends adds them, and the gate, claims,
// redispatches and the opening of runs hold theirs against them, too. The zero value
// holds none.
type Unrecorded struct {
	mu       sync.RWMutex
	blockers map[Key]Blocker
	// runs are those that were told of an unknown outcome, with the mutation's ID.
	// They are over, whatever the outcome turns out to be.
	runs  map[string]string
	added func()
}

// Watch lets added be called after each addition, of a run too. There is one who watches.
func (u *Unrecorded) Watch(added func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.added = added
}

// Add stops what depends on m, and the run, if any, that was told of an unknown outcome.
func (u *Unrecorded) Add(m *Mutation, told string) {
	if added := u.add(m, told); added != nil {
		added()
	}
}

func (u *Unrecorded) add(m *Mutation, told string) (added func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.blockers == nil {
		u.blockers = make(map[Key]Blocker)
	}
	if u.runs == nil {
		u.runs = make(map[string]string)
	}
	b := blockerOf(m)
	b.State = InFlight
	u.blockers[m.Key] = b
	if told != "" {
		u.runs[told] = m.ID
	}
	return u.added
}

// Told says that the run was told of the unknown outcome of the mutation with this ID, and that the
// ledger doesn't know.
func (u *Unrecorded) Told(run, id string) {
	u.mu.Lock()
	if u.runs == nil {
		u.runs = make(map[string]string)
	}
	u.runs[run] = id
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

// Cause names the mutation that ended a run which the ledger may still take for
// running.
func (u *Unrecorded) Cause(run string) (id string, over bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	id, over = u.runs[run]
	return id, over
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
