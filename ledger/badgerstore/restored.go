package badgerstore

import (
	"errors"
	"path/filepath"
)

// restoringPath marks a ledger that goes on as an older copy of itself, and doesn't
// say so yet: until it does, it opens as a restored one only.
func (c Config) restoringPath() string { return filepath.Join(c.Dir, "ledger.restoring") }

// beginRestored notes that a gap is to come, and puts a new high-water file in place,
// for the tip of the copy, where the one that is there is ahead of it.
func (s *Store) beginRestored() error {
	if err := writeSynced(s.config.restoringPath(), []byte(s.ID())); err != nil {
		return err
	}
	if !s.older {
		return nil
	}
	return createHighWater(s.config, s.ID(), s.tip)
}

// GapNoted says that the gap of a restored copy is in the ledger.
func (s *Store) GapNoted() error {
	return errors.Join(removeIfThere(s.config.restoringPath()), syncDir(s.config.Dir))
}
