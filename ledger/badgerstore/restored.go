package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"keep-proxy/ledger"
)

// restoringPath marks an older copy of a ledger: it opens as a restored one only, until its gap is noted. Its lines
// are the ledger's id, how many gaps the copy holds, and when Backup made it.
func (c Config) restoringPath() string { return filepath.Join(c.Dir, "ledger.restoring") }

// isCopy refuses an older copy that nobody restores.
func (c Config) isCopy() error {
	text, err := os.ReadFile(c.restoringPath())
	switch lines := strings.Split(string(text), "\n"); {
	case c.Restored, errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("ledger folder: %w", err)
	case len(lines) == 3:
		return fmt.Errorf("%w: folder %s is a copy that ledger backup made at %s", ledger.ErrShortened, c.Dir, lines[2])
	}
	return fmt.Errorf("%w: a restore was cut short", ledger.ErrShortened)
}

// markCopy says in the copy c of the ledger that it is one. What is acknowledged from now on isn't in it.
func (s *Store) markCopy(c Config) error {
	return s.view(func(src snapshot) error {
		gaps, err := (&view{src: src}).Gaps()
		if err != nil {
			return err
		}
		made := s.now().UTC().Format(time.RFC3339)
		return writeSynced(c.restoringPath(), fmt.Appendf(nil, "%s\n%d\n%s", s.ID(), len(gaps), made))
	})
}

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

// noteBehind finds out whether the copy is behind. The witness says so, or what Backup or an earlier start wrote.
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
	if lines := strings.Split(string(text), "\n"); len(lines) > 1 {
		gaps, err := strconv.Atoi(lines[1])
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
