package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// A file in which neither mark can be read is damaged, not another ledger's: a person may go on
// without it.
func TestAHighWaterFileWithoutAMarkIsDamaged(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(c.highWaterPath())
	if err != nil {
		t.Fatal(err)
	}
	b[20] ^= 1
	b[slotSize+20] ^= 1
	for _, n := range []int{marksSize, len(b)} { // Without a journal, as in older formats, and with one.
		if err := os.WriteFile(c.highWaterPath(), b[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err = Open(context.Background(), c)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrForeign) {
			t.Errorf("of %d bytes: got %v, want ErrDamaged", n, err)
		}
	}
	if _, err := AcceptLoss(t.Context(), c, "the disk broke", "ann"); err != nil {
		t.Fatal(err)
	}
	fill(t, mustOpen(t, c), 3, 1, 10)
}

// Another history of the same length holds as many commits, and not those that were
// acknowledged.
func TestAnotherHistoryOfTheSameLengthIsALoss(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	other := testConfig(copyFolder(t, c.Dir))
	fill(t, s, 3, 1, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpenOnly(t, other)
	fill(t, s, 100, 5, 10)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mark, err := os.ReadFile(c.highWaterPath())
	if err == nil {
		err = os.WriteFile(filepath.Join(other.Dir, filepath.Base(other.highWaterPath())), mark, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Open(context.Background(), other); !errors.Is(err, ledger.ErrShortened) {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("got %v, want ErrShortened", err)
	}
}

// What the batch before leaves in the way stands there for the next, although the gate
// doesn't show it yet; and what rests on it isn't answered before it is durable.
func TestAStopThatIsBeingSyncedStopsTheNextCommand(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	h := hold(t)
	_, answer := h.start(ledgertest.SampleMutation("a", ledger.Indeterminate, 0))
	<-h.begun
	var blockers []ledger.Blocker
	durable := evaluated(t, h.Store, func(tx *tx) (err error) {
		blockers, err = tx.Blockers("refunds")
		return err
	})
	if len(blockers) != 1 || durable[0] {
		t.Errorf("%d stops, answered at once: %t", len(blockers), durable[0])
	}
	close(h.end)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// What may not be on the disk isn't acknowledged, and no later sync makes up for it: neither that of
// the log for a commit which is too long for the journal, nor that for the commits before it.
func TestALogWhoseSyncFailsStopsTheLedger(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	for _, emptied := range []bool{true, false} {
		var fails atomic.Bool
		c := testConfig(t.TempDir())
		c.journal = 64 << 10
		c.synced = func(path string) error {
			if filepath.Ext(path) == logSuffix && fails.CompareAndSwap(true, false) {
				return unix.EIO
			}
			return nil
		}
		s := mustOpenOnly(t, c)
		fill(t, s, 0, 1, 10)
		if emptied {
			if _, err := s.giving.awaitDurable(s.horizon.durable.Load(), s.Healthy); err != nil {
				t.Fatal(err)
			}
		}
		gate := gateOf(s)
		m := ledgertest.SampleMutation("a", ledger.Indeterminate, 0)
		m.Target = strings.Repeat("x", 20<<10) // Too long for the journal.
		fails.Store(true)
		if err := s.do(t.Context(), putting(m)); !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, unix.EIO) {
			t.Errorf("the command whose sync failed: %v", err)
		}
		if blockers, _ := gate.BlockersOf("refunds"); len(blockers) != 0 {
			t.Error("the gate shows what was not acknowledged")
		}
		if err := s.do(t.Context(), putting(m)); !errors.Is(err, ledger.ErrUnavailable) || s.Healthy() == nil {
			t.Errorf("a later command: %v", err)
		}
	}
}

// What was acknowledged is durable in the journal. That the engine doesn't take it stops the
// ledger, since who reads would miss it, and the next start has it.
func TestACommitThatTheEngineDoesNotTakeStopsTheLedger(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	gate := gateOf(s)
	m := ledgertest.SampleMutation("a", ledger.Indeterminate, 0)
	err := s.do(t.Context(), func(tx *tx) error {
		// The engine ends between the command and its commit.
		return errors.Join(tx.PutMutation(m), s.db.Close())
	})
	if err != nil || s.Healthy() != nil {
		t.Errorf("answered with %v, healthy: %t", err, s.Healthy() == nil)
	}
	if blockers, _ := gate.BlockersOf("refunds"); len(blockers) != 1 {
		t.Error("the gate doesn't show what was acknowledged")
	}
	if got := seen(t, s, m.Key); got.Version != 1 {
		t.Errorf("%+v is seen", got)
	}
	left := testConfig(copyFolder(t, c.Dir))
	if err := s.View(t.Context(), func(ledger.View) error { return nil }); !errors.Is(err, ledger.ErrUnavailable) || s.Healthy() == nil {
		t.Errorf("who reads is told %v, healthy: %t", err, s.Healthy() == nil)
	}
	if err := s.do(t.Context(), putting(later(m))); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a later command is told %v", err)
	}
	if got := seen(t, mustOpen(t, left), m.Key); got.State != ledger.Indeterminate {
		t.Errorf("after a restart: %+v", got)
	}
}

// A sync that fails may have dropped what it was for: no later one makes up for it, whichever of
// them it is.
func TestASyncThatFailsOnceStopsTheLedger(t *testing.T) {
	t.Parallel()
	for nth, fired := int64(1), true; fired; nth++ {
		var left atomic.Int64
		c := testConfig(t.TempDir())
		c.journal = 64 << 10
		c.synced = func(string) error {
			if left.Add(-1) == 0 {
				return unix.EIO
			}
			return nil
		}
		s := mustOpenOnly(t, c)
		left.Store(nth)
		var keys []ledger.Key
		for i := range 6 {
			m := ledgertest.SampleMutation(fmt.Sprint(i), ledger.Applied, i)
			m.Target = strings.Repeat("x", 10<<10)
			if i == 4 {
				m.Target = strings.Repeat("x", 20<<10) // Too long for the journal.
			}
			fired = left.Load() <= 0
			err := s.do(t.Context(), putting(m))
			switch {
			case err == nil && fired:
				t.Errorf("command %d is acknowledged after sync %d has failed", i, nth)
			case err == nil:
				keys = append(keys, m.Key)
			case !errors.Is(err, ledger.ErrUnavailable):
				t.Errorf("command %d, sync %d: %v", i, nth, err)
			}
		}
		if fired && s.Healthy() == nil {
			t.Errorf("sync %d has failed, and the store is healthy", nth)
		}
		left.Store(-1)
		_ = s.Close() // It may say what has failed.
		if err := refusesOrKeeps(t, c, keys); err != nil {
			t.Errorf("sync %d: %v", nth, err)
		}
	}
}

// Who waits for a commit hears that it never comes.
func TestWhoWaitsForACommitThatFailsIsTold(t *testing.T) {
	t.Parallel()
	h := newHorizon()
	h.wrote(1)
	var sick atomic.Bool
	looked, done := make(chan struct{}, 2), make(chan error, 1)
	go func() {
		_, err := h.await(func() error {
			looked <- struct{}{}
			if sick.Load() {
				return ledger.ErrUnavailable
			}
			return nil
		})
		done <- err
	}()
	<-looked
	sick.Store(true)
	h.wake() // It comes in only once the other waits.
	select {
	case err := <-done:
		if !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%v, want ErrUnavailable", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("it waits for ever")
	}
}
