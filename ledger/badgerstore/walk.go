package badgerstore

import (
	"bytes"
	"encoding/binary"
)

// walk merges indexes whose keys are a prefix and a mark, newest first.
type walk struct {
	legs []*cursor
}

// newWalk begins after (that is, below) the mark from, or at the newest if nil.
func newWalk(src snapshot, prefixes [][]byte, from []byte) *walk {
	w := &walk{}
	for _, p := range prefixes {
		c := src.cursor(p, true)
		start := from
		if start == nil {
			start = bytes.Repeat([]byte{0xff}, markSize)
		}
		c.seek(append(bytes.Clone(p), start...))
		if from != nil && bytes.Equal(c.mark(), from) {
			c.next()
		}
		w.legs = append(w.legs, c)
	}
	return w
}

// mark is what follows the prefix where the cursor stands, nil at its end. It is valid until the next step.
func (c *cursor) mark() []byte {
	if !c.valid() {
		return nil
	}
	return c.key()[len(c.prefix):]
}

// next returns a copy of the greatest mark and steps on, nil at the end.
func (w *walk) next() []byte {
	var best *cursor
	for _, c := range w.legs {
		if m := c.mark(); m != nil && (best == nil || bytes.Compare(m, best.mark()) > 0) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	m := bytes.Clone(best.mark())
	best.next()
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
	for _, c := range w.legs {
		if m := c.mark(); m != nil && binary.BigEndian.Uint64(m) >= nanos {
			c.seek(binary.BigEndian.AppendUint64(bytes.Clone(c.prefix), nanos))
		}
	}
}

func (w *walk) close() {
	for _, c := range w.legs {
		c.close()
	}
}
