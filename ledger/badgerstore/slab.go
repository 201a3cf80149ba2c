package badgerstore

import (
	"bytes"
	"cmp"
)

// slab is memory for what the engine is given of a batch: it copies keys and values into its
// log and its table, and keeps none of them once the batch is written. So the next batch
// writes over them. What outlives the batch, such as the index keys of a record on a shelf,
// must not lie here. A nil slab gives each its own memory.
type slab struct {
	pieces [][]byte
	// used is how many of them are given away, free what is left of the last of those.
	used int
	free []byte
	// kept is how many pieces are kept for the next time, 0 for slabKept.
	kept int
}

const (
	// slabPiece is how much memory is got at once, in bytes; what is longer than an eighth
	// of it has its own.
	slabPiece = 32 << 10
	// slabKept is how many pieces are kept of a batch for the next one.
	slabKept = 8
)

// take returns n bytes with any content.
func (s *slab) take(n int) []byte {
	if s == nil || n > slabPiece/8 {
		return make([]byte, n)
	}
	if n > len(s.free) {
		if s.used == len(s.pieces) {
			s.pieces = append(s.pieces, make([]byte, slabPiece))
		}
		s.free = s.pieces[s.used]
		s.used++
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// clone returns a copy of b.
func (s *slab) clone(b []byte) []byte {
	if s == nil || len(b) > slabPiece/8 {
		return bytes.Clone(b)
	}
	out := s.take(len(b))
	copy(out, b)
	return out
}

// key is a key, as key makes it.
func (s *slab) key(kind byte, parts ...[]byte) []byte {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	k := s.take(n)[:0]
	k = append(k, kind)
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

// reset takes all of it back. Nobody may need any of it still.
func (s *slab) reset() {
	if kept := cmp.Or(s.kept, slabKept); len(s.pieces) > kept {
		clear(s.pieces[kept:])
		s.pieces = s.pieces[:kept]
	}
	s.used, s.free = 0, nil
}
