package badgerstore

import (
	"bytes"
	"testing"
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
