package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

var pointCreating = fault.New("badgerstore.creating")

// creatingPath marks a first start that isn't over. Nothing was acknowledged yet, so what it left can be removed.
// It holds the new ledger's id.
func (c Config) creatingPath() string { return filepath.Join(c.Dir, "ledger.creating") }

var metaKey = []byte{kMeta}

// create makes an empty ledger in a folder that holds none.
func create(c Config, id string) error {
	if err := writeSynced(c.creatingPath(), []byte(id)); err != nil {
		return fmt.Errorf("ledger folder %s can't be written: %w", c.Dir, err)
	}
	// A ledger whose folder is gone after a loss of power would be a first start again.
	if err := syncAbove(c.Dir); err != nil {
		return fmt.Errorf("ledger folder %s: the folders above it can't be synced: %w", c.Dir, err)
	}
	i := identity{Format: format, ID: id, Version: c.Version, Created: c.Now().Wall.UTC()}
	if err := createEngine(c, i); err != nil {
		return fmt.Errorf("make a ledger: %w", err)
	}
	pointCreating.Pass()
	if err := createLog(c, 0); err != nil {
		return fmt.Errorf("make a ledger: %w", err)
	}
	if err := writeSynced(c.identityPath(), i.text()); err != nil {
		return fmt.Errorf("make a ledger: %w", err)
	}
	if err := errors.Join(os.Remove(c.creatingPath()), syncDir(c.Dir)); err != nil {
		return fmt.Errorf("make a ledger: %w", err)
	}
	return nil
}

// createEngine writes the identity into a new Badger.
func createEngine(c Config, i identity) (err error) {
	if err := os.MkdirAll(c.dataDir(), 0o700); err != nil {
		return err
	}
	db, err := openEngine(c.engineOptions())
	if err != nil {
		return err
	}
	defer func() {
		_, late := c.closeEngine(db, nil)
		err = errors.Join(err, late)
	}()
	return db.Update(func(txn *badger.Txn) error {
		l := newWrites(txn)
		return errors.Join(l.putValue(metaKey, i), l.apply(txn))
	})
}

// abandon removes what a first start left that was cut short.
func abandon(c Config) error {
	switch copying, err := exists(c.copyingPath()); {
	case err != nil:
		return err
	case copying:
		return unfinishedCopy(c)
	}
	id, err := os.ReadFile(c.creatingPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if i, err := readIdentity(c.identityPath()); err == nil && i.ID == string(id) {
		if err := os.Remove(c.identityPath()); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(c.dataDir()), os.RemoveAll(c.bodiesDir()), os.RemoveAll(c.spoolDir()),
		removeIfThere(c.logPath()), os.Remove(c.creatingPath()))
}

// Init makes a new ledger in c.Dir and returns its id. A folder that holds one
// already, or a part of one, is refused.
func Init(c Config) (id string, err error) {
	if err := c.validate(); err != nil {
		return "", err
	}
	if err := makeFolder(c.Dir); err != nil {
		return "", err
	}
	lock, err := lockLedger(c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	found, err := look(c)
	if err != nil {
		return "", err
	}
	if !found.none() {
		return "", fmt.Errorf("%w: folder %s, or the witness %q, is of a ledger already: use it, or name another folder with --data-dir",
			ledger.ErrNotAllowed, c.Dir, c.HighWaterFile)
	}
	if id = c.ID; id == "" {
		id = c.NewID()
	}
	return id, create(c, id)
}
