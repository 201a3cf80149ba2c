package badgerstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// backupBatch is how many bytes of a backup share one transaction.
const backupBatch = fullBatch

// copyHeadroom is how many bytes of disk a copy's Badger may take between two looks at the free space. It writes
// out its memtables then, and merges its newest level.
const copyHeadroom = 10 * badgerMemtable

// copyingPath marks a copy that isn't finished. A start refuses it: it has the id of a ledger that is in use.
func (c Config) copyingPath() string { return filepath.Join(c.Dir, "ledger.copying") }

// unfinishedCopy refuses a folder that is one.
func unfinishedCopy(c Config) error {
	return fmt.Errorf("%w: folder %s is a copy of a ledger that was cut short: it may be removed, and can't be used", ledger.ErrNotAllowed, c.Dir)
}

// RemoveCopy removes the folder parent, whose folder name holds a copy of a ledger. If somebody uses the copy,
// nothing is removed: ledger.ErrLocked.
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

// Backup writes a consistent copy of an open ledger into the folder dir, which must be absent or empty. The copy is
// a whole ledger with the same id. It holds every command that was acknowledged before Backup was called. To
// restore it, stop the proxy and put the copy in the place of the ledger's folder. Then start with serve --restored
// SINCE: Open refuses it until then.
//
// It gives up with ledger.ErrLowSpace where the copy would leave too little of its disk. The copy's Badger writes
// through memory maps, as the ledger's does: a full disk would end both.
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
	if err := errors.Join(writeSynced(c.copyingPath(), []byte(s.ID())), s.markCopy(c), makeBodyFolders(c)); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	s.tending.RLock()
	last, err := s.copyEngine(ctx, c, progress)
	s.tending.RUnlock()
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := errors.Join(createLog(c, last.Commit),
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
	var failure engineFailure
	db, err := openEngine(c.engineOptions().WithLogger(engineLog{log: c.Logger, failure: &failure}))
	if err != nil {
		return last, err
	}
	defer func() {
		// Its folder will be removed. If it is left open, it tries in vain, and nobody needs to hear of that.
		left, late := c.closeEngine(db, nil)
		failure.left.Store(left)
		err = errors.Join(err, late, failure.err())
	}()
	err = s.snapshotAt(func(src snapshot, end tip) error {
		last = end
		return s.copyValues(ctx, src, c, db, progress)
	})
	if err != nil {
		return last, err
	}
	return last, db.Update(func(txn *badger.Txn) error {
		src := snapshot{txn: txn}
		base, err := readBaseline(src)
		if err != nil {
			return err
		}
		folded, _, err := readFolds(src, base)
		if err != nil || folded.Commit == last.Commit {
			return err
		}
		l := newWrites(txn)
		return errors.Join(l.putValue(foldKey(last.Commit, 0), foldRecord{First: folded.Commit + 1, Tip: last, Parts: 1}), l.apply(txn))
	})
}

func (s *Store) copyValues(ctx context.Context, src snapshot, c Config, db *badger.DB, progress Progress) error {
	at := src.cursor(nil, false)
	defer at.close()
	to := newWrites(nil)
	flush := func() error {
		defer func() { to = newWrites(nil) }()
		return db.Update(to.apply)
	}
	n := 0
	for at.seek(nil); at.valid(); at.next() {
		k := bytes.Clone(at.key())
		v, err := at.sealed()
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
		to.set(k, v, nil)
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
