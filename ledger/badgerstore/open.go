package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"keep-proxy/ledger"
)

// howToGoOn ends the errors of a ledger that can't be trusted.
const howToGoOn = "restore the folder, or go on deliberately without what is lost: " +
	"keep-proxy ledger accept-loss --reason TEXT"

// howToRestore comes before howToGoOn where the ledger ends too early. Who has put a backup back sees it first.
// Accepting a loss would hold work that a restore lets go on.
const howToRestore = "if it is a copy that was put back on purpose, start it with keep-proxy serve --restored SINCE, " +
	"the moment at which it was made, as in 2026-01-31T15:04:05Z; else "

// Open opens the ledger in c.Dir, or makes a new one at a first start. That is one where neither the folder, nor a
// witness, nor c.ID says that there was a ledger. Everything that docs/semantics.md §9 names is refused, and the
// error says how to go on. It wraps ledger.ErrLocked, ErrMissing, ErrForeign, ErrDamaged, ErrShortened or
// ErrFormat.
func Open(ctx context.Context, c Config) (*Store, error) {
	return open(ctx, c, false)
}

// newStore is a store before its files are opened.
func newStore(c Config) *Store {
	s := &Store{config: c, space: newSpace(c), state: newState(), stalled: make(chan struct{}), dead: make(chan struct{}), head: new(memtable)}
	s.commands, s.syncs, s.foldWatch = s.newWatch(), s.newWatch(), s.newWatch()
	s.pending = pendingBodies{config: c, uploads: map[string]struct{}{}, files: map[string]pendingFile{}, held: map[string]int{}, going: map[string]bool{}}
	return s
}

// open refuses less if the loss is accepted: see AcceptLoss.
func open(ctx context.Context, c Config, accepted bool) (s *Store, err error) {
	if err := errors.Join(c.validate(), ctx.Err()); err != nil {
		return nil, err
	}
	s = newStore(c)
	s.process = ledger.Process{ID: c.NewID(), Started: c.Now()}
	defer func() {
		if err != nil {
			if !accepted {
				err = explain(err)
			}
			err = errors.Join(err, s.release())
			s = nil
		}
	}()
	if err := makeFolder(c.Dir); err != nil {
		return s, err
	}
	if s.lock, err = lockLedger(c); err != nil {
		return s, err
	}
	found, err := look(c)
	if err == nil {
		err = s.space.resume()
	}
	if err != nil {
		return s, err
	}
	if !accepted {
		if err := errors.Join(c.cutShort(), c.isCopy()); err != nil {
			return s, err
		}
	}
	if found.none() {
		id := c.ID
		switch {
		case id == "":
			id = c.NewID()
		case !accepted:
			return s, fmt.Errorf("%w: ledger.id names %s, and %s is empty", ledger.ErrMissing, c.ID, c.Dir)
		}
		if err := create(c, id); err != nil {
			return s, err
		}
	}
	if err := s.openFiles(found, accepted); err != nil {
		return s, err
	}
	if accepted {
		if err := s.mend(); err != nil {
			return s, err
		}
	}
	if err := s.load(accepted); err != nil {
		return s, err
	}
	return s, s.begun(accepted)
}

// cutShort refuses a ledger where accepting a loss was cut short.
func (c Config) cutShort() error {
	cut, err := exists(c.acceptingPath())
	if cut {
		err = fmt.Errorf("%w: accepting a loss was cut short; do it again", ledger.ErrDamaged)
	}
	return err
}

// expects refuses another ledger than the one that is wanted.
func (c Config) expects(found identity) error {
	if c.ID == "" || found.ID == c.ID {
		return nil
	}
	return fmt.Errorf("%w: folder %s holds ledger %s, %s is expected", ledger.ErrForeign, c.Dir, found.ID, c.ID)
}

// explain adds to an error how to go on.
func explain(err error) error {
	switch {
	case errors.Is(err, ledger.ErrForeign):
		return fmt.Errorf("%w; point ledger.dir at the right folder, or correct ledger.id", err)
	case errors.Is(err, ledger.ErrMissing):
		return fmt.Errorf("%w; mount its volume if that isn't mounted; else %s", err, howToGoOn)
	case errors.Is(err, ledger.ErrShortened):
		return fmt.Errorf("%w; %s%s", err, howToRestore, howToGoOn)
	case errors.Is(err, ledger.ErrDamaged):
		return fmt.Errorf("%w; %s", err, howToGoOn)
	}
	return err
}

