package badgerstore

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func TestASlabGivesMemoryOnceUntilItIsReset(t *testing.T) {
	t.Parallel()
	var s slab
	for range 2 {
		var given [][]byte
		// More than it keeps, of lengths that don't fit a piece evenly.
		for n := 0; n < slabPiece*(slabKept+2); {
			b := s.take(len(given)%700 + 1)
			if cap(b) != len(b) {
				t.Fatalf("%d bytes with room for %d: what is appended would be another's", len(b), cap(b))
			}
			for i := range b {
				b[i] = byte(len(given))
			}
			given = append(given, b)
			n += len(b)
		}
		for n, b := range given {
			if want := bytes.Repeat([]byte{byte(n)}, len(b)); !bytes.Equal(b, want) {
				t.Fatalf("piece %d was given away again", n)
			}
		}
		first := &given[0][0]
		if s.reset(); len(s.pieces) != slabKept {
			t.Errorf("%d pieces are kept, want %d", len(s.pieces), slabKept)
		}
		if again := s.clone([]byte("a")); &again[0] != first || again[0] != 'a' {
			t.Error("what was taken back isn't used again")
		}
		s.reset()
	}
}

func TestASlabHasNoRoomForWhatIsLong(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte{1}, slabPiece)
	for _, s := range []*slab{new(slab), nil} {
		if b := s.clone(long); !bytes.Equal(b, long) || &b[0] == &long[0] {
			t.Error("no copy")
		}
		if k := s.key(kMutation, []byte("a"), long); !bytes.Equal(k, key(kMutation, []byte("a"), long)) {
			t.Error("another key")
		}
		if s != nil && len(s.pieces) > 0 {
			t.Errorf("%d pieces", len(s.pieces))
		}
	}
	var none *slab
	if b := none.take(3); len(b) != 3 {
		t.Errorf("%d bytes, want 3", len(b))
	}
	if k, want := new(slab).key(kDelivery, []byte("run"), []byte("key")), key(kDelivery, []byte("run"), []byte("key")); !bytes.Equal(k, want) {
		t.Errorf("%q, want %q", k, want)
	}
}

// TestABatchInFlightKeepsItsMemory holds a batch back once the journal has it, and before the
// engine does, and has commands write over all the memory that they are given meanwhile: what
// they read of that batch, and what the engine gets of it, is what was acknowledged.
func TestABatchInFlightKeepsItsMemory(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.stall = time.Hour
	var armed atomic.Bool
	held, goOn := make(chan struct{}), make(chan struct{})
	c.synced = func(path string) error {
		if path == c.highWaterPath() && armed.CompareAndSwap(true, false) {
			close(held)
			<-goOn
		}
		return nil
	}
	s := mustOpen(t, c)
	do := func(fn func(*tx) error) <-chan error {
		done := make(chan error, 1)
		go func() { done <- s.do(t.Context(), fn) }()
		return done
	}
	// The batches before it have used the memory of both.
	fill(t, s, 0, 4, 10)
	var first uint64
	armed.Store(true)
	m := ledgertest.SampleMutation("held", ledger.InFlight, 0)
	one := do(func(tx *tx) error {
		first = tx.batch.number
		tx.Append(ledger.Event{What: "claim", Mutation: m.ID})
		return tx.PutMutation(m)
	})
	<-held
	var before []entry
	over := func(fill byte) func(*tx) error {
		return func(tx *tx) error {
			if tx.batch.number != first+1 {
				t.Errorf("batch %d is begun while batch %d isn't over", tx.batch.number, first)
			}
			// What changed before is kept away from the slabs here.
			if before == nil {
				for _, e := range s.changed.before.list {
					before = append(before, entry{bytes.Clone(e.key), bytes.Clone(e.sealed)})
				}
			}
			for n := range slabPiece * slabKept / 1024 {
				if _, err := tx.PutBody(append(bytes.Repeat([]byte{fill}, 1024), byte(n), byte(n>>8))); err != nil {
					return err
				}
			}
			for _, e := range before {
				if sealed, ok := s.changed.value(e.key); !ok || !bytes.Equal(sealed, e.sealed) {
					t.Errorf("a command that comes meanwhile doesn't read %q as it is", e.key)
				}
			}
			return nil
		}
	}
	// Only once the first is evaluated, so that the second may come into the batch after.
	evaluated := make(chan struct{})
	two := do(func(tx *tx) error {
		defer close(evaluated)
		return over(1)(tx)
	})
	<-evaluated
	evaluatedToo := make(chan struct{})
	three := do(func(tx *tx) error {
		defer close(evaluatedToo)
		return over(2)(tx)
	})
	<-evaluatedToo
	close(goOn)
	for _, done := range []<-chan error{one, two, three} {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if len(before) < 3 {
		t.Errorf("%d changes in flight: this shows nothing", len(before))
	}
	if err := s.snapshot(func(src snapshot) error {
		for _, e := range before {
			sealed, err := src.raw(e.key)
			if e.sealed == nil && errors.Is(err, ledger.ErrNotFound) {
				continue
			}
			if err != nil || !bytes.Equal(sealed, e.sealed) {
				t.Errorf("the engine has something else of %q: %v", e.key, err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
