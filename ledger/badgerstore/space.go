package badgerstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

const (
	// spaceEvery is how long a measurement of free space is believed.
	spaceEvery = 100 * time.Millisecond
	// reserveSize is the size of the reserve file.
	reserveSize = 32 << 20
)

// space guards against a full disk, which would kill the process in a memory map.
type space struct {
	dir     string
	minFree uint64
	statfs  func(string) (uint64, error)
	log     zerolog.Logger

	mu       sync.Mutex
	measured time.Time
	free     uint64
	low      bool
	err      error
	reserved bool
	// without says that this file system can't set space aside.
	without bool
	// allocate is that of the operating system.
	allocate func(*os.File, int64) error
}

func newSpace(c Config) *space {
	s := &space{dir: c.Dir, minFree: uint64(c.MinFree), statfs: c.statfs, log: c.Logger, allocate: allocate}
	if s.statfs == nil {
		s.statfs = freeSpace
	}
	return s
}

func freeSpace(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// check refuses below the minimum; it measures at most every spaceEvery.
func (s *space) check() error { return s.atLeast(s.minFree) }

// Spacious returns nil while there is room for new mutations, else the ErrLowSpace
// with which they are refused. Outcomes are recorded still.
func (s *Store) Spacious() error { return s.space.check() }

// checkBody refuses a body below half of the minimum. So outcomes have room for theirs when new mutations have
// none.
func (s *space) checkBody() error { return s.atLeast(s.minFree / 2) }

func (s *space) atLeast(limit uint64) error {
	if s.minFree == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.measured.IsZero() || time.Since(s.measured) >= spaceEvery {
		s.measure()
	}
	if s.err != nil {
		return fmt.Errorf("%w: free space can't be measured: %w", ledger.ErrUnavailable, s.err)
	}
	if s.free < limit {
		return fmt.Errorf("%w: %d MiB free in %s, %d MiB are wanted",
			ledger.ErrLowSpace, s.free>>20, s.dir, limit>>20)
	}
	return nil
}

// roomForCopy refuses to write size more bytes of a copy into dir where too little would be left. It is mostly the
// same disk: new mutations must not be refused because of the copy.
func (s *space) roomForCopy(dir string, size int64) error {
	if s.minFree == 0 {
		return nil
	}
	free, err := s.statfs(dir)
	if err != nil {
		return fmt.Errorf("%w: free space can't be measured: %w", ledger.ErrUnavailable, err)
	}
	if want := s.minFree + copyHeadroom + uint64(size); free < want {
		return fmt.Errorf("%w: %d MiB free in %s, and a copy of the ledger leaves %d MiB of it",
			ledger.ErrLowSpace, free>>20, dir, want>>20)
	}
	return nil
}

// measure also gives the reserve up when space is low, and takes it back when there
// is plenty.
func (s *space) measure() {
	s.measured = time.Now()
	s.free, s.err = s.statfs(s.dir)
	if low := s.err == nil && s.free < s.minFree; low != s.low && s.err == nil {
		s.low = low
		s.tell()
	}
	switch {
	case s.err != nil:
	case s.free < s.minFree && s.reserved:
		s.err = removeIfThere(s.reservePath())
		s.reserved = false
	case s.free > s.minFree+2*reserveSize && !s.reserved && !s.without:
		s.err = s.reserve()
	}
}

// resume finds the reserve that an earlier process set aside. If space is low it gives it up at once: Badger is
// opened next, and may need it.
func (s *space) resume() error {
	if s.minFree == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := os.Stat(s.reservePath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ledger folder: %w", err)
	}
	s.reserved = true
	s.measure()
	if s.reserved && st.Size() < reserveSize {
		s.reserved, s.measured = false, time.Time{} // It was cut short, and is set up anew.
	}
	return nil
}

// tell logs that space became low, or that there is enough again.
func (s *space) tell() {
	if s.low {
		s.log.Error().Str("folder", s.dir).Uint64("free_mib", s.free>>20).Uint64("wanted_mib", s.minFree>>20).
			Msg("the disk is nearly full: new mutations are refused until there is space (ledger.min_free)")
		return
	}
	s.log.Info().Str("folder", s.dir).Uint64("free_mib", s.free>>20).Msg("there is space again: mutations are taken")
}

func (s *space) reservePath() string { return filepath.Join(s.dir, "reserve") }

// reserve sets the reserve file up; an existing one is kept. Some file systems can't: then the
// minimum alone guards. A file with holes would free nothing.
func (s *space) reserve() error {
	f, err := os.OpenFile(s.reservePath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil && st.Size() < reserveSize {
		err = s.allocate(f, reserveSize)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		s.without = true
		s.log.Warn().Str("folder", s.dir).Msg("this file system can't set space aside: the ledger goes without its reserve")
		return errors.Join(f.Close(), os.Remove(s.reservePath()))
	}
	s.reserved = err == nil
	return errors.Join(err, f.Close())
}
