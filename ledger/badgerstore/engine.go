package badgerstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"sync/atomic"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

// engineOptions are Badger's settings for a sidecar. Values stay below the threshold, so the value log is unused:
// Badger only logs its sync errors. Conflicts can't arise: there is one writer. A committed batch is durable.
func (c Config) engineOptions() badger.Options {
	opt := badger.DefaultOptions(c.dataDir()).
		WithSyncWrites(true).
		WithLogger(engineLog{log: c.Logger}).
		WithMemTableSize(cmp.Or(c.memtable, badgerMemtable)).
		WithNumMemtables(1).
		WithNumCompactors(2).
		WithBlockSize(blockSize).
		WithBaseTableSize(tableSize).
		WithBaseLevelSize(baseLevelSize).
		WithValueThreshold(1 << 20).
		WithValueLogFileSize(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false).
		WithDetectConflicts(false).
		WithChecksumVerificationMode(options.OnTableRead)
	opt.TableSizeMultiplier = 1
	return opt
}

// openEngine opens Badger, making an empty one where there is none.
//
// Badger maps its files into memory. A full or failing disk is a fault there, which would end the process. Whoever
// starts it is told instead; what Badger's own goroutines touch can still end it.
func openEngine(opt badger.Options) (db *badger.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, panicError(p)
		}
	}()
	// Badger locks its folder by itself, and only once.
	err = awaitLock(func() (err error) {
		db, err = badger.Open(opt)
		return err
	}, heldElsewhere)
	if err != nil {
		return nil, engineError(err)
	}
	return db, nil
}

// panicError tells a page that the disk couldn't give from damage.
func panicError(p any) error {
	if fault, ok := p.(interface{ Addr() uintptr }); ok {
		return fmt.Errorf("%w: a page of the ledger's files can't be read or written; is the disk full? (a fault at address %#x)",
			ledger.ErrUnavailable, fault.Addr())
	}
	return fmt.Errorf("%w: Badger panicked on its files: %v", ledger.ErrDamaged, p)
}

// heldElsewhere reports whether Badger found its folder locked, and touched nothing.
func heldElsewhere(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Cannot acquire directory lock")
}

// engineError tells damage from trouble that will pass. No loss may be accepted because a disk was full, or another
// program held the files.
func engineError(err error) error {
	if heldElsewhere(err) {
		return fmt.Errorf("%w: %w", ledger.ErrLocked, err)
	}
	passing := []error{
		fs.ErrPermission, unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO,
	}
	for _, p := range passing {
		if errors.Is(err, p) || strings.Contains(err.Error(), p.Error()) {
			return fmt.Errorf("%w: the ledger's files can't be opened: %w", ledger.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w: Badger refuses its files: %w", ledger.ErrDamaged, err)
}

// engineLog passes on what Badger says.
//
// Badger retries its work in the background without end, such as writing a table. It says so here alone. But a
// failed sync may have lost what it was for, whatever the next one answers. So the first error counts.
type engineLog struct {
	log zerolog.Logger
	// failure is told of it; nil where nobody depends on Badger.
	failure *engineFailure
}

// engineFailure is the first error that Badger logged.
type engineFailure struct {
	first atomic.Pointer[error]
	// stop is told of it as it comes, and that call of Badger never returns; nil to go on.
	stop atomic.Pointer[func(error)]
	// left says that Badger was left open, and that nobody needs to hear of it any more.
	left atomic.Bool
}

// err is that error.
func (f *engineFailure) err() error {
	if err := f.first.Load(); err != nil {
		return *err
	}
	return nil
}

// Errorf is told of what Badger couldn't do; while a ledger is sound that is nothing.
func (l engineLog) Errorf(f string, v ...any) {
	if l.failure != nil && l.failure.left.Load() {
		return
	}
	l.log.Error().Msgf("badger: "+f, v...)
	l.fail(fmt.Errorf("error of Badger: %w", fmt.Errorf(f, v...)))
}

// Warningf is told of tables that couldn't be merged, too. Badger retries that, and the old tables hold until then.
// But an error of the manifest counts: the manifest may say something else.
func (l engineLog) Warningf(f string, v ...any) {
	l.log.Warn().Msgf("badger: "+f, v...)
	for _, a := range v {
		if err, ok := a.(error); ok && ofManifest(err) {
			l.fail(fmt.Errorf("error of Badger: %w", err))
		}
	}
}

func (l engineLog) Infof(string, ...any)  {}
func (l engineLog) Debugf(string, ...any) {}

func (l engineLog) fail(err error) {
	if l.failure == nil {
		return
	}
	l.failure.first.CompareAndSwap(nil, &err)
	if stop := l.failure.stop.Load(); stop != nil {
		(*stop)(err)
		select {}
	}
}

// ofManifest reports whether a file operation of the manifest failed. Of some errors Badger keeps only the text.
func ofManifest(err error) bool { return strings.Contains(err.Error(), badger.ManifestFilename) }
