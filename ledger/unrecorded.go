package ledger

import "sync"

// Unrecorded are the mutations whose outcome the ledger hasn't taken. Until it has, it
// can't stop what depends on them: who sends adds them, and who lets requests through
// holds those against them. The zero value holds none; a process has one for all.
type Unrecorded struct {
	mu       sync.RWMutex
	blockers map[Key]Blocker
	// runs are those that were told of an unknown outcome, with the mutation's ID.
	// They are over, whatever the outcome turns out to be.
	runs  map[string]string
	added func()
}

// Watch lets added be called after each addition. There is one who watches.
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
		u.blockers, u.runs = make(map[Key]Blocker), make(map[string]string)
	}
	b := blockerOf(m)
	b.State = InFlight
	u.blockers[m.Key] = b
	if told != "" {
		u.runs[told] = m.ID
	}
	return u.added
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
func (u *Unrecorded) All() []Blocker {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if len(u.blockers) == 0 {
		return nil
	}
	list := make([]Blocker, 0, len(u.blockers))
	for _, b := range u.blockers {
		list = append(list, b)
	}
	return list
}
