package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"keep-proxy/ledger"
)

// The journal of the high-water file holds the commits after its mark: one sync makes a commit
// durable and acknowledged at once. Only then it is given to the engine, whose log is synced when
// the journal is half full. What a loss of power takes from that log is put back from here; see
// putback.go.
//
// It lies twice in the file, so that no single damage takes an acknowledged commit from it: a
// commit of which no copy is whole was never acknowledged, and can only be the last one. Each
// begins on a page of its own, which no other write touches while it counts, and starts with the
// file's key, which nobody can know who writes content into the ledger: whatever a request holds,
// a part of it is never taken for a commit.
const (
	// journalSize is the length of one copy, in bytes.
	journalSize = 2 << 20
	journalPage = 4096
	// journalKey is the length of the file's key, in bytes, and journalHead that of what
	// comes before the changes: key, length, checksum, tip, link of the commit before, number
	// of changes.
	journalKey  = 16
	journalHead = journalKey + 4 + 4 + 3*8 + 3*32 + 4
	// journalShare is the part of the journal that one commit may take; a longer one isn't
	// written there.
	journalShare = 4
)

// journaled is a commit as the journal has it.
type journaled struct {
	tip tip
	// before is the link of the commit before it.
	before  [32]byte
	changes []delta
}

var errJournal = errors.New("a commit of the journal can't be read although its checksum is right")

// appendTo appends the commit, filled up to whole pages.
func (j journaled) appendTo(b, key []byte) []byte {
	start := len(b)
	b = append(b, key...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // Length and checksum come last.
	b = binary.BigEndian.AppendUint64(b, j.tip.Commit)
	b = binary.BigEndian.AppendUint64(b, j.tip.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(j.tip.At))
	b = append(b, j.tip.Link[:]...)
	b = append(b, j.tip.Hash[:]...)
	b = append(b, j.before[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(j.changes)))
	for i := range j.changes {
		e := &j.changes[i]
		// One more than the value's length: 0 is a removal.
		b = binary.AppendUvarint(b, uint64(len(e.key)))
		if e.sealed == nil {
			b = binary.AppendUvarint(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(len(e.sealed))+1)
		}
		b = append(append(b, e.key...), e.sealed...)
	}
	record := b[start:]
	binary.BigEndian.PutUint32(record[journalKey:], uint32(len(record)))
	binary.BigEndian.PutUint32(record[journalKey+4:], journalSum(record))
	if rest := len(record) % journalPage; rest > 0 {
		b = append(b, make([]byte, journalPage-rest)...)
	}
	return b
}

// journalSum covers a commit but for its checksum.
func journalSum(record []byte) uint32 {
	sum := crc32.Update(0, castagnoli, record[:journalKey+4])
	return crc32.Update(sum, castagnoli, record[journalKey+8:])
}

// parseJournaled reads the commit at the beginning of b, with how many bytes of pages it
// takes; false if there is none, or only a part of one.
func parseJournaled(b, key []byte) (j journaled, pages int, ok bool, err error) {
	if len(b) < journalHead || !bytes.Equal(b[:journalKey], key) {
		return j, 0, false, nil
	}
	n := int(binary.BigEndian.Uint32(b[journalKey:]))
	if n < journalHead || n > len(b) {
		return j, 0, false, nil
	}
	record := b[:n]
	if binary.BigEndian.Uint32(record[journalKey+4:]) != journalSum(record) {
		return j, 0, false, nil
	}
	at := record[journalKey+8:]
	j.tip.Commit, j.tip.Seq = binary.BigEndian.Uint64(at), binary.BigEndian.Uint64(at[8:])
	j.tip.At = int64(binary.BigEndian.Uint64(at[16:]))
	at = at[24:]
	j.tip.Link, j.tip.Hash, j.before = [32]byte(at), [32]byte(at[32:]), [32]byte(at[64:])
	count := binary.BigEndian.Uint32(at[96:])
	if j.changes, ok = parseChanges(at[100:], count); !ok {
		return j, 0, false, errJournal
	}
	return j, wholePages(n), true, nil
}

// parseChanges reads count changes, which must be all of b.
func parseChanges(b []byte, count uint32) ([]delta, bool) {
	if uint64(count) > uint64(len(b)) {
		return nil, false
	}
	out := make([]delta, 0, count)
	for range count {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, false
		}
		b = b[n:]
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, false
		}
		if b = b[n:]; key > uint64(len(b)) || value > 0 && value-1 > uint64(len(b))-key {
			return nil, false
		}
		e := entry{key: b[:key:key]}
		if b = b[key:]; value > 0 {
			e.sealed = b[: value-1 : value-1]
			b = b[value-1:]
		}
		out = append(out, delta{entry: e})
	}
	return out, len(b) == 0
}

