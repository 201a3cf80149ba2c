package badgerstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// state is what readers see: the ledger as of the newest durable commit.
type state struct {
	// durable is the number of that commit.
	durable atomic.Uint64

	mu sync.Mutex
	// young is what was changed since the last fold began, old what that fold takes to Badger.
	young, old *memtable
	engine     *engine
	// tip is the end of the ledger as it is seen.
	tip tip
	// folded is the newest commit that Badger has, with all before it; moved is told when that changes.
	folded uint64
	moved  *sync.Cond
}

// engine is a transaction of Badger and the number of its readers. The state reads the newest one, too. A
// transaction of a reader's own would wait for the batch that Badger is being given.
type engine struct {
	txn     *badger.Txn
	readers int
}

func newState() *state {
	s := &state{young: new(memtable)}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// reading is a snapshot that must be given back.
type reading struct {
	snapshot
	engine *engine
	tip    tip
	folded uint64
}

// take returns the newest snapshot; false if the store is closed.
func (s *state) take() (reading, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return reading{}, false
	}
	s.engine.readers++
	return reading{snapshot{s.young, s.old, s.tip.Commit, s.engine.txn}, s.engine, s.tip, s.folded}, true
}

// give gives a snapshot back.
func (s *state) give(r reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(r.engine)
}

// leave lets the last reader discard the transaction. The lock is held.
func (s *state) leave(e *engine) {
	if e.readers--; e.readers == 0 {
		e.txn.Discard()
	}
}

// publish shows a durable commit. old is nil unless a fold begins with it.
func (s *state) publish(t tip, young, old *memtable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.young = young
	if old != nil {
		s.old = old
	}
	s.tip = t
	s.durable.Store(t.Commit)
}

// fold shows that Badger has all up to commit n.
func (s *state) fold(n uint64, txn *badger.Txn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew(txn)
	s.old, s.folded = nil, n
	s.moved.Broadcast()
}

// renew makes txn the newest transaction, nil for none. The lock is held.
func (s *state) renew(txn *badger.Txn) {
	if s.engine != nil {
		s.leave(s.engine)
	}
	if s.engine = nil; txn != nil {
		s.engine = &engine{txn, 1}
	}
}

// end lets the newest transaction go.
func (s *state) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew(nil)
}

// awaitFold waits until Badger has commit n, or the store is sick.
func (s *state) awaitFold(n uint64, healthy func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.folded < n {
		if err := healthy(); err != nil {
			return err
		}
		s.moved.Wait()
	}
	return nil
}

// wake lets those who wait look whether the store is healthy still.
func (s *state) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved.Broadcast()
}

// View implements ledger.Store.
func (s *Store) View(ctx context.Context, fn func(ledger.View) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.snapshot(func(src snapshot) error { return fn(&view{src: src, process: s.process}) })
}

// Peek implements ledger.Store.
func (s *Store) Peek(ctx context.Context, fn func(ledger.View) error) error { return s.View(ctx, fn) }

// readable enters a reader, who must leave with readers.Done.
func (s *Store) readable() error {
	s.door.RLock()
	defer s.door.RUnlock()
	if s.closed {
		return fmt.Errorf("%w: the store is closed", ledger.ErrUnavailable)
	}
	s.readers.Add(1)
	return nil
}

// snapshot reads what is durable. Damage stops the store, and a stopped one reads nothing.
func (s *Store) snapshot(fn func(snapshot) error) error {
	return s.snapshotAt(func(src snapshot, _ tip) error { return fn(src) })
}

// snapshotAt is snapshot with the end of the ledger then.
func (s *Store) snapshotAt(fn func(snapshot, tip) error) error {
	if err := s.readable(); err != nil {
		return err
	}
	defer s.readers.Done()
	if err := s.Healthy(); err != nil {
		return err
	}
	src, ok := s.state.take()
	if !ok {
		return fmt.Errorf("%w: the store is closed", ledger.ErrUnavailable)
	}
	defer s.state.give(src)
	err := fn(src.snapshot, src.tip)
	if err != nil && isDamage(err) {
		s.poison(err)
	}
	return err
}
