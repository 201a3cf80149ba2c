package badgerstore

import (
	"sync"
	"sync/atomic"
)

// giving is how far the engine has what the journal holds, and how far it should.
type giving struct {
	// given is the last commit that the engine has, with all before it.
	given atomic.Uint64

	mu    sync.Mutex
	moved *sync.Cond
	// last is the end of that commit, and durable up to where the engine's logs are synced.
	last, durable journalEnd
	// wanted and wantedDurable are how far somebody waits for both.
	wanted, wantedDurable uint64
	// ends says that no more commits will come.
	ends bool
	// ended is closed when giveLoop has.
	ended chan struct{}
}

func newGiving() *giving {
	g := &giving{ended: make(chan struct{})}
	g.moved = sync.NewCond(&g.mu)
	return g
}

// start says that all up to t is durable in the engine.
func (g *giving) start(t tip) {
	g.given.Store(t.Commit)
	g.last.tip, g.durable.tip = t, t
}

// reached says how far the engine has all.
func (g *giving) reached(end journalEnd) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = end
	g.given.Store(end.tip.Commit)
	g.moved.Broadcast()
}

// synced says that all that the engine has is durable. It has got nothing since that began.
func (g *giving) synced() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.durable = g.last
	g.moved.Broadcast()
}

// want asks for all up to n, without waiting for it.
func (g *giving) want(n uint64, durable bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ask(n, durable)
}

// ask is want. The lock is held.
func (g *giving) ask(n uint64, durable bool) {
	if n <= g.wanted && (!durable || n <= g.wantedDurable) {
		return
	}
	g.wanted = max(g.wanted, n)
	if durable {
		g.wantedDurable = max(g.wantedDurable, n)
	}
	g.moved.Broadcast()
}

// wake lets those who wait look whether the store is healthy still.
func (g *giving) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.moved.Broadcast()
}

// await waits until the engine has all up to n.
func (g *giving) await(n uint64, healthy func() error) error {
	if g.given.Load() >= n {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.awaits(healthy, n, false, func() bool { return g.given.Load() >= n })
}

// awaitDurable waits until that is durable, too, and returns how far it is.
func (g *giving) awaitDurable(n uint64, healthy func() error) (journalEnd, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.awaits(healthy, n, true, func() bool { return g.durable.tip.Commit >= n })
	return g.durable, err
}

// awaits waits for what is asked for. The lock is held.
func (g *giving) awaits(healthy func() error, n uint64, durable bool, done func() bool) error {
	for !done() {
		if err := healthy(); err != nil {
			return err
		}
		g.ask(n, durable)
		g.moved.Wait()
	}
	return nil
}

// durably returns up to where the engine's logs are synced.
func (g *giving) durably() journalEnd {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.durable
}

// end lets giveLoop end, with what is asked for or without.
func (g *giving) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends = true
	g.moved.Broadcast()
}

// task is what giveLoop does next.
type task struct{ give, sync bool }

// next waits for a task. False: there will be none.
func (g *giving) next() (t task, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		t = task{
			give: g.wanted > g.given.Load(),
			sync: g.wantedDurable > g.durable.tip.Commit,
		}
		switch {
		case g.ends:
			return task{}, false
		case t != (task{}):
			return t, true
		}
		g.moved.Wait()
	}
}

// giveLoop gives the engine what it lacks when somebody asks for it: who reads, or who needs room
// in the journal. Meanwhile commits go on. It alone writes to the engine, but for commits that
// are too long for the journal, before which it has nothing left to do.
func (s *Store) giveLoop() {
	defer close(s.giving.ended)
	for {
		t, ok := s.giving.next()
		if !ok {
			return
		}
		if err := s.gives.over(&aWrite, func() error { return s.giveNext(t) }); err != nil {
			s.poison(err)
			return
		}
	}
}

// giveNext does a task.
func (s *Store) giveNext(t task) error {
	if p := s.backlog.next(); p != nil {
		if err := s.give(p.list); err != nil {
			return err
		}
		pointAfterApply.Pass()
		end := p.end
		// In this order: who doesn't find it in the backlog looks into the snapshot.
		letGo := s.newest.renew(s.db.NewTransaction(false))
		s.backlog.leave()
		letGo()
		s.giving.reached(end)
	}
	if t.sync {
		if err := s.log.sync(); err != nil {
			return err
		}
		s.giving.synced()
	}
	return nil
}