func wholePages(n int) int { return (n + journalPage - 1) / journalPage * journalPage }

// parseJournal returns the commits after the mark. That one before the last is missing can't be
// a write that was cut short; those before it are returned with the error.
func (m highMark) parseJournal(b []byte) ([]journaled, error) {
	found := map[uint64]journaled{}
	for _, half := range [][]byte{b[:m.Journal], b[m.Journal:]} {
		for len(half) >= journalPage {
			j, pages, ok, err := parseJournaled(half, m.Key)
			switch {
			case err != nil:
				return nil, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
			case !ok:
				pages = journalPage
			case j.tip.Commit > m.Tip.Commit:
				found[j.tip.Commit] = j
			}
			half = half[min(pages, len(half)):]
		}
	}
	var out []journaled
	for last := m.Tip; ; last = out[len(out)-1].tip {
		next, ok := found[last.Commit+1]
		if !ok {
			break
		}
		if next.before != last.Link {
			return out, fmt.Errorf("%w: its commit %d doesn't follow commit %d", ledger.ErrDamaged, next.tip.Commit, last.Commit)
		}
		out = append(out, next)
	}
	if len(out) < len(found) {
		return out, fmt.Errorf("%w: its commit %d is missing, and commits after that are there",
			ledger.ErrDamaged, m.Tip.Commit+uint64(len(out))+1)
	}
	return out, nil
}

// errNoRoom says that what the journal holds must be durable in the engine first.
var errNoRoom = errors.New("high-water file: its journal is full")

// take encodes the commit that append writes next. False: it is too long for the journal.
func (h *highWater) take(j journaled) (kept bool) {
	h.next, h.buffer = j.tip, j.appendTo(h.buffer[:0], h.mark.Key)
	if int64(len(h.buffer)) > h.mark.Journal/journalShare {
		h.buffer = nil
	}
	return h.kept()
}

// kept reports whether the commit that was taken isn't too long for the journal.
func (h *highWater) kept() bool { return len(h.buffer) > 0 }

// place is where the commit that was taken goes, and what is left out before it.
func (h *highWater) place() (at, skipped int64) {
	if h.at+int64(len(h.buffer)) > h.mark.Journal {
		return 0, h.mark.Journal - h.at
	}
	return h.at, 0
}

// fits reports whether there is room for the commit that was taken if so much of what was written
// to the journal can be written over.
func (h *highWater) fits(settled int64) bool {
	_, skipped := h.place()
	return h.written-settled+skipped+int64(len(h.buffer)) <= h.mark.Journal
}

// append writes the commit that was taken into both copies of the journal, and syncs. False: it is
// too long for that, and nothing was written.
func (h *highWater) append() (kept bool, err error) {
	if !h.kept() {
		return false, nil
	}
	n := int64(len(h.buffer))
	at, skipped := h.place()
	if !h.fits(h.settled) {
		return false, errNoRoom
	}
	for copies := range int64(2) {
		if _, err := h.file.WriteAt(h.buffer, marksSize+copies*h.mark.Journal+at); err != nil {
			return false, fmt.Errorf("high-water file: %w", err)
		}
	}
	if err := h.sync(); err != nil {
		return false, err
	}
	h.last, h.at, h.written = h.next, at+n, h.written+skipped+n
	if h.buffer = h.buffer[:0]; cap(h.buffer) > keptBuffer {
		h.buffer = nil
	}
	return true, nil
}

// wantsRoom says that the journal should be emptied before the next commit: it is half full.
func (h *highWater) wantsRoom() bool { return h.used() >= h.mark.Journal/2 }
