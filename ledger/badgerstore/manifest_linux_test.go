package badgerstore

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
)

// descriptorOf returns that of a file which this process has open.
func descriptorOf(t *testing.T, path string) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, d := range all {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", d.Name())); err == nil && to == path {
			n, err := strconv.Atoi(d.Name())
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s isn't open", path)
	return -1
}

// The engine says nothing of it to who commits, and tries again.
func TestAManifestThatCannotBeWrittenStopsTheLedger(t *testing.T) {
	t.Parallel()
	for name, device := range map[string]string{"no room": "/dev/full", "a sync that fails": "/dev/null"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			c := testConfig(dir)
			restore := func() {}
			var once sync.Once
			c.Logger = zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, text string) {
				if strings.Contains(text, "error flushing memtable") {
					once.Do(restore)
				}
			}))
			s := mustOpenOnly(t, c)
			keys := fill(t, s, 0, 3, 10)
			manifest := descriptorOf(t, filepath.Join(c.dataDir(), badger.ManifestFilename))
			kept, err := unix.Dup(manifest)
			if err != nil {
				t.Fatal(err)
			}
			broken, err := os.OpenFile(device, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			// The next try finds the disk in order again.
			restore = func() {
				if err := errors.Join(unix.Dup3(kept, manifest, unix.O_CLOEXEC), unix.Close(kept), broken.Close()); err != nil {
					t.Error(err)
				}
			}
			if err := unix.Dup3(int(broken.Fd()), manifest, unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			for n := 3; n < 600; n++ {
				key, err := tryFill(s, n, 150<<10)
				if err != nil {
					break
				}
				keys = append(keys, key)
			}
			if err := s.Healthy(); !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("health: %v", err)
			}
			err = s.Update(context.Background(), func(tx ledger.Tx) error { return nil })
			if !errors.Is(err, ledger.ErrUnavailable) {
				t.Errorf("a later command: %v", err)
			}
			_ = s.Close()
			if err := refusesOrKeeps(t, c, keys); err != nil {
				t.Error(err)
			}
		})
	}
}
