package badgerstore

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

func TestAFileSystemThatSetsNoSpaceAsideIsDoneWithoutAReserve(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.MinFree = 1 << 20
	free := uint64(1 << 30)
	c.statfs = func(string) (uint64, error) { return free, nil }
	s := newSpace(c)
	tries := 0
	s.allocate = func(*os.File, int64) error {
		tries++
		return unix.EOPNOTSUPP
	}
	for range 3 {
		s.measure()
		if s.err != nil {
			t.Error(s.err)
		}
	}
	if there, err := exists(s.reservePath()); err != nil || there || tries != 1 {
		t.Errorf("a reserve: %v, %v, after %d tries", there, err, tries)
	}
	free = 0
	if s.measure(); s.err != nil {
		t.Error(s.err)
	}
	if err := s.check(); !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("without space: %v", err)
	}
}
