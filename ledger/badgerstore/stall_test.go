package badgerstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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
	// Not before: opening and filling may take long on a busy machine.
	s.config.stall = 100 * time.Millisecond
	close(armed)
	return s, end
}

func TestSyncThatHangsStopsTheLedger(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	s, end := hangs(t)
	m := ledgertest.SampleMutation("hangs", ledger.Indeterminate, 0)
	put := func(tx ledger.Tx) error { return tx.PutMutation(m) }
	err := s.Update(context.Background(), put)
	if !errors.Is(err, ledger.ErrUnavailable) || !errors.Is(err, errHangs) {
		t.Errorf("the command whose sync hangs: %v", err)
	}
	if blockers, err := s.BlockersOf("refunds"); err != nil || len(blockers) != 0 {
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
	if err := s.Close(); err != nil {
		t.Errorf("a sync that ended after all keeps the ledger from being closed: %v", err)
	}
	// The record may be there or not; what was acknowledged before is, and all is sound.
	s.config.stall, s.config.synced = 0, nil
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
	s.config.stall = 100 * time.Millisecond
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
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.config.stall = 0
	page, err := mustOpen(t, s.config).Mutations(t.Context(), ledger.Filter{})
	if err != nil || len(page.Items) != len(keys) {
		t.Errorf("%d records, %v: what was told to be unknown was committed later", len(page.Items), err)
	}
}

func TestClosingDoesNotWaitForADiskThatHangs(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
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
	if err := s.release(); err != nil {
		t.Error(err)
	}
}
