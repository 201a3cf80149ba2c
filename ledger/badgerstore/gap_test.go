package badgerstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// gapsOf opens the ledger for commands and lists its gaps.
func gapsOf(t *testing.T, s *Store) (gaps []ledger.Gap) {
	t.Helper()
	err := s.View(t.Context(), func(v ledger.View) (err error) {
		gaps, err = v.Gaps()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return gaps
}

// cutOut takes a value out of a closed ledger's engine, as if its table had never been.
func cutOut(t *testing.T, c Config, k []byte) {
	t.Helper()
	db, err := openEngine(c.engineOptions())
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *badger.Txn) error { return txn.Delete(k) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestRestoredCopyOpensOnlyAsSuchUntilItsGapIsNoted(t *testing.T) {
	t.Parallel()
	c, _ := shortened(t)
	refused := func(why string) {
		t.Helper()
		if s, err := Open(context.Background(), c); !errors.Is(err, ledger.ErrShortened) {
			if err == nil {
				s.Close()
			}
			t.Errorf("%s: %v, want ErrShortened", why, err)
		} else if strings.Count(err.Error(), "start it with keep-proxy serve --restored SINCE") != 1 {
			t.Errorf("%s: %v, want the way to go on with a copy", why, err)
		}
	}
	refused("an older copy")
	restored := c
	restored.Restored = true
	s := mustOpenOnly(t, restored)
	// Killed before the gap is in the ledger.
	killed := c
	killed.Dir = copyFolder(t, c.Dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused("before the gap is noted")
	if _, err := os.Stat(killed.restoringPath()); err != nil {
		t.Errorf("after a kill: %v", err)
	}
	s = mustOpenOnly(t, restored)
	l := ledger.New(s, ledger.Config{Now: c.Now, NewID: c.NewID})
	since := time.Now().Add(-time.Minute).Round(0)
	gap, err := l.Restored(t.Context(), since, "ada", "the disk died")
	if err := errors.Join(err, l.MarkGaps(t.Context()), s.GapNoted(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, c)
	gaps := gapsOf(t, s)
	if len(gaps) != 1 || !gaps[0].Marked || gaps[0].Number != gap.Number || gaps[0].Since.After(since) {
		t.Errorf("gaps %+v", gaps)
	}
}

// The command line of an earlier restore may still be there, and the copy know its gap: what is
// missing now came behind that.
func TestARestoreOfALaterCopyOpensAGapWhateverWasSaidBefore(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	since := time.Now().Add(-time.Minute).Round(0)
	restored := c
	restored.Restored = true
	opened := func(want int) *Store {
		t.Helper()
		s := mustOpenOnly(t, restored)
		held, _ := s.Behind()
		l := ledger.New(s, ledger.Config{Now: c.Now, NewID: c.NewID})
		gap, err := l.RestoredBehind(t.Context(), since, held, "ada", "the disk died")
		if err != nil {
			t.Fatal(err)
		}
		if gaps := gapsOf(t, s); len(gaps) != want || gap.Number != want {
			t.Errorf("gap %d of %+v, want %d", gap.Number, gaps, want)
		}
		return s
	}
	closed := func(s *Store, noted func() error) {
		t.Helper()
		if err := errors.Join(noted(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	killed := func() error { return nil }
	mustInit(t, c)
	s := opened(1)
	closed(s, s.GapNoted)
	s = opened(1) // Said again.
	closed(s, s.GapNoted)
	later := copyFolder(t, c.Dir)
	s = mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	closed(s, killed)
	c.Dir, restored.Dir = later, later
	closed(mustOpenOnly(t, restored), killed) // Before the gap is in the ledger.
	closed(opened(2), killed)                 // Before it is noted.
	s = opened(2)
	closed(s, s.GapNoted)
	s = opened(2)
	if held, known := s.Behind(); known {
		t.Errorf("behind still, with %d gaps", held)
	}
	closed(s, s.GapNoted)
}

// Being restored excuses an early end, and nothing else.
func TestRestoredExcusesNoDamage(t *testing.T) {
	t.Parallel()
	dir, _ := crashed(t)
	c := testConfig(dir)
	c.Restored = true
	path := tablesOf(t, dir)[0]
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), c); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("a damaged copy: %v", err)
	}
	other := testConfig(t.TempDir())
	other.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	if err := mustOpenOnly(t, other).Close(); err != nil {
		t.Fatal(err)
	}
	c, _ = shortened(t)
	c.Restored, c.HighWaterFile = true, other.HighWaterFile
	if _, err := Open(context.Background(), c); !errors.Is(err, ledger.ErrForeign) {
		t.Errorf("another ledger's copy: %v", err)
	}
}

func TestAcceptedLossLeavesAGap(t *testing.T) {
	t.Parallel()
	t.Run("of the end", func(t *testing.T) {
		t.Parallel()
		c, _ := shortened(t)
		if _, err := AcceptLoss(t.Context(), c, "restored from a copy", "ada"); err != nil {
			t.Fatal(err)
		}
		gaps := gapsOf(t, mustOpen(t, c))
		if len(gaps) != 1 || gaps[0].Cause != ledger.GapLoss || gaps[0].Marked || gaps[0].Actor != "person:ada" || gaps[0].Since.IsZero() {
			t.Errorf("gaps %+v", gaps)
		}
	})
	t.Run("of the end and of something before it", func(t *testing.T) {
		t.Parallel()
		c := testConfig(t.TempDir())
		s := mustOpenOnly(t, c)
		active(t, s)
		fill(t, s, 0, 8, 10)
		emptied(t, s)
		gone := s.foldedTip.Commit
		fill(t, s, 8, 3, 10)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		cutOut(t, c, foldKey(gone, 0))
		// A log that ends where nothing was folded yet, as an older copy of it does.
		if err := createLog(c, gone-1); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(context.Background(), c); !errors.Is(err, ledger.ErrShortened) {
			t.Fatalf("%v, %v; want ErrShortened", s, err)
		}
		if _, err := AcceptLoss(t.Context(), c, "it looked like the end", "ada"); err != nil {
			t.Fatal(err)
		}
		if gaps := gapsOf(t, mustOpenOnly(t, c)); len(gaps) != 1 || !gaps[0].Since.IsZero() || !gaps[0].Open() {
			t.Errorf("the gap begins too late: %+v", gaps)
		}
	})
	t.Run("of all", func(t *testing.T) {
		t.Parallel()
		c, _ := shortened(t)
		remove(t, c.Dir, "data")
		if _, err := AcceptLoss(t.Context(), c, "gone", "ada"); err != nil {
			t.Fatal(err)
		}
		if gaps := gapsOf(t, mustOpen(t, c)); len(gaps) != 1 || !gaps[0].Since.IsZero() || !gaps[0].Open() {
			t.Errorf("gaps %+v", gaps)
		}
	})
}

func TestConfirmedGapLetsItemsIn(t *testing.T) {
	t.Parallel()
	c, m := shortened(t)
	if _, err := AcceptLoss(t.Context(), c, "restored from a copy", "ada"); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, c)
	l := ledger.New(s, ledger.Config{Now: c.Now, NewID: c.NewID})
	if err := l.MarkGaps(t.Context()); err != nil {
		t.Fatal(err)
	}
	released, err := l.ConfirmGaps(t.Context(), ledger.ConfirmGap{Workflow: "refunds", Actor: "ada", Reason: "looked"})
	if err != nil || released != 2 {
		t.Errorf("released %d, %v; want 2", released, err)
	}
	err = s.View(t.Context(), func(v ledger.View) error {
		for _, name := range []string{"order-1", "failed"} {
			i, err := v.Item("refunds", name)
			if err != nil {
				return err
			}
			if i.State != ledger.ItemOpen || i.Reason != "" || i.Cause != "" {
				t.Errorf("the item is %+v", i)
			}
		}
		got, err := v.Mutation(m.Key)
		if err == nil && !got.Unresolved() {
			t.Errorf("what was in flight is %s", got.State)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
