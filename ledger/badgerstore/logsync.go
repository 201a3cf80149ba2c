package badgerstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

// logSync syncs the engine's log, which Badger writes through a memory map: a
// fdatasync of the file writes what the map changed. Badger's own way is one msync
// of the log and one of the value log, which this store never writes to.
//
// Badger keeps one log, NNNNN.mem, per memtable. It begins the next one before it
// writes a transaction that finds the present one full, and never in between, so
// that each transaction lies whole in one log. A memtable holds several times what is
// committed between two syncs, so that the log after the one that was synced last is
// there still. As nothing is committed while a log is synced, that log can't be taken
// away meanwhile. Where ownLogSync is false, Badger syncs by itself.
type logSync struct {
	dir    string
	number uint64
	file   *os.File
	// folder is dir, open; next is the name of the log after file.
	folder *os.File
	next   string
	// listed says that the folder was synced since the log was made.
	listed bool
	// synced is Config.synced.
	synced func(path string) error
}

// logSuffix ends the name of a log.
const logSuffix = ".mem"

// openLogSync finds the log of an engine that is open for writing.
func openLogSync(c Config) (*logSync, error) {
	l := &logSync{dir: c.dataDir(), synced: c.synced}
	if !ownLogSync {
		return l, nil
	}
	logs, err := filesIn(l.dir, logSuffix)
	if err != nil {
		return nil, err
	}
	for _, path := range logs {
		n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), logSuffix), 10, 32)
		if err == nil {
			l.number = max(l.number, n)
		}
	}
	if l.folder, err = os.Open(l.dir); err == nil {
		l.file, err = os.Open(filepath.Join(l.dir, logName(l.number)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: the engine's log: %w", ledger.ErrUnavailable, err), l.close())
	}
	l.next = logName(l.number + 1)
	return l, nil
}

func logName(number uint64) string { return fmt.Sprintf("%05d%s", number, logSuffix) }

// sync makes durable what was committed. The name of a new log is, too: Badger
// leaves that to the file system.
func (l *logSync) sync() error {
	if !ownLogSync {
		return nil
	}
	if err := l.follow(); err != nil {
		return fmt.Errorf("the engine's log: %w", err)
	}
	if err := l.told(l.file.Name(), datasync(l.file)); err != nil {
		return fmt.Errorf("the engine's log: sync: %w", err)
	}
	if l.listed {
		return nil
	}
	if err := l.told(l.dir, syncDir(l.dir)); err != nil {
		return fmt.Errorf("the engine's folder: sync: %w", err)
	}
	l.listed = true
	return nil
}

// follow opens the log that the last commit may have begun.
func (l *logSync) follow() error {
	for {
		// Asked at each commit, so by the open folder, not by the whole path.
		err := unix.Faccessat(int(l.folder.Fd()), l.next, unix.F_OK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		next, err := os.Open(filepath.Join(l.dir, l.next))
		if err != nil {
			return err
		}
		// What was committed since the last sync may lie in both.
		if err := l.told(l.file.Name(), datasync(l.file)); err != nil {
			return errors.Join(err, next.Close())
		}
		if err := l.file.Close(); err != nil {
			return errors.Join(err, next.Close())
		}
		l.file, l.listed = next, false
		l.number++
		l.next = logName(l.number + 1)
	}
}

// told tells a test of a sync that succeeded.
func (l *logSync) told(path string, err error) error {
	if err != nil || l.synced == nil {
		return err
	}
	return l.synced(path)
}

func (l *logSync) close() error {
	var err error
	for _, f := range []*os.File{l.file, l.folder} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// syncWhatIsLeft makes durable what a killed process left in logs and manifest: it may
// have been written and never synced, and the next commit builds on it. It runs before
// the engine is opened, which takes such logs away, and tables that the manifest doesn't
// name.
func syncWhatIsLeft(dir string) error {
	left, err := filesIn(dir, logSuffix)
	if err != nil {
		return err
	}
	for _, path := range append(left, filepath.Join(dir, badger.ManifestFilename)) {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // Opening says what a folder without a manifest is.
		}
		if err != nil {
			return fmt.Errorf("%w: what the ledger's last process left: %w", ledger.ErrUnavailable, err)
		}
		if err := errors.Join(datasync(f), f.Close()); err != nil {
			return fmt.Errorf("%w: what the ledger's last process left: sync: %w", ledger.ErrUnavailable, err)
		}
	}
	return syncDir(dir)
}
