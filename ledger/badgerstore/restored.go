package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// restoringPath marks a ledger that goes on as an older copy of itself. Until its gap is noted, it opens as a
// restored one only.
func (c Config) restoringPath() string { return filepath.Join(c.Dir, "ledger.restoring") }

// beginRestored notes that a gap is to come.
func (s *Store) beginRestored() error {
	if err := s.noteBehind(); err != nil {
		return err
	}
	text := s.ID()
	if s.behind.known {
		text += "\n" + strconv.Itoa(s.behind.gaps)
	}
	return writeSynced(s.config.restoringPath(), []byte(text))
}

// behind says of a restored copy that it ends before what was acknowledged, and how many gaps
// it holds itself.
type behind struct {
	known bool
	gaps  int
}

// noteBehind finds out whether the copy is behind. The witness says so, or what an earlier start wrote before it
// was cut short.
func (s *Store) noteBehind() error {
	if s.older {
		return s.view(func(src snapshot) error {
			gaps, err := (&view{src: src}).Gaps()
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

// Behind reports whether the ledger is a restored copy that is known to end before what was acknowledged. The gaps
// are those that it held before: none of them is of what is missing now.
func (s *Store) Behind() (gaps int, known bool) { return s.behind.gaps, s.behind.known }

// GapNoted says that the gap of a restored copy is in the ledger.
func (s *Store) GapNoted() error {
	return errors.Join(removeIfThere(s.config.restoringPath()), syncDir(s.config.Dir))
}
