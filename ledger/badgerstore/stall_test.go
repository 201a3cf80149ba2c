package badgerstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// hangs is a ledger whose next sync hangs until end is closed.
func hangs(t *testing.T) (s *Store, end chan struct{}) {
	t.Helper()
	end = make(chan struct{})
	armed := make(chan struct{})
	c := testConfig(t.TempDir())
	c.synced = func(string) error {
		select {
		case <-armed:
			<-end
		default:
		}
		return nil
	}
	s = mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	// Not before: opening and filling may take long on a busy machine. What doesn't hang has
	// to be done in this time, and closing in as much again.
	s.stallsAfter(time.Second)
	close(armed)
	return s, end
}

func TestSyncThatHangsStopsTheLedger(t *testing.T) {
	t.Parallel()
	s, end := hangs(t)
	gate := gateOf(s)
	m := ledgertest.SampleMutation("hangs", ledger.Indeterminate, 0)
	put := func(tx ledger.Tx) error { return tx.PutMutation(m) }
	err := s.Update(context.Background(), put)
	if !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, errHangs) {
		t.Errorf("the command whose sync hangs: %v", err)
	}
	if blockers, err := gate.BlockersOf("refunds"); err != nil || len(blockers) != 0 {
		t.Errorf("the gate shows what was not acknowledged: %v, %v", blockers, err)
	}
	for name, ask := range map[string]func() error{
		"a later command": func() error { return s.Update(context.Background(), put) },
		"a reader":        func() error { return s.View(t.Context(), func(ledger.View) error { return nil }) },
		"a long body":     func() error { _, err := s.WriteBody(t.Context(), strings.NewReader(string(long("h")))); return err },
		"health":          s.Healthy,
	} {
		if err := ask(); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "start again") {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(end)
	s.config.stall = 0 // Closing may take its time.
	if err := s.Close(); err != nil {
		t.Errorf("a sync that ended after all keeps the ledger from being closed: %v", err)
	}
	// The record may be there or not; what was acknowledged before is, and all is sound.
	s.config.synced = nil
	again := mustOpen(t, s.config)
	page, err := again.Mutations(t.Context(), ledger.Filter{})
	if err != nil || len(page.Items) < 3 {
		t.Errorf("after a restart: %d records, %v", len(page.Items), err)
	}
}

// A command that reads what the disk doesn't give holds all others up, with no sync under way.
func TestCommandThatHangsStopsTheLedger(t *testing.T) {
	t.Parallel()
	s := mustOpenOnly(t, testConfig(t.TempDir()))
	keys := fill(t, s, 0, 1, 10)
	s.stallsAfter(100 * time.Millisecond)
	began, end := make(chan struct{}), make(chan struct{})
	told := make(chan error, 2)
	m := ledgertest.SampleMutation("hangs", ledger.Indeterminate, 0)
	go func() {
		told <- s.Update(context.Background(), func(tx ledger.Tx) error {
			close(began)
			<-end
			return tx.PutMutation(m)
		})
	}()
	<-began
	go func() { told <- s.Update(context.Background(), func(ledger.Tx) error { return nil }) }()
	for range 2 {
		if err := <-told; !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, errHangs) {
			t.Errorf("a command while one hangs: %v", err)
		}
	}
	close(end)
	s.config.stall = 0 // Closing may take its time.
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	page, err := mustOpen(t, s.config).Mutations(t.Context(), ledger.Filter{})
	if err != nil || len(page.Items) != len(keys) {
		t.Errorf("%d records, %v: what was told to be unknown was committed later", len(page.Items), err)
	}
}

// Commits go on while Badger is given what it lacks, until that hangs for too long.
func TestAFoldThatHangsStopsTheLedger(t *testing.T) { //nolint:paralleltest // The point is the whole process's.
	c := testConfig(t.TempDir())
	c.calm = time.Hour
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	// The command below has to be done in this time, and what closing waits for in as much again.
	s.stallsAfter(3 * time.Second)
	begun, end := make(chan struct{}), make(chan struct{})
	disarm, err := fault.Do("badgerstore.after_fold", 1, func() { close(begun); <-end })
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	foldNow(t, s)
	<-begun
	if err := s.do(t.Context(), putting(ledgertest.SampleMutation("meanwhile", ledger.Indeterminate, 0))); err != nil {
		t.Errorf("a command while Badger is given something: %v", err)
	}
	<-s.stalled
	if err := s.do(t.Context(), putting(ledgertest.SampleMutation("late", ledger.Indeterminate, 0))); !errors.Is(err, errHangs) {
		t.Errorf("a later command: %v", err)
	}
	if err := s.Close(); !errors.Is(err, errHangs) {
		t.Errorf("closing: %v", err)
	}
	close(end)
	<-s.folded
	if err := s.release(); err != nil {
		t.Error(err)
	}
	s.config.stall = 0
	if m := seen(t, mustOpen(t, s.config), ledgertest.SampleMutation("meanwhile", ledger.Applied, 0).Key); m.State != ledger.Indeterminate {
		t.Errorf("after a restart: %+v", m)
	}
}

