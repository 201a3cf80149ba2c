package badgerstore

import (
	"encoding/binary"
	"errors"
	"slices"
)

// history lists the events of one mutation, ascending: each number as the distance from the one before. It lies
// with the record, so an event that comes with a change of it needs no index entry. Other events have one
// (xHistory), and so have those of a full history.
type history []byte

// fullHistory is the length from which on a history takes no more, in bytes.
const fullHistory = 128

var errHistory = errors.New("the history is malformed")

// with returns h and one more event; false if h is full.
func (h history) with(seq uint64) (history, bool) {
	if len(h) >= fullHistory {
		return h, false
	}
	last, err := h.last()
	if err != nil {
		return h, false
	}
	if seq <= last {
		return h, false
	}
	// The old one may be another record's still.
	return binary.AppendUvarint(slices.Clip(h), seq-last), true
}

// seqs returns the events' numbers.
func (h history) seqs() ([]uint64, error) {
	var out []uint64
	var last uint64
	for len(h) > 0 {
		step, n := binary.Uvarint(h)
		if n <= 0 || step == 0 || last+step < last {
			return nil, errHistory
		}
		last += step
		out = append(out, last)
		h = h[n:]
	}
	return out, nil
}

// last returns the newest event's number, 0 for none.
func (h history) last() (seq uint64, err error) {
	for len(h) > 0 {
		step, n := binary.Uvarint(h)
		if n <= 0 || step == 0 || seq+step < seq {
			return 0, errHistory
		}
		seq, h = seq+step, h[n:]
	}
	return seq, nil
}
