package badgerstore

import (
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// others lets other goroutines come to where they wait.
func others() {
	for range 1000 {
		runtime.Gosched()
	}
}

// reachesEngine waits until the engine has k.
func reachesEngine(s *Store, k []byte) {
	for inEngine(s, func(src snapshot) error { _, err := src.get(k); return err }) != nil {
		runtime.Gosched()
	}
}

// What has left the backlog lies in the newest snapshot, so that who looks here first, then there,
// finds it.
func TestAParcelLeavesAfterTheSnapshotIsRenewed(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	allGiven(t, s)
	m := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	if err := s.do(t.Context(), putting(m)); err != nil {
		t.Fatal(err)
	}
	s.newest.mu.Lock() // It can't be renewed.
	s.giving.want(s.horizon.durable.Load(), false)
	reachesEngine(s, mutationKey(m.Key))
	others()
	if _, ok := s.backlog.value(mutationKey(m.Key)); !ok {
		t.Error("it is neither in the backlog nor in the newest snapshot")
	}
	s.newest.mu.Unlock()
	allGiven(t, s)
}

// What leaves the backlog before a batch looks into it must be in the snapshot that the batch takes.
func TestABatchLooksIntoTheBacklogBeforeItTakesItsSnapshot(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	allGiven(t, s)
	k := numbered(kPending, 1<<41)
	begun := make(chan *batch)
	s.backlog.mu.Lock() // It can't look.
	go func() { begun <- s.begin() }()
	others()
	if err := s.db.Update(func(txn *badger.Txn) error { return txn.Set(k, seal(k, []byte("v"), 0)) }); err != nil {
		t.Fatal(err)
	}
	s.newest.renew(s.db.NewTransaction(false))()
	s.backlog.mu.Unlock()
	b := <-begun
	if _, err := b.base.get(k); err != nil {
		t.Errorf("the batch lacks what has left the backlog: %v", err)
	}
	s.end(b)
	if err := s.db.Update(func(txn *badger.Txn) error { return txn.Delete(k) }); err != nil {
		t.Fatal(err)
	}
}

// engineLock is what the engine's writer takes for each transaction.
func engineLock(s *Store) *sync.RWMutex {
	return (*sync.RWMutex)(unsafe.Pointer(reflect.ValueOf(s.db).Elem().FieldByName("lock").UnsafeAddr()))
}

// The engine may take long over a parcel, such as while it merges tables.
func TestCommitsGoOnWhileTheEngineTakesAParcel(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	fill(t, s, 0, 3, 10)
	lock := engineLock(s)
	lock.RLock()
	s.giving.want(s.horizon.durable.Load(), false)
	for lock.TryRLock() { // Until the engine wants to write.
		lock.RUnlock()
		runtime.Gosched()
	}
	answered := make(chan error, 1)
	go func() {
		answered <- s.Update(t.Context(), func(tx ledger.Tx) error {
			tx.Append(ledger.Event{What: "meanwhile"})
			return nil
		})
	}()
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a command waits for the engine")
	}
	lock.RUnlock()
}

// Commits of more than the engine takes at once wait for it.
func TestAParcelOfManySmallChangesIsNotTooLarge(t *testing.T) {
	t.Parallel()
	const commits, changes = 8, 3000
	c := testConfig(t.TempDir())
	h := newHeldLog(&c)
	s := mustOpenOnly(t, c) // What it holds are no deliveries.
	fill(t, s, 0, 3, 10)
	h.arm()
	s.giving.want(s.horizon.durable.Load(), true)
	<-h.begun
	done := make(chan error, 1)
	go func() {
		var err error
		for n := uint64(0); n < commits && err == nil; n++ {
			err = s.do(t.Context(), func(tx *tx) error {
				for i := range uint64(changes) {
					if err := tx.layer.put(numbered(kDelivery, n*changes+i), []byte("v")); err != nil {
						return err
					}
				}
				return nil
			})
		}
		done <- err
	}()
	for s.backlog.takes(changes * entryOverhead) {
		runtime.Gosched()
	}
	others()
	h.letGo()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A log whose syncs take long, each less than what counts as hanging, stops nothing: who waits for
// several of them waits for a disk that answers.
func TestASlowLogIsNoHang(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	const stall = 6 * time.Second
	c := testConfig(t.TempDir())
	c.journal = 64 << 10
	var armed atomic.Bool
	c.synced = func(path string) error {
		if filepath.Ext(path) == logSuffix && armed.Load() {
			<-time.After(stall * 55 / 100) // Two of them last longer than what counts as hanging.
		}
		return nil
	}
	s := mustOpen(t, c)
	fill(t, s, 0, 1, 10)
	s.stallsAfter(stall)
	armed.Store(true)
	fill(t, s, 1, 24, 10)
	armed.Store(false)
}
