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

// howToRestore comes before it where the ledger ends too early: whoever has put a backup back sees this
// first, and to accept a loss would hold work that a restore lets go on.
const howToRestore = "if it is a copy that was put back on purpose, start it with keep-proxy serve --restored SINCE, " +
	"the moment at which it was made, as in 2026-01-31T15:04:05Z; else "

// Open opens the ledger in c.Dir, or makes a new one at a first start: when neither
// the folder, nor a high-water file, nor c.ID says that there was one. Everything
// that docs/semantics.md §9 names is an error that refuses, wraps one of
// ledger.ErrLocked, ErrMissing, ErrForeign, ErrDamaged, ErrShortened, ErrFormat, and
// says how to go on.
func Open(ctx context.Context, c Config) (*Store, error) {
	return open(ctx, c, false)
}

// open refuses less if the loss is accepted: see AcceptLoss.
func open(ctx context.Context, c Config, accepted bool) (s *Store, err error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s = &Store{
		config: c, space: newSpace(c), horizon: newHorizon(), giving: newGiving(), backlog: newBacklog(),
		stalled: make(chan struct{}),
	}
	s.commands, s.syncs, s.gives = s.newWatch(), s.newWatch(), s.newWatch()
	s.layer, s.ends = newLayer(snapshot{}), newLayer(snapshot{})
	s.changed = newChanged(s.horizon, s.backlog)
	s.layer.earlier, s.ends.earlier = s.changed, s.changed
	s.pending = pendingBodies{config: c, uploads: map[string]uint64{}, files: map[string]pendingFile{}, held: map[string]int{}, going: map[string]bool{}}
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
		if err := c.cutShort(); err != nil {
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
	return s, s.begun(ctx, accepted)
}

// cutShort refuses a ledger that is marked in part only.
func (c Config) cutShort() error {
	switch cut, err := exists(c.acceptingPath()); {
	case err != nil:
		return fmt.Errorf("ledger folder: %w", err)
	case cut:
		return fmt.Errorf("%w: accepting a loss was cut short; do it again", ledger.ErrDamaged)
	}
	switch cut, err := exists(c.restoringPath()); {
	case err != nil:
		return fmt.Errorf("ledger folder: %w", err)
	case cut && !c.Restored:
		return fmt.Errorf("%w: a restore was cut short", ledger.ErrShortened)
	}
	return nil
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
	identity, data, water bool
	// movable says that the high-water file lies inside the folder still, while
	// the configuration wants it elsewhere.
	movable bool
}

func (f signs) none() bool { return !f.identity && !f.data && !f.water && !f.movable }

// look finds the signs, after it removed what an unfinished first start left.
func look(c Config) (f signs, err error) {
	if err := abandon(c); err != nil {
		return f, err
	}
	var errs [4]error
	f.identity, errs[0] = exists(c.identityPath())
	f.data, errs[1] = exists(filepath.Join(c.dataDir(), "MANIFEST"))
	f.water, errs[2] = exists(c.highWaterPath())
	inside := c.insidePath()
	if c.highWaterPath() != inside {
		f.movable, errs[3] = exists(inside)
	}
	if !f.data {
		left, err := filesIn(c.dataDir(), tableSuffix, logSuffix)
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
	opt := engineOptions(s.config.dataDir(), s.config.Logger)
	opt = opt.WithLogger(engineLog{log: s.config.Logger, failed: s.poison})
	// Before anything is changed.
	if err := checkManifest(s.config.asFound(found), opt); err != nil {
		return err
	}
	if !accepted {
		if err := moveHighWater(s.config, found); err != nil {
			return err
		}
	}
	if err := quarantine(s.config, opt); err != nil {
		return err
	}
	if s.db, err = openChecked(opt); err != nil {
		return err
	}
	if rebuild {
		if err := s.rebuildIdentity(); err != nil {
			return err
		}
	}
	return s.putBackLost(accepted)
}

// asFound is the configuration of a folder as it is, before moveHighWater.
func (c Config) asFound(f signs) Config {
	if !f.water && f.movable {
		c.HighWaterFile = ""
	}
	return c
}

// whole refuses a folder that holds only a part of a ledger.
func (f signs) whole(c Config, accepted bool) error {
	switch {
	case f.data && (accepted || f.identity && (f.water || f.movable)):
		return nil
	case !f.data:
		return fmt.Errorf("%w: folder %s has no data, although there was a ledger", ledger.ErrMissing, c.Dir)
	case !f.identity:
		return fmt.Errorf("%w: folder %s holds data but no ledger.id", ledger.ErrDamaged, c.Dir)
	}
	if c.HighWaterFile == "" {
		return fmt.Errorf("%w: there is no high-water file %s, so what was acknowledged can't be known", ledger.ErrDamaged, c.highWaterPath())
	}
	return fmt.Errorf("%w: there is no high-water file %s, so what was acknowledged can't be known: "+
		"mount its volume if that isn't mounted, as the last commits may be in it alone", ledger.ErrDamaged, c.highWaterPath())
}

// moved reports whether the high-water file lies in the folder still, although it was moved to where the configuration
// wants it. Two that disagree are refused. In a copy of the folder that was put back on purpose an older one may lie.
func (c Config) moved(found signs) (bool, error) {
	if !found.movable || !found.water {
		return false, nil
	}
	inside, errInside := readHighWater(c.insidePath())
	outside, errOutside := readHighWater(c.highWaterPath())
	one, errOne := os.Stat(c.insidePath())
	other, errOther := os.Stat(c.highWaterPath())
	if errors.Join(errInside, errOutside, errOne, errOther) != nil || os.SameFile(one, other) {
		return false, nil //nolint:nilerr // The one outside counts, and is held against the data.
	}
	behind := inside.tip().Commit < outside.tip().Commit
	if inside.same(outside) || c.Restored && behind {
		return true, nil
	}
	kind := ledger.ErrDamaged
	if behind {
		kind = ledger.ErrShortened
	}
	return false, fmt.Errorf("%w: the high-water files disagree: %s ends at commit %d, %s at commit %d: move the older one away",
		kind, c.insidePath(), inside.tip().Commit, c.highWaterPath(), outside.tip().Commit)
}

// moveHighWater brings the high-water file to where the configuration wants it, with its journal. The one in the folder
// goes: a later change of the configuration would move it once more.
func moveHighWater(c Config, found signs) error {
	inside := c.insidePath()
	switch moved, err := c.moved(found); {
	case err != nil:
		return err
	case found.water && !moved || !found.movable:
		return nil
	case !moved:
		if _, err := readHighWater(inside); err != nil {
			return err
		}
		b, err := os.ReadFile(inside)
		if err != nil {
			return fmt.Errorf("high-water file: %w", err)
		}
		if err := placeHighWater(c, b); err != nil {
			return fmt.Errorf("high-water file: %w", err)
		}
	}
	return errors.Join(os.Remove(inside), syncDir(c.Dir))
}

// begun ends opening: the first checkpoint, then the committer, then the sweep.
func (s *Store) begun(ctx context.Context, accepted bool) (err error) {
	if accepted {
		if err := s.beginAccepting(); err != nil {
			return err
		}
	}
	if s.log, err = openLogSync(s.config); err != nil {
		return err
	}
	// All that is there now is built upon.
	if err := s.log.sync(); err != nil {
		return err
	}
	s.horizon.start(s.tip.Commit)
	s.giving.start(s.tip)
	s.newest.renew(s.db.NewTransaction(false))
	if s.older || s.config.Restored {
		if err := s.beginRestored(); err != nil {
			return err
		}
	}
	if s.water, err = openHighWater(s.config, s.tip, s.process.ID, s.checkpoint.Epoch); err != nil {
		return err
	}
	if err := s.writeCheckpoint(); err != nil {
		return err
	}
	if err := s.sweepFiles(); err != nil {
		return err
	}
	if err := os.RemoveAll(s.config.unlistedDir()); err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	if s.config.MinFree > 0 {
		if err := s.space.check(); err != nil && !errors.Is(err, ledger.ErrLowSpace) {
			return err
		}
	}
	first := s.tip.Commit
	s.start()
	// The data know this epoch before anything is acknowledged in it: an older high-water file is found out by that.
	if _, err = s.giving.awaitDurable(first, s.Healthy); err == nil {
		err = s.sweep(ctx)
	}
	if err != nil {
		s.stop()
		return fmt.Errorf("first commit and sweep: %w", err)
	}
	return nil
}

// stop ends the committer without closing files.
func (s *Store) stop() {
	s.door.Lock()
	s.closed = true
	close(s.queue)
	s.door.Unlock()
	<-s.drained
	s.giving.end()
	<-s.giving.ended
}
