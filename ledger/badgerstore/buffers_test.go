package badgerstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/dgraph-io/ristretto/v2/z"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// grownBuffers leaves the engine two buffers that a memory table was written with, and one
// that was larger from the start.
func grownBuffers(t *testing.T, s *Store) tableBuffers {
	t.Helper()
	b := tableBuffersOf(s.db)
	if b.pool == nil {
		t.Fatal("the engine keeps its buffers elsewhere than it did: they have to be found anew, or are no trouble any more")
	}
	for range 2 {
		a := z.NewAllocator(buffer, "")
		for range 3 * buffer / blockSize {
			a.Allocate(blockSize)
		}
		if a.Allocated() <= 3*buffer-blockSize {
			t.Fatal("a buffer doesn't grow")
		}
		b.pool.Return(a)
	}
	b.pool.Return(z.NewAllocator(4*buffer, ""))
	return b
}

func TestBuffersDontStayAsLargeAsTheyHaveGrown(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, testConfig(t.TempDir()))
	b := grownBuffers(t, s)
	fill(t, s, 0, 3, 1000<<10)
	for _, a := range b.take() {
		if a.Allocated() != buffer {
			t.Errorf("after %d bytes were written, a buffer of %d is kept, want %d", s.written, a.Allocated(), buffer)
		}
		for range 2 * buffer / blockSize {
			if n := len(a.Allocate(blockSize)); n != blockSize {
				t.Errorf("a buffer that was trimmed gave %d bytes", n)
			}
		}
	}
}

func TestNoBuffersStayWhileTheStoreRests(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.calm = time.Nanosecond
	s := mustOpen(t, c)
	b := grownBuffers(t, s)
	for n := 0; ; n++ {
		if err := s.Update(t.Context(), func(tx ledger.Tx) error {
			return tx.PutItem(ledgertest.SampleItem(fmt.Sprint("item-", n), n))
		}); err != nil {
			t.Fatal(err)
		}
		left := b.take()
		if len(left) == 0 {
			return
		}
		for _, a := range left {
			b.pool.Return(a)
		}
	}
}

// An engine that names them otherwise only keeps what it has.
func TestUnknownBuffersAreLeftAlone(t *testing.T) {
	t.Parallel()
	var b tableBuffers
	b.trim(2 * trimEvery)
	b.drop()
}
