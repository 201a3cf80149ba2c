package badgerstore

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// A process that was forked and hasn't begun its own program yet holds the locks of its
// parent for a moment.
func TestALockThatIsHeldForAMomentIsAwaited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		taken int
		want  error
	}{{0, nil}, {lockTries - 1, nil}, {lockTries, unix.EWOULDBLOCK}} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := awaitLock(func() error {
				if tries++; tries <= c.taken {
					return unix.EWOULDBLOCK
				}
				return nil
			}, func(err error) bool { return err != nil })
			if err != c.want { //nolint:errorlint // It is the value itself.
				t.Errorf("taken %d times: %v", c.taken, err)
			}
		})
	}
}

// Badger says so with a text alone.
func TestALockOfBadgersOwnIsKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if _, err := badger.Open(engineOptions(dir, zerolog.Nop())); !heldElsewhere(err) {
		t.Errorf("got %v", err)
	}
}

func TestTheEngineAwaitsItsOwnLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*lockPause, func() { _ = held.Close() })
	db, err := openEngine(engineOptions(dir, zerolog.Nop()))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
