package badgerstore

import (
	"cmp"
	"slices"
)

// chain collects how events follow one another, as they are seen: in stretches, in any
// order.
type chain struct {
	runs []stretch
	// cut says that the next events begin a stretch.
	cut bool
}

// stretch are events of which each follows the one before it.
type stretch struct {
	// first is the number of the first one, next that of the one after the last.
	first, next uint64
	// before is the hash of the event before the first, last that of the last one.
	before, last [32]byte
}

// add takes up the events of one commit, which were read whole.
func (c *chain) add(first uint64, before [32]byte, block []chained) {
	s := stretchOf(first, before, block)
	if n := len(c.runs); n > 0 && !c.cut && c.runs[n-1].join(s) {
		return
	}
	c.runs, c.cut = append(c.runs, s), false
}

// stretchOf are the events of one commit.
func stretchOf(first uint64, before [32]byte, block []chained) stretch {
	s := stretch{first: first, next: first + uint64(len(block)), before: before, last: before}
	if len(block) > 0 {
		s.last = block[len(block)-1].hash
	}
	return s
}

// join puts o at the end of s; false if it doesn't follow.
func (s *stretch) join(o stretch) bool {
	if o.first != s.next || o.before != s.last {
		return false
	}
	s.next, s.last = o.next, o.last
	return true
}

// leads reports whether the events are those after from up to to, each after the one
// before it, but for all that was lost, and no others.
func (c *chain) leads(from, to tip, lost lostEvents) bool {
	slices.SortFunc(c.runs, func(a, b stretch) int { return cmp.Compare(a.first, b.first) })
	all := stretch{next: from.Seq + 1, last: from.Hash}
	for _, s := range c.runs {
		lost = lost.after(&all)
		if !all.join(s) {
			return false
		}
	}
	lost = lost.after(&all)
	return len(lost) == 0 && all.next == to.Seq+1 && all.last == to.Hash
}
