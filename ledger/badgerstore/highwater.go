package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"keep-proxy/ledger"
)

// The high-water file says up to where commands were acknowledged. It has two
// slots, written in turn, so that a torn write leaves the one before.
const (
	slotSize      = 4096
	highWaterSize = 2 * slotSize
)

// mark is the content of a slot.
type highMark struct {
	ID  string `cbor:"1,keyasint"`
	Tip tip    `cbor:"2,keyasint"`
}

var highWaterKey = []byte("highwater")

type highWater struct {
	file *os.File
	id   string
}

// slot encodes the mark as length, then sealed content.
func (m highMark) slot() ([]byte, error) {
	const length = 2
	b := bytes.NewBuffer(make([]byte, 0, 256))
	b.Write(make([]byte, length+sealSize))
	if err := encodeTo(b, &m); err != nil {
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

// readHighWater returns the newest mark of the file.
func readHighWater(path string) (highMark, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return highMark{}, fmt.Errorf("high-water file: %w", err)
	}
	if len(b) != highWaterSize {
		return highMark{}, fmt.Errorf("%w: the high-water file %s has %d bytes instead of %d",
			ledger.ErrDamaged, path, len(b), highWaterSize)
	}
	first, errFirst := parseSlot(b[:slotSize])
	second, errSecond := parseSlot(b[slotSize:])
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
	return second, nil
}

// createHighWater makes the file with both slots filled and synced.
func createHighWater(path, id string, t tip) error {
	slot, err := highMark{id, t}.slot()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("high-water file: %w", err)
	}
	b := make([]byte, highWaterSize)
	copy(b, slot)
	copy(b[slotSize:], slot)
	return errors.Join(writeSynced(path, b), syncAbove(filepath.Dir(path)))
}

func openHighWater(path, id string) (*highWater, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("high-water file: %w", err)
	}
	return &highWater{f, id}, nil
}

// write records t in the older slot and syncs.
func (h *highWater) write(t tip) error {
	slot, err := highMark{h.id, t}.slot()
	if err != nil {
		return err
	}
	if _, err := h.file.WriteAt(slot, int64(t.Commit%2)*slotSize); err != nil {
		return fmt.Errorf("high-water file: %w", err)
	}
	if err := datasync(h.file); err != nil {
		return fmt.Errorf("high-water file: sync: %w", err)
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
