package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// queueLength is how many commands may wait before callers do.
const queueLength = 4096

// Store is an open ledger. Its methods may be used by many goroutines at once.
type Store struct {
	config   Config
	identity identity
	process  ledger.Process
	db       *badger.DB
	lock     *ledgerLock
	water    *highWater
	space    *space
	pending  pendingBodies
	backlog  *backlog
	newest   newest

	horizon *horizon
	giving  *giving
	log     *logSync

	queue chan *command
	notes notes
	// syncing takes batches from the committer to syncLoop; turn holds a token while
	// none is being written; drained is closed when both have ended.
	syncing chan *batch
	turn    chan struct{}
	// followers are told of commits. They belong to who has the turn.
	followers []func(ledger.Changes)
	drained   chan struct{}
	// lasts is closed when what Close writes has ended.
	lasts chan struct{}
	sick  atomic.Pointer[error]
	// stalled is closed when a write or a sync didn't end in time.
	stalled   chan struct{}
	stallOnce sync.Once
	// commands looks after the committer, syncs after syncLoop, gives after giveLoop.
	commands, syncs, gives *watch
	commits                atomic.Uint64
	// older says that the folder is a restored copy that the high-water file doesn't
	// know.
	older bool
	// behind is set while the gap of such a copy isn't noted.
	behind behind
	// left is what is left of a ledger whose loss is being accepted.
	left leftover
	// lost are events that accepted losses took; it is set before the store is used.
	lost lostEvents

	// tending keeps a backup and the removal of bodies apart.
	tending sync.RWMutex
	// door is held for reading by those who need the store open.
	door    sync.RWMutex
	closed  bool
	readers sync.WaitGroup

	// The committer's own, and Open's before it starts.
	tip           tip
	checkpoint    checkpoint
	checkpointDue bool
	written       uint64
	layer         *layer
	ends          *layer // what completes a batch
	tx            tx
	changed       *changed
	// held is a command that waits for the next batch.
	held *command
	// blockers are the unresolved mutations as the last command left them, and blockedIn is the number
	// of the last commit that changed them.
	blockers  ledger.Blockers
	blockedIn uint64
	mutations shelf[ledger.Key, entryOfMutation]
	runs      shelf[string, *ledger.Run]
	items     shelf[itemName, *ledger.Item]
	// deliveries are known, too, where there are none: nil.
	deliveries shelf[deliveryName, *ledger.Delivery]
	gaps       knownGaps
	// named are the bodies that records named since a sweep began, nil without one.
	named map[string]struct{}
	// bodies and connectors are those that are stored, by the digests that name them.
	bodies     shelf[[32]byte, struct{}]
	connectors shelf[string, struct{}]
	// spans are those of which the key is stored.
	spans shelf[spanName, struct{}]
}

var _ ledger.Store = (*Store)(nil)

// Process implements ledger.Store.
func (s *Store) Process() ledger.Process { return s.process }

// ID is the ledger's own id.
func (s *Store) ID() string { return s.identity.ID }

// Dir returns the ledger's folder.
func (s *Store) Dir() string { return s.config.Dir }

// Commits returns how many commits were synced since Open; each is one sync of the
// high-water file.
func (s *Store) Commits() uint64 { return s.commits.Load() }

// Follow implements ledger.Store. Nothing is being synced meanwhile, so that all that is written is
// durable.
func (s *Store) Follow(follower func(ledger.Changes)) error {
	select {
	case <-s.turn:
	case <-s.stalled:
		return s.Healthy()
	}
	defer func() { s.turn <- struct{}{} }()
	return s.snapshot(func(src snapshot) error {
		all, err := standing(src)
		if err != nil {
			return err
		}
		follower(all)
		s.followers = append(s.followers, follower)
		return nil
	})
}

// View implements ledger.Store.
func (s *Store) View(ctx context.Context, fn func(ledger.View) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.snapshot(func(src snapshot) error { return fn(&view{src: src, process: s.process}) })
}

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

// snapshot reads what is durable, the commit that is on its way now included: it waits for
// that, and for the engine to have it. Damage stops the store.
func (s *Store) snapshot(fn func(snapshot) error) error {
	if err := s.readable(); err != nil {
		return err
	}
	defer s.readers.Done()
	n, err := s.horizon.await(s.Healthy)
	if err != nil {
		return err
	}
	if err := s.giving.await(n, s.Healthy); err != nil {
		return err
	}
	// One of its own would be waited for until the engine has what it is being given, which may
	// hang, and would have a commit too long for the journal before that is durable.
	src := s.newest.take()
	if src == nil {
		return fmt.Errorf("%w: the store is closed", ledger.ErrUnavailable)
	}
	defer s.newest.give(src)
	err = fn(src.snapshot)
	if err != nil && isDamage(err) {
		s.poison(err)
	}
	return err
}

// Close implements ledger.Store: it lets queued commands end, waits for readers,
// writes a last checkpoint and lets the folder go. A second Close does nothing.
func (s *Store) Close() error {
	s.door.Lock()
	if s.closed {
		s.door.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.door.Unlock()
	if err := s.ended(s.drained); err != nil {
		return err
	}
	s.readers.Wait()
	var err error
	go func() {
		defer close(s.lasts)
		err = s.writeLast()
	}()
	if late := s.ended(s.lasts); late != nil {
		return late
	}
	s.giving.end()
	if late := s.ended(s.giving.ended); late != nil {
		return errors.Join(err, late)
	}
	return errors.Join(err, s.release())
}

// writeLast writes what the next start would do otherwise. Its syncs may hang as any others.
func (s *Store) writeLast() error {
	if s.Healthy() == nil && s.written > s.checkpoint.Bytes {
		if err := s.writeCheckpoint(); err != nil {
			return err
		}
	}
	if s.Healthy() != nil {
		return nil //nolint:nilerr // It was told as the store stopped.
	}
	end, err := s.giving.awaitDurable(s.water.last.Commit, s.Healthy)
	if err != nil {
		return err
	}
	return s.syncs.over(&aSync, func() error { return s.water.settle(end) })
}

// writeCheckpoint commits a transaction that holds nothing else. It must not run
// beside the committer.
func (s *Store) writeCheckpoint() error {
	s.checkpointDue = true
	b := s.begin()
	s.end(b)
	if err := s.commit(b); err != nil {
		return err
	}
	if err := s.awaitRoom(b); err != nil {
		return err
	}
	return s.syncs.over(&aSync, func() error { return s.persist(b) })
}

// release closes the files, in the order opposite to opening. All stay open if the engine does: it may
// still write.
func (s *Store) release() error {
	s.newest.renew(nil)()
	left, err := s.config.closeEngine(s.db)
	if left {
		return err
	}
	if s.log != nil {
		err = errors.Join(err, s.log.close())
	}
	if s.water != nil {
		err = errors.Join(err, s.water.close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.release())
	}
	return err
}

// start lets the committer run.
func (s *Store) start() {
	s.queue = make(chan *command, queueLength)
	s.notes.come = make(chan struct{}, 1)
	s.drained, s.lasts = make(chan struct{}), make(chan struct{})
	s.syncing = make(chan *batch)
	s.turn = make(chan struct{}, 1)
	s.turn <- struct{}{}
	go s.commitLoop(s.config.restAfter())
	go s.syncLoop()
	go s.giveLoop()
}

// now is wall time, as injected.
func (s *Store) now() time.Time { return s.config.Now().Wall }