// makeFolder makes the folder, or takes away what others may do with it.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	if !st.IsDir() {
		return fmt.Errorf("ledger folder: %s is no folder", dir)
	}
	if st.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder needs the right to enter it
		return fmt.Errorf("ledger folder %s is open to others: %w", dir, err)
	}
	return nil
}

// signs say what is there of a ledger.
type signs struct {
	identity, data, log, witness bool
}

func (f signs) none() bool { return f == signs{} }

// look finds the signs, after it removed what an unfinished first start left, and ended a rebuild.
func look(c Config) (f signs, err error) {
	if err := errors.Join(finishRebuild(c), abandon(c)); err != nil {
		return f, err
	}
	var errs [4]error
	f.identity, errs[0] = exists(c.identityPath())
	f.data, errs[1] = exists(filepath.Join(c.dataDir(), "MANIFEST"))
	f.log, errs[2] = exists(c.logPath())
	if c.HighWaterFile != "" {
		f.witness, errs[3] = exists(c.HighWaterFile)
	}
	if !f.data {
		left, err := filesIn(c.dataDir(), tableSuffix, walSuffix)
		if err != nil {
			return f, fmt.Errorf("ledger folder: %w", err)
		}
		f.data = len(left) > 0
	}
	return f, errors.Join(errs[:]...)
}

// openFiles opens what look found, or what create has just made.
func (s *Store) openFiles(found signs, accepted bool) (err error) {
	if !found.none() {
		if err := found.whole(s.config, accepted); err != nil {
			return err
		}
	}
	s.identity, err = readIdentity(s.config.identityPath())
	if err != nil && (!accepted || !canRebuild(err)) {
		return err
	}
	rebuild := err != nil
	if !rebuild {
		if err := s.config.expects(s.identity); err != nil {
			return err
		}
	}
	opt := s.config.engineOptions()
	opt = opt.WithLogger(engineLog{log: s.config.Logger, failure: &s.failure})
	if err := checkTables(opt); err != nil { // Before anything is changed.
		return err
	}
	if err := dropEmptyLogs(opt.Dir); err != nil {
		return err
	}
	if s.db, err = openEngine(opt); err != nil {
		return err
	}
	stop := s.engineFailed
	s.failure.stop.Store(&stop)
	if err := s.failure.err(); err != nil { // Badger may have left a table out, and said so here alone.
		return engineError(err)
	}
	if rebuild {
		if err := s.rebuildIdentity(); err != nil {
			return err
		}
	}
	s.log, err = openLog(s.config)
	if accepted && errors.Is(err, ledger.ErrDamaged) {
		return nil // It begins anew.
	}
	return err
}

// whole refuses a folder that holds only a part of a ledger.
func (f signs) whole(c Config, accepted bool) error {
	switch {
	case f.data && (accepted || f.identity && f.log):
		return nil
	case !f.data:
		return fmt.Errorf("%w: folder %s has no data, although there was a ledger", ledger.ErrMissing, c.Dir)
	case !f.identity:
		return fmt.Errorf("%w: folder %s holds data but no ledger.id", ledger.ErrDamaged, c.Dir)
	}
	return fmt.Errorf("%w: folder %s holds data but no log, so what was acknowledged can't be known", ledger.ErrDamaged, c.Dir)
}

// begun ends opening: a new epoch, then the committer.
func (s *Store) begun(accepted bool) (err error) {
	if accepted {
		if err := s.beginAccepting(); err != nil {
			return err
		}
	}
	if s.older || s.config.Restored {
		if err := s.beginRestored(); err != nil {
			return err
		}
	}
	if err := s.beginEpoch(); err != nil {
		return err
	}
	if err := s.sweepFiles(); err != nil {
		return err
	}
	if s.config.MinFree > 0 {
		if err := s.space.check(); err != nil && !errors.Is(err, ledger.ErrLowSpace) {
			return err
		}
	}
	s.start()
	return nil
}

// beginEpoch names a new epoch in the witness, and then writes its first frame.
func (s *Store) beginEpoch() (err error) {
	last := s.log.Last()
	s.epoch, s.logSize = newEpoch(), s.log.Size()
	s.fullBatch, s.mostCommand = min(fullBatch, s.log.Longest()/4), min(maxCommand, s.log.Longest()/2)
	if s.witness, err = s.config.openWitness(s.identity.ID, last, s.epoch); err != nil {
		return err
	}
	s.state.fold(s.foldedTip.Commit, s.db.NewTransaction(false))
	s.tip.Commit++
	s.tip.At = s.now().UnixNano()
	if err := s.append(frame{tip: s.tip, begins: true, before: last.Epoch}); err != nil {
		return err
	}
	s.state.publish(s.tip, s.head, nil)
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
