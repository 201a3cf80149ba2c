package badgerstore

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"keep-proxy/ledger"
)

// The high-water file says up to where commands were acknowledged: up to its mark, and then
// as far as its journal goes. All up to the mark is durable in the engine; see journal.go for
// what comes after. The mark stands in two slots, so that a torn write of one leaves the other.
const (
	slotSize = 4096
	// marksSize is the length of both slots.
	marksSize = 2 * slotSize
)

// highMark is the content of a slot.
type highMark struct {
	ID  string `cbor:"1,keyasint"`
	Tip tip    `cbor:"2,keyasint"`
	// Key begins each commit of the journal, and Journal is the length of either copy of
	// it, in bytes.
	Key     []byte `cbor:"3,keyasint,omitempty"`
	Journal int64  `cbor:"4,keyasint,omitempty"`
	// Epoch names the start of a process that wrote the mark. Before names the start before it that the data know:
	// the mark is synced before the first commit of its epoch.
	Epoch  string `cbor:"5,keyasint,omitempty"`
	Before string `cbor:"6,keyasint,omitempty"`
}

// size is how long the file is.
func (m highMark) size() int64 { return marksSize + 2*m.Journal }

var highWaterKey = []byte("highwater")

// slot encodes the mark as length, then sealed content.
func (m highMark) slot() ([]byte, error) {
	const length = 2
	b := bytes.NewBuffer(make([]byte, 0, 256))
	b.Write(make([]byte, length+sealSize))
	if err := encode(b, &m); err != nil {
		return nil, err
	}
	slot := b.Bytes()
	if len(slot) > slotSize {
		return nil, errors.New("high-water mark: the ledger's id is too long")
	}
	binary.BigEndian.PutUint16(slot, uint16(len(slot)-length))
	sealIn(highWaterKey, slot[length:], 0)
	return slot, nil
}

func parseSlot(b []byte) (highMark, error) {
	var m highMark
	n := int(binary.BigEndian.Uint16(b))
	if n == 0 || n+2 > len(b) {
		return m, damaged(highWaterKey, "a slot is cut")
	}
	content, _, err := unseal(highWaterKey, b[2:2+n])
	if err != nil {
		return m, err
	}
	return m, decode(highWaterKey, content, &m)
}

// parseMarks returns the newer of both marks.
func parseMarks(path string, b []byte) (highMark, error) {
	if len(b) < marksSize {
		return highMark{}, fmt.Errorf("%w: the high-water file %s has %d bytes, of which the marks alone take %d",
			ledger.ErrDamaged, path, len(b), marksSize)
	}
	first, errFirst := parseSlot(b[:slotSize])
	second, errSecond := parseSlot(b[slotSize:marksSize])
	switch {
	case errFirst != nil && errSecond != nil:
		return highMark{}, fmt.Errorf("high-water file %s: %w", path, errFirst)
	case errors.Is(errFirst, ledger.ErrFormat):
		return highMark{}, errFirst
	case errors.Is(errSecond, ledger.ErrFormat):
		return highMark{}, errSecond
	case errFirst == nil && (errSecond != nil || first.Tip.Commit > second.Tip.Commit):
		second = first
	}
	if second.Journal <= 0 || second.size() != int64(len(b)) {
		return highMark{}, fmt.Errorf("%w: the high-water file %s has %d bytes instead of %d",
			ledger.ErrDamaged, path, len(b), second.size())
	}
	return second, nil
}

// acknowledged is what a high-water file says.
type acknowledged struct {
	// mark is up to where the engine has all, whatever happens to its logs.
	mark highMark
	// after are the commits since, in their order.
	after []journaled
}

// tip is up to where commands were acknowledged.
func (a acknowledged) tip() tip {
	if n := len(a.after); n > 0 {
		return a.after[n-1].tip
	}
	return a.mark.Tip
}

