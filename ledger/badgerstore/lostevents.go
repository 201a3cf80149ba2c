package badgerstore

import (
	"errors"
	"fmt"
	"strings"

	"keep-proxy/ledger"
)

// lostKey holds the events that accepted losses took.
var lostKey = []byte{kMeta, 'l'}

// lostEvents are the events that are missing between those that are left, and before the next one, in their order.
// Nothing else may be missing: the hashes show that the events before and after them are unchanged.
type lostEvents []lostStretch

// lostStretch are events that follow one another.
type lostStretch struct {
	// First is the number of the first one, Next that of the one after the last.
	First uint64 `cbor:"1,keyasint"`
	Next  uint64 `cbor:"2,keyasint"`
	// Before is the hash of the event before the first, Last that of the last one.
	Before [32]byte `cbor:"3,keyasint"`
	Last   [32]byte `cbor:"4,keyasint"`
}

// readLost returns what accepted losses took.
func readLost(src source) (lost lostEvents, err error) {
	content, err := src.get(lostKey)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return lost, decode(lostKey, content, &lost)
}

// findLost finds the events that are missing before t. Events that can't be read are taken for
// missing here: what is wrong with them is found where they lie.
func findLost(src snapshot, t tip) (lost lostEvents, err error) {
	at := stretch{next: 1}
	r := newEvents(src)
	defer r.close()
	found := func(s stretch) {
		// Two of one number are no loss: verifying says what is wrong there.
		if s.first >= at.next && !at.join(s) {
			lost = append(lost, lostStretch{at.next, s.first, at.last, s.before})
			at = s
		}
	}
	src.each([]byte{kEvents}, func(k []byte) bool {
		content, broken := src.get(k)
		var before [32]byte
		if broken == nil {
			before, broken = r.take(k, content)
		}
		if broken == nil {
			found(stretchOf(r.first, before, r.block))
		} else if !errors.Is(broken, ledger.ErrDamaged) {
			err = broken
		}
		return err == nil
	})
	if at.next <= t.Seq {
		found(stretch{t.Seq + 1, t.Seq + 1, t.Hash, t.Hash})
	}
	return lost, err
}

// holds reports whether the event of this number was lost.
func (l lostEvents) holds(seq uint64) bool {
	for _, s := range l {
		if s.First <= seq && seq < s.Next {
			return true
		}
	}
	return false
}

// after moves s behind the next stretch, if that begins where s ends, and returns those that
// are left.
func (l lostEvents) after(s *stretch) lostEvents {
	if len(l) > 0 && l[0].First == s.next && l[0].Before == s.last {
		s.next, s.last = l[0].Next, l[0].Last
		return l[1:]
	}
	return l
}

// count is how many events they are.
func (l lostEvents) count() (n uint64) {
	for _, s := range l {
		n += s.Next - s.First
	}
	return n
}

// String names them for the event that says who accepted the loss.
func (l lostEvents) String() string {
	var names []string
	for _, s := range l {
		if s.First == s.Next {
			continue // One that can't be read lies there.
		}
		names = append(names, fmt.Sprintf("%d to %d", s.First, s.Next-1))
	}
	return strings.Join(names, ", ")
}
