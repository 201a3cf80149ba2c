package badgerstore

import (
	"fmt"
	"path/filepath"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// engineOptions are Badger's settings for a sidecar. Values stay below the
// threshold, so that the value log, whose sync errors Badger only logs, is unused.
// Conflicts can't arise: there is one writer.
func engineOptions(dir string, log zerolog.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithSyncWrites(true).
		WithLogger(engineLog{log}).
		WithMemTableSize(memTableSize).
		WithNumMemtables(2).
		WithNumCompactors(2).
		WithValueThreshold(1 << 20).
		WithValueLogFileSize(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false).
		WithDetectConflicts(false).
		WithChecksumVerificationMode(options.OnTableRead)
}

// openChecked opens an existing engine after a look at its files.
func openChecked(opt badger.Options) (*badger.DB, error) {
	if err := checkTables(opt); err != nil {
		return nil, err
	}
	return openEngine(opt)
}

// openEngine opens Badger. What it can't open is damage: its files were checked
// for being there, and a full or read-only disk shows in the error's text.
func openEngine(opt badger.Options) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("%w: the engine panicked on its files: %v", ledger.ErrDamaged, p)
		}
	}()
	db, err = badger.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("%w: the engine refuses its files: %w", ledger.ErrDamaged, err)
	}
	return db, nil
}

// checkTables looks at the manifest and at each table's footer before Badger does,
// which would panic in a goroutine of its own on some damage.
func checkTables(opt badger.Options) error {
	tables, err := listedTables(opt)
	if err != nil {
		return err
	}
	for name := range tables {
		if err := checkFooter(filepath.Join(opt.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// engineLog passes Badger's warnings and errors on.
type engineLog struct {
	log zerolog.Logger
}

func (l engineLog) Errorf(f string, v ...any)   { l.log.Error().Msgf("badger: "+f, v...) }
func (l engineLog) Warningf(f string, v ...any) { l.log.Warn().Msgf("badger: "+f, v...) }
func (l engineLog) Infof(string, ...any)        {}
func (l engineLog) Debugf(string, ...any)       {}
