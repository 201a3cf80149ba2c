package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
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
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	{
		other := c
		other.Dir = unfinished
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

// It is stopped wherever the disk has too little left, and long contents count before they are copied.
func TestACopyStopsBeforeItsDiskIsFull(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.MinFree = 1 << 20
	// The ledger's own disk has room.
	const longBody = 2 * ledger.InlineBody
	looks, full, own := 0, 0, c.Dir
	free := uint64(c.MinFree) + copyHeadroom
	c.statfs = func(dir string) (uint64, error) {
		if dir == own {
			return 1 << 40, nil
		}
		if looks++; looks == full {
			return free - 1, nil
		}
		return free + 2*longBody, nil
	}
	s := mustOpen(t, c)
	for i := range 3 {
		if _, err := tryFill(s, i, backupBatch); err != nil {
			t.Fatal(err)
		}
	}
	body, err := s.WriteBody(t.Context(), bytes.NewReader(bytes.Repeat([]byte("a"), longBody)))
	if err != nil {
		t.Fatal(err)
	}
	m := ledgertest.SampleMutation("long", ledger.Indeterminate, 0)
	m.Request.Body = body
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), nil); err != nil {
		t.Fatalf("with room for it: %v", err)
	}
	all := looks
	if all < 5 {
		t.Errorf("%d looks at the disk", all)
	}
	for full = 1; full <= all; full++ {
		looks = 0
		if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), nil); !errors.Is(err, ledger.ErrLowSpace) {
			t.Errorf("too little is left at look %d of %d: %v", full, all, err)
		}
	}
	free, full = free-longBody-1, 0
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), nil); !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("without room for the long content alone: %v", err)
	}
}

// The engine of a copy tries for ever to write its last tables, too. Whoever makes a copy isn't kept
// waiting for that, nor is what waits for the end of the copy.
func TestACopyThatCannotBeWrittenIsGivenUp(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.MinFree = 1
	dir := filepath.Join(t.TempDir(), "copy")
	data := filepath.Join(dir, "data")
	// Who asks for room once Badger is open finds the folder gone.
	c.statfs = func(asked string) (uint64, error) {
		if there, _ := exists(filepath.Join(data, badger.ManifestFilename)); there && asked == dir {
			return 1 << 40, os.Rename(data, data+".away")
		}
		return 1 << 40, nil
	}
	s := mustOpen(t, c)
	m := ledgertest.SampleMutation("long", ledger.Indeterminate, 0)
	m.Request.Body = putBody(t, s, "a", long("a"))
	putEdge(t, s, m)
	s.config.stall = time.Second
	done := make(chan error, 1)
	go func() { done <- s.Backup(t.Context(), dir, nil) }()
	select {
	case err := <-done:
		if !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "left open") {
			t.Errorf("a copy: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the copy never ends")
	}
	if _, err := s.SweepBodies(t.Context()); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("the ledger itself: %v", err)
	}
}

// What an engine says that was given up would be said each second, until the process ends.
func TestAnEngineThatWasLeftOpenIsNotHeard(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	l := engineLog{log: zerolog.New(&lines), failure: new(engineFailure)}
	for _, left := range []bool{false, true} {
		l.failure.left.Store(left)
		l.Errorf("no table")
	}
	if n := strings.Count(lines.String(), "no table"); n != 1 || l.failure.err() == nil {
		t.Errorf("%d lines, told %v", n, l.failure.err())
	}
}
