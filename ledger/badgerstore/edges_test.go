package badgerstore

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// openEdge opens a ledger that the test closes.
func openEdge(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func putEdge(t *testing.T, s *Store, m *ledger.Mutation) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Fatal(err)
	}
}

// A whole batch of commands that change nothing gives the turn to sync back.
func TestABatchFullOfNothingHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := openEdge(t, testConfig(t.TempDir()))
	started, goOn := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	nothing := func(wait func()) {
		all.Go(func() {
			if err := s.Update(t.Context(), func(ledger.Tx) error { wait(); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	nothing(func() { close(started); <-goOn })
	<-started
	for range fullCommands {
		nothing(func() {})
	}
	for late := time.After(time.Minute); len(s.queue) < fullCommands; {
		select {
		case <-late:
			t.Fatal("the commands never queued up")
		case <-time.After(time.Millisecond):
		}
	}
	close(goOn)
	all.Wait()
	putEdge(t, s, ledgertest.SampleMutation("x", ledger.Applied, 0))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Once the loss of a body was accepted, the records that name it go on without it.
func TestRecordsOutliveALostBody(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := openEdge(t, c)
	m := ledgertest.SampleMutation("fl", ledger.InFlight, 0)
	m.Request.Body = putBody(t, s, "a", long("a"))
	putEdge(t, s, m)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.bodyPath(m.Request.Body.SHA256)); err != nil {
		t.Fatal(err)
	}
	if _, err := AcceptLoss(t.Context(), c, "the disk broke", "ann"); err != nil {
		t.Fatal(err)
	}
	s = openEdge(t, c)
	l := ledger.New(s, ledger.Config{Now: c.Now, NewID: c.NewID})
	if _, err := l.Recover(t.Context(), func(*ledger.Mutation) time.Time { return time.Now() }); err != nil {
		t.Errorf("recovery: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A missing ledger whose loss was accepted halfway is no first start.
func TestAcceptingAMissingLedgerIsCutShort(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(Config) error{
		"the new one is made": startAnew,
		"the old signs are gone": func(c Config) error {
			return errors.Join(os.WriteFile(c.acceptingPath(), nil, 0o600), os.Remove(c.logPath()), os.Remove(c.identityPath()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t.TempDir())
			if err := openEdge(t, c).Close(); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.RemoveAll(c.dataDir()), cut(c)); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(t.Context(), c); err == nil {
				t.Errorf("it opens: %v", s.Close())
			}
			if _, err := AcceptLoss(t.Context(), c, "the disk broke", "ann"); err != nil {
				t.Fatal(err)
			}
			s := openEdge(t, c)
			err := s.View(t.Context(), func(v ledger.View) error {
				gaps, err := v.Gaps()
				if len(gaps) == 0 {
					t.Error("nothing says what is missing")
				}
				return err
			})
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A copy is sound, and doesn't open as if nothing were missing: neither as Backup made it, nor once it was restored
// on purpose by a process that ended before the gap was noted.
func TestACopyOpensOnlyAsARestoredOne(t *testing.T) {
	t.Parallel()
	s := openEdge(t, testConfig(t.TempDir()))
	putEdge(t, s, ledgertest.SampleMutation("x", ledger.Applied, 0))
	dir := filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(s.Backup(t.Context(), dir, nil), s.Close()); err != nil {
		t.Fatal(err)
	}
	c := testConfig(dir)
	refused := func() {
		t.Helper()
		s, err := Open(t.Context(), c)
		if err == nil {
			t.Errorf("it opens: %v", s.Close())
		}
		if _, unsound := Verify(t.Context(), c, nil); !errors.Is(err, ledger.ErrShortened) || unsound != nil {
			t.Errorf("opened: %v; verified: %v", err, unsound)
		}
	}
	refused()
	restored := c
	restored.Restored = true
	s = openEdge(t, restored)
	// What is missing came behind all the gaps that the copy holds, and none is there.
	if gaps, known := s.Behind(); gaps != 0 || !known {
		t.Errorf("behind %d gaps, %t", gaps, known)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	refused()
}
