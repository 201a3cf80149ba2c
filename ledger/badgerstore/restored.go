package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	badger "github.com/dgraph-io/badger/v4"
)

// restoringPath marks a ledger that goes on as an older copy of itself, and doesn't
// say so yet: until it does, it opens as a restored one only.
func (c Config) restoringPath() string { return filepath.Join(c.Dir, "ledger.restoring") }

// beginRestored notes that a gap is to come, and puts a new high-water file in place,
// for the tip of the copy, where the one that is there is ahead of it.
func (s *Store) beginRestored() error {
	if err := s.noteBehind(); err != nil {
		return err
	}
	text := s.ID()
	if s.behind.known {
		text += "\n" + strconv.Itoa(s.behind.gaps)
	}
	if err := writeSynced(s.config.restoringPath(), []byte(text)); err != nil {
		return err
	}
	if !s.older {
		return nil
	}
	return createHighWater(s.config, s.ID(), s.checkpoint.Epoch, s.tip)
}

// behind says of a restored copy that it ends before what was acknowledged, and how many gaps
// it holds itself.
type behind struct {
	known bool
	gaps  int
}

// noteBehind finds out whether the copy is behind: by the high-water file, or by the word of an
// earlier start that saw one and was cut short.
func (s *Store) noteBehind() error {
	if s.older {
		return s.db.View(func(txn *badger.Txn) error {
			gaps, err := (&view{src: snapshot{txn}}).Gaps()
			s.behind = behind{true, len(gaps)}
			return err
		})
	}
	text, err := os.ReadFile(s.config.restoringPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	if _, count, found := strings.Cut(string(text), "\n"); found {
		gaps, err := strconv.Atoi(count)
		if err != nil {
			return fmt.Errorf("ledger folder: %s: %w", s.config.restoringPath(), err)
		}
		s.behind = behind{true, gaps}
	}
	return nil
}

// Behind reports whether the ledger is a restored copy that is known to end before what was
// acknowledged, and how many gaps it holds from before that: none of them is of what is missing now.
func (s *Store) Behind() (gaps int, known bool) { return s.behind.gaps, s.behind.known }

// GapNoted says that the gap of a restored copy is in the ledger.
func (s *Store) GapNoted() error {
	return errors.Join(removeIfThere(s.config.restoringPath()), syncDir(s.config.Dir))
}
