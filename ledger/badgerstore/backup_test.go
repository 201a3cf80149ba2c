package badgerstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// An unfinished copy has the id of the ledger in use: what is configured for that must stay.
func TestAnUnfinishedCopyIsNoFirstStart(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.HighWaterFile = filepath.Join(t.TempDir(), "highwater")
	s := mustOpenOnly(t, c)
	keys := fill(t, s, 0, 3, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	unfinished := filepath.Join(t.TempDir(), "copy")
	// It is cut short between two of its parts, or at the end of the first.
	if err := s.Backup(ctx, unfinished, nil); err == nil {
		if err := os.WriteFile(filepath.Join(unfinished, "ledger.copying"), []byte(s.ID()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	earlier := copyFolder(t, unfinished)
	if err := os.Rename(filepath.Join(earlier, "ledger.copying"), filepath.Join(earlier, "ledger.creating")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{unfinished, earlier} {
		other := c
		other.Dir = dir
		for name, ask := range map[string]func() error{
			"open":   func() error { s, err := Open(context.Background(), other); return closed(s, err) },
			"verify": func() error { _, err := Verify(context.Background(), other, nil); return err },
			"accept": func() error { _, err := AcceptLoss(context.Background(), other, "a drill", "ada"); return err },
			"init":   func() error { _, err := Init(other); return err },
		} {
			if err := ask(); !errors.Is(err, ledger.ErrNotAllowed) || !strings.Contains(err.Error(), "may be removed") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := refusesOrKeeps(t, c, keys); err != nil {
		t.Error(err)
	}
}

func TestACopyThatIsInUseIsNotRemoved(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	s := mustOpenOnly(t, testConfig(filepath.Join(parent, "ledger")))
	if err := RemoveCopy(parent, "ledger"); !errors.Is(err, ledger.ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	if err := errors.Join(s.Close(), RemoveCopy(parent, "ledger")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(parent); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
