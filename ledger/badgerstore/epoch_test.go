package badgerstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// startedTwice is a ledger with a high-water file elsewhere, and what that file was after the first start. A kill left
// it after n records of the second one.
func startedTwice(t *testing.T, n int) (c Config, older []byte, keys []ledger.Key) {
	t.Helper()
	c = testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	s := mustOpenOnly(t, c)
	keys = fill(t, s, 0, 2, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	older = mustRead(t, c.HighWaterFile)
	s = mustOpenOnly(t, c)
	keys = append(keys, fill(t, s, 2, n, 10)...)
	killed := c
	killed.Dir, killed.HighWaterFile = copyFolder(t, c.Dir), filepath.Join(copyFolder(t, filepath.Dir(c.HighWaterFile)), "highwater")
	return killed, older, keys
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustWrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// refusesNaming wants start and verification refused, and both paths named.
func refusesNaming(t *testing.T, c Config, kind error, paths ...string) {
	t.Helper()
	_, opens := Open(t.Context(), c)
	_, verifies := Verify(t.Context(), c, nil)
	for _, err := range []error{opens, verifies} {
		if !errors.Is(err, kind) {
			t.Fatalf("%v\nwant %v", err, kind)
		}
		for _, path := range paths {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%s isn't named: %v", path, err)
			}
		}
	}
}

func TestAnOlderHighWaterFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"and nothing came since": 0, "and records came since": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, older, keys := startedTwice(t, n)
			newest := mustRead(t, c.HighWaterFile)
			mustWrite(t, c.HighWaterFile, older)
			refusesNaming(t, c, ledger.ErrDamaged, c.HighWaterFile, c.dataDir())
			// A restore is no way around it.
			restored := c
			restored.Restored = true
			refusesNaming(t, restored, ledger.ErrDamaged, c.HighWaterFile)

			other := c
			other.Dir = copyFolder(t, c.Dir)
			mustWrite(t, c.HighWaterFile, newest)
			if err := refusesOrKeeps(t, c, keys); err != nil {
				t.Errorf("with the newest one: %v", err)
			}

			other.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
			mustWrite(t, other.HighWaterFile, older)
			if loss, err := AcceptLoss(t.Context(), other, "because", "ada"); err != nil || loss.New {
				t.Fatalf("accept the loss: %+v, %v", loss, err)
			}
			for range 2 { // The epoch that follows is as good as any.
				if err := refusesOrKeeps(t, other, nil); err != nil {
					t.Errorf("after the loss was accepted: %v", err)
				}
			}
		})
	}
}

// An older file of the same start is found out where the data are further.
func TestAnOlderHighWaterFileOfTheSameStartIsRefused(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	older := mustRead(t, c.highWaterPath())
	fill(t, s, 0, 2, 10)
	allGiven(t, s)
	c.Dir = copyFolder(t, c.Dir)
	mustWrite(t, c.highWaterPath(), older)
	refusesNaming(t, c, ledger.ErrDamaged, c.highWaterPath())
}

func TestTwoHighWaterFilesThatDisagreeAreRefused(t *testing.T) {
	t.Parallel()
	c, older, keys := startedTwice(t, 3)
	inside, newest := c.insidePath(), mustRead(t, c.HighWaterFile)
	for _, both := range []struct {
		inside, outside []byte
		kind            error
	}{{newest, older, ledger.ErrDamaged}, {older, newest, ledger.ErrShortened}} {
		mustWrite(t, inside, both.inside)
		mustWrite(t, c.HighWaterFile, both.outside)
		refusesNaming(t, c, both.kind, inside, c.HighWaterFile)
	}
	// Without the older one it goes on; a move that was cut short leaves two that are the same.
	mustWrite(t, inside, newest)
	if err := refusesOrKeeps(t, c, keys); err != nil {
		t.Error(err)
	}
	if left, err := exists(inside); left || err != nil {
		t.Errorf("it lies in the folder still: %v, %v", left, err)
	}
	// By another name it is the same file.
	if err := os.Rename(c.HighWaterFile, inside); err != nil {
		t.Fatal(err)
	}
	c.HighWaterFile = c.Dir + "/./highwater"
	if err := refusesOrKeeps(t, c, keys); err != nil {
		t.Error(err)
	}
	if left, err := exists(inside); !left || err != nil {
		t.Errorf("it is gone: %v, %v", left, err)
	}
}

// The start is cut short at each sync, before its mark is written to after its first commit, and begins again.
func TestAStartThatWasCutShortBeginsAgain(t *testing.T) {
	t.Parallel()
	killed, _, keys := startedTwice(t, 1)
	last, err := readHighWater(killed.HighWaterFile)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("cut short")
	between, after := false, false
	for n, ended := 1, false; !ended; n++ {
		c := killed
		c.Dir, c.HighWaterFile = copyFolder(t, killed.Dir), filepath.Join(copyFolder(t, filepath.Dir(killed.HighWaterFile)), "highwater")
		syncs := 0
		c.synced = func(string) error {
			if syncs++; syncs >= n {
				return broken
			}
			return nil
		}
		s, err := Open(t.Context(), c)
		if ended = err == nil; ended {
			_ = s.Close()
			break
		}
		if !errors.Is(err, broken) {
			t.Fatalf("sync %d: %v", n, err)
		}
		a, err := readHighWater(c.HighWaterFile)
		if err != nil {
			t.Fatal(err)
		}
		if a.mark.Epoch != last.mark.Epoch {
			between, after = between || len(a.after) == 0, after || len(a.after) > 0
		}
		c.synced = nil
		if err := refusesOrKeeps(t, c, keys); err != nil {
			t.Errorf("sync %d: %v", n, err)
		}
	}
	if !between || !after {
		t.Errorf("cut short between mark and first commit: %v, after it: %v", between, after)
	}
}
