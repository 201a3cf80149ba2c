package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// unlistedDir keeps tables that the manifest doesn't name. A crash leaves such
// tables, but so does a cut manifest, and Badger deletes them when it opens. They
// are kept until the ledger was found whole.
func (c Config) unlistedDir() string { return filepath.Join(c.Dir, "unlisted") }

func quarantine(c Config, opt badger.Options) error {
	named, err := listedTables(opt)
	if err != nil {
		return err
	}
	tables, err := filesIn(opt.Dir, tableSuffix)
	if err != nil {
		return err
	}
	for _, path := range tables {
		if named[filepath.Base(path)] {
			continue
		}
		if err := os.MkdirAll(c.unlistedDir(), 0o700); err != nil {
			return fmt.Errorf("keep an unlisted table: %w", err)
		}
		if err := rename(path, filepath.Join(c.unlistedDir(), filepath.Base(path))); err != nil {
			return fmt.Errorf("keep an unlisted table: %w", err)
		}
	}
	return nil
}

// listedTables reads the manifest and returns the file names of its tables.
func listedTables(opt badger.Options) (map[string]bool, error) {
	f, err := os.Open(filepath.Join(opt.Dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: the manifest is missing", ledger.ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("ledger manifest: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	manifest, _, err := badger.ReplayManifestFile(f, 0, opt)
	if err != nil {
		return nil, fmt.Errorf("%w: the manifest: %w", ledger.ErrDamaged, err)
	}
	named := make(map[string]bool, len(manifest.Tables))
	for id := range manifest.Tables {
		named[tableName(id)] = true
	}
	return named, nil
}
