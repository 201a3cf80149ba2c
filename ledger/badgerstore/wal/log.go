package wal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// File is where a log lies. Allocate gives it a length, Sync returns once all that was written is durable.
type File interface {
	io.ReaderAt
	io.WriterAt
	Allocate(size int64) error
	Sync() error
	Close() error
}

// ErrDamaged says that the file isn't what this package wrote; ErrFull, that no room is free for a frame.
var (
	ErrDamaged = errors.New("the log is damaged")
	ErrFull    = errors.New("the log is full")
)

// magic begins the file; its last byte is the format.
const magic = "keep-log\x01"

const (
	// begin is the length of both first pages.
	begin = 2 * page
	// chunk is how much of the ring is filled with zeros at once, before its first frame is written there. File
	// systems sync what was written before in half of the time.
	chunk = 1 << 20
)

// Log is an open log. It is used by one goroutine at a time.
type Log struct {
	file File
	key  []byte
	// size is the length of the ring, in bytes.
	size int64
	// after is the number before that of the first frame.
	after uint64
	// live are the frames that must stay, oldest first. The last one is always there.
	live []placed
	// next is where the next frame goes, unless the ring ends before. The ring was written before up to filled.
	next, filled int64
	// failed is the first failed write or sync.
	failed error
}

// Create fills an empty file with a log of size bytes, and syncs it. Its first frame will have the number
// that follows after.
func Create(f File, size int64, after uint64) error {
	if size%page != 0 || size < begin+16*page {
		return fmt.Errorf("a log of %d bytes: want whole pages of %d, at least 18", size, page)
	}
	first := make([]byte, page)
	at := copy(first, magic)
	_, _ = rand.Read(first[at : at+keySize]) // It never fails.
	binary.BigEndian.PutUint64(first[at+keySize:], uint64(size))
	binary.BigEndian.PutUint64(first[at+keySize+8:], after)
	sum := sha256.Sum256(first[:at+keySize+16])
	copy(first[at+keySize+16:], sum[:])
	if err := f.Allocate(size); err != nil { // So that a full disk shows now and not later.
		return err
	}
	if _, err := f.WriteAt(bytes.Repeat(first, 2), 0); err != nil {
		return err
	}
	return f.Sync()
}

// readBegin reads the key and the length from either first page.
func (l *Log) readBegin() error {
	b := make([]byte, begin)
	if _, err := l.file.ReadAt(b, 0); err != nil {
		return cut(err)
	}
	const at = len(magic)
	for first := range bytesOf(b) {
		sum := sha256.Sum256(first[:at+keySize+16])
		if bytes.HasPrefix(first, []byte(magic)) && bytes.Equal(first[at+keySize+16:][:len(sum)], sum[:]) {
			l.key = first[at : at+keySize]
			l.size = int64(binary.BigEndian.Uint64(first[at+keySize:])) - begin
			l.after = binary.BigEndian.Uint64(first[at+keySize+8:])
			return nil
		}
	}
	return fmt.Errorf("%w: it has no beginning", ErrDamaged)
}

// bytesOf yields the pages of b.
func bytesOf(b []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(b) >= page && yield(b[:page]); b = b[page:] {
		}
	}
}

// cut turns an end of the file into damage.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the file is too short", ErrDamaged)
	}
	return err
}

// Last is the newest frame. Without any its number is the one before the first.
func (l *Log) Last() Head {
	if len(l.live) == 0 {
		return Head{Number: l.after}
	}
	return l.live[len(l.live)-1].Head
}

// Head is frame n without its content; false if it needn't stay.
func (l *Log) Head(n uint64) (Head, bool) {
	if n < l.First() || n > l.Last().Number || len(l.live) == 0 {
		return Head{}, false
	}
	return l.live[n-l.First()].Head, true
}

// First is the number of the oldest frame that must stay, or of the next one if there is none.
func (l *Log) First() uint64 {
	if len(l.live) == 0 {
		return l.after + 1
	}
	return l.live[0].Number
}

// Fits reports whether a frame of that length can be appended now.
func (l *Log) Fits(length int) bool {
	_, ok := l.place(span(length))
	return ok
}

// Longest is the longest content of a frame, in bytes: a frame takes a quarter of the ring at most.
func (l *Log) Longest() int { return int(l.size/4/(2*page)*page) - headSize }

// place finds room for so many bytes: behind the newest frame, else at the beginning of the ring.
func (l *Log) place(n int64) (at int64, ok bool) {
	switch {
	case n > l.size/4:
		return 0, false
	case len(l.live) == 0:
		return 0, true
	}
	oldest := l.live[0].at
	if l.next > oldest {
		if l.next+n <= l.size {
			return l.next, true
		}
		return 0, n <= oldest
	}
	return l.next, l.next+n <= oldest
}

// Append writes a frame behind the newest one and syncs it.
func (l *Log) Append(h Head, content []byte) (Head, error) {
	if l.failed != nil {
		return Head{}, l.failed
	}
	at, ok := l.place(span(len(content)))
	if !ok {
		return Head{}, ErrFull
	}
	last := l.Last()
	h.Number, h.Before = last.Number+1, last.Digest
	p := placed{h, at, len(content)}
	if err := l.write(at, p.encode(l.key, content)); err != nil {
		return Head{}, err
	}
	l.live, l.next = append(l.live, p), p.end()
	return p.Head, nil
}

func (l *Log) write(at int64, b []byte) error {
	if end := at + int64(len(b)); end > l.filled {
		l.filled = min(l.size, (end+chunk-1)/chunk*chunk)
		b = append(b, make([]byte, l.filled-end)...)
	}
	_, err := l.file.WriteAt(b, begin+at)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.failed = fmt.Errorf("write the log: %w", err)
	}
	return l.failed
}

// Free lets frames up to number n be overwritten, but the newest.
func (l *Log) Free(n uint64) {
	for len(l.live) > 1 && l.live[0].Number <= n {
		l.live = l.live[1:]
	}
}

// Used is how much of the ring is taken by frames that must stay, in bytes.
func (l *Log) Used() (n int64) {
	for _, p := range l.live {
		n += span(p.length)
	}
	return n
}

// Size is the length of the ring, in bytes.
func (l *Log) Size() int64 { return l.size }

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }
