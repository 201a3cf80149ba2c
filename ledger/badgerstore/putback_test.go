package badgerstore

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"keep-proxy/ledger"
)

// A file is removed as soon as the commit is durable that gives its content up. That commit
// and the one which named it may both be missing in the engine.
func TestContentThatWasRemovedSinceIsNoLoss(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	engine := copyFolder(t, c.dataDir())
	gone, kept := putBody(t, s, "a", long("a")), putBody(t, s, "b", long("b"))
	letGo(t, s, "a")
	if done := mustSweep(t, s); done.Bodies != 1 {
		t.Fatalf("%+v", done)
	}
	crashed := testConfig(copyFolder(t, c.Dir))
	if err := errors.Join(os.RemoveAll(crashed.dataDir()), os.Rename(engine, crashed.dataDir())); err != nil {
		t.Fatal(err)
	}
	s = mustOpenOnly(t, crashed)
	if stored(t, s, gone) || !stored(t, s, kept) {
		t.Error("what was put back isn't what was there")
	}
}

// Short content lies with its commit: no file is missed for it.
func TestShortContentIsPutBack(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	engine := copyFolder(t, c.dataDir())
	var b ledger.Body
	if err := s.do(t.Context(), func(tx *tx) (err error) {
		b, err = tx.PutBody([]byte("short"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	crashed := testConfig(copyFolder(t, c.Dir))
	if err := errors.Join(os.RemoveAll(crashed.dataDir()), os.Rename(engine, crashed.dataDir())); err != nil {
		t.Fatal(err)
	}
	s = mustOpenOnly(t, crashed)
	if got, err := readAll(t, s, b); string(got) != "short" || err != nil {
		t.Errorf("put back: %q, %v", got, err)
	}
}

// Nothing is put back over another history than that of the high-water file.
func TestNothingIsPutBackOverAnotherHistory(t *testing.T) {
	t.Parallel()
	for name, lengths := range map[string]struct{ acknowledged, other int }{
		"that is shorter":    {3, 1},
		"of the same length": {3, 3},
		"that is longer":     {3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t.TempDir())
			c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
			s := mustOpenOnly(t, c)
			fill(t, s, 0, 3, 10)
			other := c
			other.Dir, other.HighWaterFile = copyFolder(t, c.Dir), filepath.Join(copyFolder(t, filepath.Dir(c.HighWaterFile)), "highwater")
			fill(t, s, 10, lengths.acknowledged, 10)
			acknowledged, err := os.ReadFile(c.HighWaterFile)
			if err != nil {
				t.Fatal(err)
			}
			// Opening it adds a commit.
			s = mustOpenOnly(t, other)
			fill(t, s, 20, lengths.other-1, 10)
			if err := errors.Join(s.Close(), os.WriteFile(other.HighWaterFile, acknowledged, 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := refusesOrKeeps(t, other, nil); !errors.Is(err, ledger.ErrShortened) {
				t.Errorf("another history: %v", err)
			}
		})
	}
}

// A commit that is too long for the journal is in the engine before its log is synced.
func TestACommitTooLongForTheJournalIsNotSeenBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	var watched atomic.Pointer[Store]
	var early atomic.Int32
	c := testConfig(t.TempDir())
	c.journal = 32 << 10
	c.synced = func(string) error {
		s := watched.Load()
		if s == nil {
			return nil
		}
		return inEngine(s, func(src snapshot) error {
			_, err := readCommit(src, s.horizon.durable.Load()+1)
			if errors.Is(err, ledger.ErrNotFound) {
				return nil
			}
			early.Add(1)
			newest := s.newest.take()
			defer s.newest.give(newest)
			if _, shown := readCommit(newest.snapshot, s.horizon.durable.Load()+1); !errors.Is(shown, ledger.ErrNotFound) {
				t.Errorf("who reads is shown a commit that isn't durable: %v", shown)
			}
			return err
		})
	}
	s := mustOpenOnly(t, c)
	watched.Store(s)
	fill(t, s, 0, 1, 20<<10)
	watched.Store(nil)
	if early.Load() == 0 {
		t.Error("no commit was too long: this shows nothing")
	}
}
