package badgerstore

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// within fails the test if fn doesn't end.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Errorf("%s waits for a commit", what)
	}
}

func later(m *ledger.Mutation) *ledger.Mutation {
	next := m.Clone()
	next.Version, next.Target = m.Version+1, "changed"
	return next
}

func TestABodyIsReadWhileACommitIsSynced(t *testing.T) {
	t.Parallel()
	first := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	var old, recent ledger.Body
	var s *Store
	read := func(b ledger.Body) string {
		r, err := s.Body(t.Context(), b)
		if err != nil {
			t.Error(err)
			return ""
		}
		content, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			t.Error(err)
		}
		return string(content)
	}
	c := testConfig(t.TempDir())
	var armed atomic.Bool
	newer := make(chan string, 1)
	c.synced = func(string) error {
		if armed.CompareAndSwap(true, false) {
			within(t, "a body's reader", func() {
				if a := read(old); a != "old" {
					t.Errorf("read %q", a)
				}
			})
			// The newer one is found, too, once it is durable.
			go func() { newer <- read(recent) }()
		}
		return nil
	}
	s = mustOpen(t, c)
	err := s.do(t.Context(), func(tx *tx) (err error) {
		old, err = tx.PutBody([]byte("old"))
		return errors.Join(err, putting(first)(tx))
	})
	if err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	err = s.do(t.Context(), func(tx *tx) (err error) {
		recent, err = tx.PutBody([]byte("recent"))
		return err
	})
	if err != nil || armed.Load() {
		t.Fatalf("nothing was synced: %v", err)
	}
	if b := <-newer; b != "recent" {
		t.Errorf("read %q", b)
	}
}

// A snapshot is shared by its readers, and goes with the last of them.
func TestASnapshotOutlivesTheNextOneForItsReaders(t *testing.T) {
	t.Parallel()
	first := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	s := mustOpen(t, testConfig(t.TempDir()))
	if err := s.do(t.Context(), putting(first)); err != nil {
		t.Fatal(err)
	}
	allGiven(t, s)
	own, other := s.newest.take(), s.newest.take()
	if own != other || own.users != 3 {
		t.Errorf("%d share it, want two readers and the store", own.users)
	}
	if err := s.do(t.Context(), putting(later(first))); err != nil {
		t.Fatal(err)
	}
	allGiven(t, s)
	s.newest.give(other)
	if m, err := (&view{src: own}).Mutation(first.Key); err != nil || m.Version != 1 {
		t.Errorf("a reader sees %+v, %v after a commit, want version 1 still", m, err)
	}
	if own.users != 1 {
		t.Errorf("%d readers are left, want 1", own.users)
	}
	s.newest.give(own)
	if _, err := own.get(mutationKey(first.Key)); err == nil {
		t.Error("the snapshot is open still without readers")
	}
	if s.newest.is.users != 1 {
		t.Errorf("the newest snapshot has %d users, want the store alone", s.newest.is.users)
	}
}

// Nobody knows whether what was written before a sync failed is kept.
func TestWhoReadsAfterAFailedSyncIsRefused(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	var fails atomic.Bool
	c.synced = func(string) error {
		if fails.Load() {
			return errors.New("broken disk")
		}
		return nil
	}
	s := mustOpen(t, c)
	fails.Store(true)
	if err := s.do(t.Context(), putting(ledgertest.SampleMutation("a", ledger.InFlight, 0))); !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("a commit that can't be synced: %v", err)
	}
	if err := s.View(t.Context(), func(ledger.View) error { return nil }); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("%v, want %v", err, ledger.ErrUnavailable)
	}
}

func TestWhoIsGoneDoesNotRead(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.View(ctx, func(ledger.View) error {
		t.Error("it reads for nobody")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

func TestDamageThatIsReadByACommandStopsTheStore(t *testing.T) {
	t.Parallel()
	s := mustOpenOnly(t, testConfig(t.TempDir()))
	a, b := ledgertest.SampleMutation("a", ledger.Applied, 0), ledgertest.SampleMutation("b", ledger.Applied, 0)
	k := a.Key
	err := errors.Join(s.do(t.Context(), putting(a)), s.do(t.Context(), putting(b)), s.do(t.Context(), func(tx *tx) error {
		// As if blocks had changed places.
		sealed, err := tx.layer.raw(mutationKey(b.Key))
		tx.layer.set(mutationKey(k), sealed)
		s.mutations.drop(k) // Or it wouldn't be read.
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(v ledger.Tx) error {
		_, err := v.Mutation(k)
		return err
	})
	if !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
	if err := s.Healthy(); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("afterwards the store says %v, want ErrUnavailable", err)
	}
}