// same reports whether both say the same.
func (a acknowledged) same(b acknowledged) bool {
	return a.mark.ID == b.mark.ID && a.mark.Epoch == b.mark.Epoch && a.tip() == b.tip()
}

// readHighWater reads the file. Of one whose journal has a hole it returns what is before that
// with the error.
func readHighWater(path string) (acknowledged, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return acknowledged{}, fmt.Errorf("high-water file: %w", err)
	}
	return parseHighWater(path, b)
}

func parseHighWater(path string, b []byte) (acknowledged, error) {
	m, err := parseMarks(path, b)
	if err != nil {
		return acknowledged{}, err
	}
	after, err := m.parseJournal(b[marksSize:])
	if err != nil {
		return acknowledged{m, after}, fmt.Errorf("high-water file %s: %w", path, err)
	}
	return acknowledged{m, after}, nil
}

// createHighWater makes the file with both marks and an empty journal, synced.
func createHighWater(c Config, id, epoch string, t tip) error {
	m := highMark{ID: id, Epoch: epoch, Tip: t, Key: make([]byte, journalKey), Journal: c.journalSize()}
	_, _ = rand.Read(m.Key) // It never fails.
	slot, err := m.slot()
	if err != nil {
		return err
	}
	b := make([]byte, m.size())
	copy(b, slot)
	copy(b[slotSize:], slot)
	return placeHighWater(c, b)
}

// placeHighWater puts the content of a high-water file where it belongs.
func placeHighWater(c Config, b []byte) error {
	path := c.highWaterPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("high-water file: %w", err)
	}
	return errors.Join(writeSynced(path, b), syncAbove(filepath.Dir(path)))
}

// highWater is the file of an open ledger.
type highWater struct {
	file *os.File
	mark highMark
	// last is the last commit that is durable here.
	last tip
	// at is where the next commit goes in the journal; written is how much was written there
	// since the file was opened, and settled how much of that up to the mark, in bytes.
	at, written, settled int64
	// buffer is the commit that is written next, empty for one that is too long; next is its tip.
	buffer []byte
	next   tip
	// synced is Config.synced.
	synced func(path string) error
}

// sync makes durable what was written.
func (h *highWater) sync() error {
	err := datasync(h.file)
	if err == nil && h.synced != nil {
		err = h.synced(h.file.Name())
	}
	if err != nil {
		return fmt.Errorf("high-water file: sync: %w", err)
	}
	return nil
}

// openHighWater opens the file of a ledger that ends at t, all of which is durable in the
// engine. A new epoch begins with its mark.
func openHighWater(c Config, t tip, epoch, before string) (*highWater, error) {
	a, err := readHighWater(c.highWaterPath())
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.highWaterPath(), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("high-water file: %w", err)
	}
	h := &highWater{file: f, mark: a.mark, synced: c.synced}
	h.mark.Epoch, h.mark.Before = epoch, before
	if err := h.settle(journalEnd{tip: t}); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return h, nil
}

// used is how much of the journal holds what came after the mark, in bytes.
func (h *highWater) used() int64 { return h.written - h.settled }

// end is the end of the last commit that is durable here.
func (h *highWater) end() journalEnd { return journalEnd{h.last, h.written} }

// settle notes that all up to end is durable in the engine, so that the journal before that can be
// written over. It returns when both marks say so: one that is damaged later leaves the other.
func (h *highWater) settle(end journalEnd) error {
	m := h.mark
	m.Tip = end.tip
	slot, err := m.slot()
	if err != nil {
		return err
	}
	for n := range int64(2) {
		if _, err := h.file.WriteAt(slot, n*slotSize); err != nil {
			return fmt.Errorf("high-water file: %w", err)
		}
		if err := h.sync(); err != nil {
			return err
		}
	}
	h.mark, h.settled = m, end.written
	if end.tip.Commit > h.last.Commit {
		h.last = end.tip
	}
	return nil
}

func (h *highWater) close() error { return h.file.Close() }

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
