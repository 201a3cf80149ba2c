package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
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

// A copy of the folder that is tried out with the same configuration would take over the file.
func TestAHighWaterFileBelongsToOneLedgerAtATime(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "state", "highwater")
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 3, 10)
	emptied(t, s)
	older := c
	older.Dir = copyFolder(t, c.Dir)
	keys = append(keys, fill(t, s, 3, 3, 10)...)
	restored := older
	restored.Restored = true
	for name, ask := range map[string]func() error{
		"open":    func() error { s, err := Open(context.Background(), older); return closed(s, err) },
		"restore": func() error { s, err := Open(context.Background(), restored); return closed(s, err) },
		"verify":  func() error { _, err := Verify(context.Background(), older, nil); return err },
		"accept":  func() error { _, err := AcceptLoss(context.Background(), older, "a drill", "ada"); return err },
		"init": func() error {
			other := older
			other.Dir = filepath.Join(older.Dir, "new")
			_, err := Init(other)
			return err
		},
	} {
		err := ask()
		if !errors.Is(err, ledger.ErrLocked) || !strings.Contains(err.Error(), "witness "+c.HighWaterFile) ||
			!strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := refusesOrKeeps(t, c, keys); err != nil {
		t.Error(err)
	}
}

func closed(s *Store, err error) error {
	if err == nil {
		_ = s.Close()
	}
	return err
}

// Badger says so with a text alone.
func TestALockOfBadgersOwnIsKnown(t *testing.T) {
	t.Parallel()
	c := Config{Dir: t.TempDir()}
	if err := os.Mkdir(c.dataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(c.dataDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if _, err := badger.Open(c.engineOptions()); !heldElsewhere(err) {
		t.Errorf("got %v", err)
	}
}

func TestTheEngineAwaitsItsOwnLock(t *testing.T) {
	t.Parallel()
	c := Config{Dir: t.TempDir()}
	if err := os.Mkdir(c.dataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(c.dataDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*lockPause, func() { _ = held.Close() })
	db, err := openEngine(c.engineOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
