package badgerstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// backupBatch is how many bytes of a backup share one transaction.
const backupBatch = fullBatch

// copyHeadroom is what the engine of a copy may take of the disk between two looks at it, in bytes: for
// memory tables that are written out, and for the newest level while it is merged.
const copyHeadroom = 10 * memTableSize

// copyingPath marks a copy that isn't finished. It is no first start that may be made anew: it has the
// id of a ledger that is in use.
func (c Config) copyingPath() string { return filepath.Join(c.Dir, "ledger.copying") }

// unfinishedCopy refuses a folder that is one.
func unfinishedCopy(c Config) error {
	return fmt.Errorf("%w: folder %s is a copy of a ledger that was cut short: it may be removed, and can't be used", ledger.ErrNotAllowed, c.Dir)
}

// RemoveCopy removes the folder parent, which holds a copy of a ledger in its folder name, unless somebody
// uses that: then it is ledger.ErrLocked.
func RemoveCopy(parent, name string) (err error) {
	dir := filepath.Join(parent, name)
	there, err := exists(dir)
	if err != nil {
		return err
	}
	if there {
		lock, err := lockFile(filepath.Join(dir, "ledger.lock"), time.Now(), "folder "+dir, "it is left")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Close()) }()
	}
	return os.RemoveAll(parent)
}

// Backup writes a consistent copy of an open ledger into the folder dir, which must
// be absent or empty. The copy is a whole ledger with the same id, and holds every
// command that was acknowledged before Backup was called. To restore it, stop the
// proxy, put the copy in the place of the ledger's folder and start with serve
// --restored SINCE: a high-water file that is kept elsewhere refuses it until then.
//
// It gives up with ledger.ErrLowSpace where the copy would leave too little of its disk: the engine of
// the copy writes through memory maps as that of the ledger does, so that a full disk would end both.
func (s *Store) Backup(ctx context.Context, dir string, progress Progress) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("backup: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("backup: folder %s is not empty", dir)
	}
	c := s.config
	c.Dir, c.HighWaterFile = dir, ""
	if err := os.MkdirAll(c.dataDir(), 0o700); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := errors.Join(writeSynced(c.copyingPath(), []byte(s.ID())), makeBodyFolders(c)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	s.tending.RLock()
	last, err := s.copyEngine(ctx, c, progress)
	s.tending.RUnlock()
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := errors.Join(createHighWater(c, s.ID(), s.process.ID, last),
		writeSynced(c.identityPath(), s.identity.text()),
		syncDir(c.bodiesDir()), os.Remove(c.copyingPath()), syncDir(dir)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// copyEngine copies one snapshot, checking every value, and returns its tip.
func (s *Store) copyEngine(ctx context.Context, c Config, progress Progress) (last tip, err error) {
	if err := s.space.roomForCopy(c.Dir, 0); err != nil {
		return last, err
	}
	var failed atomic.Pointer[error]
	log := engineLog{log: c.Logger, failed: func(err error) { failed.CompareAndSwap(nil, &err) }, left: new(atomic.Bool)}
	db, err := openEngine(engineOptions(c.dataDir(), c.Logger).WithLogger(log))
	if err != nil {
		return last, err
	}
	defer func() {
		// Its folder will be removed, so that it tries in vain for as long as the process lives.
		left, late := c.closeEngine(db)
		log.left.Store(left)
		err = errors.Join(err, late)
		if f := failed.Load(); f != nil {
			err = errors.Join(err, *f)
		}
	}()
	err = s.snapshot(func(src snapshot) error {
		_, from, err := verifyCheckpoints(src)
		if err != nil {
			return err
		}
		if last, err = walkCommits(src, from.Before); err != nil {
			return err
		}
		return s.copyValues(ctx, src, c, db, progress)
	})
	return last, err
}

func (s *Store) copyValues(ctx context.Context, src snapshot, c Config, db *badger.DB, progress Progress) error {
	it := src.txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	to := newLayer(snapshot{})
	flush := func() error {
		defer func() { to = newLayer(snapshot{}) }()
		return db.Update(to.apply)
	}
	n := 0
	for it.Rewind(); it.Valid(); it.Next() {
		k := it.Item().KeyCopy(nil)
		v, err := it.Item().ValueCopy(nil)
		if err != nil {
			return err
		}
		content, _, err := unseal(k, v)
		if err != nil {
			return err
		}
		if k[0] == kBody {
			if err := s.copyBody(c, k, content); err != nil {
				return err
			}
		}
		to.set(k, v)
		if n++; n%progressEvery == 0 && progress != nil {
			progress(n)
		}
		if to.size < backupBatch {
			continue
		}
		if err := errors.Join(ctx.Err(), s.space.roomForCopy(c.Dir, 0), flush()); err != nil {
			return err
		}
	}
	return flush()
}

// copyBody copies the file of a body, if it is in one, checking it.
func (s *Store) copyBody(c Config, k, content []byte) error {
	var h bodyHead
	if err := decode(k, content, &h); err != nil || !h.File || h.Lost {
		return err
	}
	if err := s.space.roomForCopy(c.Dir, h.Size); err != nil {
		return err
	}
	sum := [32]byte(k[1:])
	to, err := os.OpenFile(c.bodyPath(hex.EncodeToString(sum[:])), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(checkBodyFile(s.config, sum, h.Size, to), datasync(to), to.Close())
}
