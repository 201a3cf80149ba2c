package oracle

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// Reader counts one file again and again, and reads each line of it once. A test that waits for something looks
// hundreds of times. It is safe for concurrent use.
type Reader struct {
	path string

	mu sync.Mutex
	// read is how many bytes of the file, all of whole lines, have been counted.
	read int64
	// lines is how many lines these are.
	lines int64
	tally Tally
}

// NewReader makes the reader of the file at path, which need not exist yet.
func NewReader(path string) *Reader { return &Reader{path: path} }

// Tally counts the file as it is now, as [Read] does. That a file has become shorter is an
// error: nothing takes lines away from a witness.
func (r *Reader) Tally() (Tally, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	more, err := r.more()
	if err != nil {
		return Tally{}, fmt.Errorf("oracle: read log: %w", err)
	}
	whole := bytes.LastIndexByte(more, '\n') + 1
	tally, err := r.tally.and(more[:whole], r.lines)
	if err != nil {
		return Tally{}, err
	}
	r.tally = tally
	r.read += int64(whole)
	r.lines = int64(len(tally.Events) + tally.Torn)
	tally.Events = slices.Clip(tally.Events) // The next lines are put behind what the caller has.
	return tally, nil
}

// more is what the file holds behind what has been read.
func (r *Reader) more() ([]byte, error) {
	file, err := os.Open(r.path)
	if os.IsNotExist(err) && r.read == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It is only read.
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < r.read {
		return nil, fmt.Errorf("%s has %d bytes, and had %d", r.path, info.Size(), r.read)
	}
	return io.ReadAll(io.NewSectionReader(file, r.read, info.Size()-r.read))
}
