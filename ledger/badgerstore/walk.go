package badgerstore

import (
	"bytes"
	"encoding/binary"

	badger "github.com/dgraph-io/badger/v4"
)

// walk merges indexes whose keys are a prefix and a mark, newest first.
type walk struct {
	legs []leg
}

type leg struct {
	it     *badger.Iterator
	prefix []byte
}

// newWalk begins after (that is, below) the mark from, or at the newest if nil.
func newWalk(src snapshot, prefixes [][]byte, from []byte) *walk {
	w := &walk{}
	for _, p := range prefixes {
		it := src.txn.NewIterator(badger.IteratorOptions{Reverse: true, Prefix: p})
		start := from
		if start == nil {
			start = bytes.Repeat([]byte{0xff}, markSize)
		}
		it.Seek(append(bytes.Clone(p), start...))
		l := leg{it, p}
		if from != nil && bytes.Equal(l.mark(), from) {
			it.Next()
		}
		w.legs = append(w.legs, l)
	}
	return w
}

// mark is where the leg stands, nil at its end. It is valid until the next step.
func (l leg) mark() []byte {
	if !l.it.ValidForPrefix(l.prefix) {
		return nil
	}
	return l.it.Item().Key()[len(l.prefix):]
}

// next returns a copy of the greatest mark and steps on, nil at the end.
func (w *walk) next() []byte {
	best := -1
	for i, l := range w.legs {
		if m := l.mark(); m != nil && (best < 0 || bytes.Compare(m, w.legs[best].mark()) > 0) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	m := bytes.Clone(w.legs[best].mark())
	w.legs[best].it.Next()
	return m
}

// nextIn is next among the records in windows.
func (w *walk) nextIn(within windows) []byte {
	for {
		m := w.next()
		if m == nil {
			return nil
		}
		ok, below := within.holds(binary.BigEndian.Uint64(m))
		switch {
		case ok:
			return m
		case below == 0:
			return nil
		}
		w.below(below)
	}
}

// below steps on to what is older than nanos; what is there already stays.
func (w *walk) below(nanos uint64) {
	for _, l := range w.legs {
		if m := l.mark(); m != nil && binary.BigEndian.Uint64(m) >= nanos {
			l.it.Seek(binary.BigEndian.AppendUint64(bytes.Clone(l.prefix), nanos))
		}
	}
}

func (w *walk) close() {
	for _, l := range w.legs {
		l.it.Close()
	}
}
