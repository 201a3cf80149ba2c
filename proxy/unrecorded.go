package proxy

import (
	"sync"

	"keep-proxy/ledger"
)

// unrecorded are the mutations whose outcome the ledger hasn't taken. Until it has,
// it can't stop what depends on them, so that they stop it here.
type unrecorded struct {
	mu       sync.RWMutex
	blockers map[ledger.Key]ledger.Blocker
	// runs are those that were told of an unknown outcome, with the mutation's ID.
	// They are over, whatever the outcome turns out to be.
	runs map[string]string
	// added is called after each addition.
	added func()
}

func newUnrecorded(added func()) *unrecorded {
	return &unrecorded{blockers: make(map[ledger.Key]ledger.Blocker), runs: make(map[string]string), added: added}
}

// add stops what depends on m, and the run that sent it.
func (u *unrecorded) add(m *ledger.Mutation, run string) {
	defer u.added()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.blockers[m.Key] = ledger.Blocker{
		Key: m.Key, ID: m.ID, Workflow: m.Workflow, Item: m.Item, Run: run,
		Scope: m.Policy.BlockScope, State: ledger.InFlight,
	}
	if run != "" {
		u.runs[run] = m.ID
	}
}

// recorded says that the ledger stops, from now on, what depends on k.
func (u *unrecorded) recorded(k ledger.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.blockers, k)
}

// ended says that the ledger knows that the run is over.
func (u *unrecorded) ended(run string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.runs, run)
}

// cause names the mutation that ended a run which the ledger may still take for
// running.
func (u *unrecorded) cause(run string) (id string, over bool) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	id, over = u.runs[run]
	return id, over
}

// all lists the mutations.
func (u *unrecorded) all() []ledger.Blocker {
	u.mu.RLock()
	defer u.mu.RUnlock()
	if len(u.blockers) == 0 {
		return nil
	}
	list := make([]ledger.Blocker, 0, len(u.blockers))
	for _, b := range u.blockers {
		list = append(list, b)
	}
	return list
}
