package badgerstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore/wal"
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
	space    *space
	pending  pendingBodies
	state    *state

	queue chan *command
	notes notes
	// syncing takes batches from the committer to syncLoop, turn holds a token while none is being written. Once
	// both have ended, drained is closed.
	syncing chan *batch
	turn    chan struct{}
	drained chan struct{}
	// followers are told of commits. They belong to who has the turn.
	followers []func(ledger.Changes)
	// folds takes memtables to foldLoop; folded is closed when that has ended.
	folds  chan folding
	folded chan struct{}
	// lasts is closed when what Close writes has ended.
	lasts chan struct{}
	sick  atomic.Pointer[error]
	// stalled is closed when a write or a sync didn't end in time, or Badger failed.
	stalled             chan struct{}
	stallOnce, deadOnce sync.Once
	// failure is what Badger failed by; dead is closed then.
	failure engineFailure
	dead    chan struct{}
	// commands looks after the committer, syncs after syncLoop, foldWatch after foldLoop.
	commands, syncs, foldWatch *watch
	commits                    atomic.Uint64
	// older says that the folder is a restored copy that the witness is ahead of.
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

	// syncLoop's own, and Open's before it starts.
	log     *wal.Log
	witness *witness
	epoch   wal.Epoch
	// logUsed is how many bytes of the log are taken, of logSize. Claims waited logFull nanoseconds for room in it.
	logUsed, logFull atomic.Int64
	logSize          int64
	// fullBatch ends the merging of further commands, mostCommand bounds one, in bytes: both together fit
	// into a frame.
	fullBatch, mostCommand int

	// foldLoop's own: how far Badger has all.
	foldedTip tip

	// The committer's own, and Open's before it starts. Commands write into head; old is being folded,
	// nil for nothing; frozen is its last commit.
	tip       tip
	head, old *memtable
	frozen    uint64
	layer     layer
	tx        tx
	// held is a command that waits for the next batch.
	held *command
	// blockers are the unresolved mutations after the last command, blockedIn the last commit that changed them.
	blockers  ledger.Blockers
	blockedIn uint64
	// named are the bodies that records named since a sweep began, nil without one.
	named map[string]struct{}
}

var _ ledger.Store = (*Store)(nil)

// Process implements ledger.Store.
func (s *Store) Process() ledger.Process { return s.process }

// ID is the ledger's own id.
func (s *Store) ID() string { return s.identity.ID }

// Dir returns the ledger's folder.
func (s *Store) Dir() string { return s.config.Dir }

// Commits returns how many commits were synced since Open; each is one sync of the log.
func (s *Store) Commits() uint64 { return s.commits.Load() }

// LogFull returns for how long claims have waited for room in the log since Open.
func (s *Store) LogFull() time.Duration { return time.Duration(s.logFull.Load()) }

// Follow implements ledger.Store. Nothing is being synced meanwhile, so all that is written is durable.
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

// Close implements ledger.Store: it lets queued commands end, waits for readers,
// folds what is left and lets the folder go. A second Close does nothing.
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
	close(s.folds)
	if late := s.ended(s.folded); late != nil {
		return errors.Join(err, late)
	}
	return errors.Join(err, s.release())
}

// writeLast folds all that there is, and says so in a last frame. Then the next start needn't do it again.
func (s *Store) writeLast() error {
	if s.Healthy() != nil {
		return nil //nolint:nilerr // It was told as the store stopped.
	}
	if err := s.state.awaitFold(s.frozen, s.Healthy); err != nil {
		return err
	}
	if s.foldedTip.Commit < s.tip.Commit {
		s.turnOver()
		s.folds <- folding{s.old, s.tip}
		if err := s.state.awaitFold(s.tip.Commit, s.Healthy); err != nil {
			return err
		}
	}
	last := s.tip
	last.Commit++
	return s.syncs.over(&aSync, func() error { return s.append(frame{tip: last, clean: true}) })
}

// release closes the files, in the order opposite to opening. All stay open if Badger does: it may still write.
func (s *Store) release() error {
	s.state.end()
	if err := s.failure.err(); err != nil && s.db != nil {
		return fmt.Errorf("%w: the ledger was left open: %w", ledger.ErrUnavailable, err)
	}
	left, err := s.config.closeEngine(s.db, s.dead)
	if left {
		return err
	}
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	err = errors.Join(err, s.witness.close())
	if s.lock != nil {
		err = errors.Join(err, s.lock.release())
	}
	return err
}

// start lets the committer run.
func (s *Store) start() {
	s.queue = make(chan *command, queueLength)
	s.notes.come = make(chan struct{}, 1)
	s.drained, s.lasts, s.folded = make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.syncing, s.folds = make(chan *batch), make(chan folding)
	s.turn = make(chan struct{}, 1)
	s.turn <- struct{}{}
	go s.commitLoop(s.config.restAfter())
	go s.syncLoop()
	go s.foldLoop()
}

// now is wall time, as injected.
func (s *Store) now() time.Time { return s.config.Now().Wall }

// poison makes every later Update fail; the first cause is kept.
func (s *Store) poison(err error) {
	if !errors.Is(err, ledger.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	if s.sick.CompareAndSwap(nil, &err) {
		s.config.Logger.Error().Err(err).Msg("ledger stopped: nothing may be sent on its word until a restart")
		s.state.wake()
	}
}

// Healthy implements ledger.Store.
func (s *Store) Healthy() error {
	if err := s.sick.Load(); err != nil {
		return *err
	}
	return nil
}