// foldNow begins a fold, as if no command had come for a while.
func foldNow(t *testing.T, s *Store) {
	t.Helper()
	if err := s.do(t.Context(), func(*tx) error {
		if !s.rest() {
			return errors.New("a fold is under way")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestClosingDoesNotWaitForADiskThatHangs(t *testing.T) {
	t.Parallel()
	s, end := hangs(t)
	m := ledgertest.SampleMutation("hangs", ledger.Indeterminate, 0)
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); !errors.Is(err, errHangs) {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, errHangs) {
		t.Errorf("closing: %v", err)
	}
	close(end)
	<-s.drained
	close(s.folds)
	<-s.folded
	if err := s.release(); err != nil {
		t.Error(err)
	}
}

// With nothing under way, it is the last frame that hangs.
func TestClosingDoesNotWaitForItsOwnSyncs(t *testing.T) {
	t.Parallel()
	s, end := hangs(t)
	if err := s.Close(); !errors.Is(err, errHangs) {
		t.Errorf("closing: %v", err)
	}
	close(end)
	<-s.lasts
	close(s.folds)
	<-s.folded
	if err := s.release(); err != nil {
		t.Error(err)
	}
}

func takes(d time.Duration) func() error {
	return func() error {
		<-time.After(d)
		return nil
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	const after = looks * time.Second
	for name, c := range map[string]struct {
		do func(*watch)
		// stalls says when the watch tells of it, 0 for never.
		stalls time.Duration
	}{
		"what takes long, and ends in time": {func(w *watch) {
			for range 3 {
				_ = w.over(&aSync, takes(after-time.Second/2))
			}
		}, 0},
		"much that is short, all the time": {func(w *watch) {
			for range 100 {
				_ = w.over(&aSync, takes(time.Second))
			}
		}, 0},
		"the first thing hangs": {func(w *watch) {
			_ = w.over(&aSync, takes(time.Hour))
		}, after + time.Second},
		"it hangs after much else, and a rest": {func(w *watch) {
			for range 100 {
				_ = w.over(&aCommand, takes(time.Second))
			}
			<-time.After(time.Hour)
			_ = w.over(&aSync, takes(time.Hour))
		}, 100*time.Second + time.Hour + after + time.Second},
		"it hangs after something that was short": {func(w *watch) {
			_ = w.over(&aCommand, takes(time.Second/2))
			_ = w.over(&aSync, takes(time.Hour))
		}, after + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var told atomic.Int64
				w := &watch{stalled: func(what string, d time.Duration) {
					told.Store(int64(time.Since(began)))
					if what != aSync || d != after {
						t.Errorf("%s after %v", what, d)
					}
				}}
				w.every.Store(int64(after / looks))
				c.do(w)
				if stalled := time.Duration(told.Load()); stalled != c.stalls {
					t.Errorf("stalled after %v, want %v", stalled, c.stalls)
				}
				<-time.After(2 * after)
				if resting := !w.armed.Load(); resting != (c.stalls == 0) {
					t.Errorf("rests: %v", resting)
				}
			})
		})
	}
}

// The engine tries for ever to write its last tables. Who ends the program isn't kept waiting for
// that, and nothing is lost by it.
func TestAnEngineThatCannotWriteIsLeftOpen(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	fill(t, s, 0, 3, 10)
	s.config.stall = time.Second
	data := filepath.Join(c.Dir, "data")
	if err := os.Rename(data, data+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "left open") {
		t.Errorf("closing: %v", err)
	}
	if other, err := Open(t.Context(), c); err == nil {
		_ = other.Close()
		t.Error("the ledger is opened beside an engine that may still write")
	}
	if err := os.Rename(data+".away", data); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, testConfig(copyFolder(t, c.Dir)))
	page, err := again.Mutations(t.Context(), ledger.Filter{})
	if err != nil || len(page.Items) != 3 {
		t.Errorf("after a restart: %d records, %v", len(page.Items), err)
	}
}
