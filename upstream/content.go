package upstream

import (
	"errors"
	"io"
	"sync"
)

// content reads a request's body and holds it to its announced length: one that
// ends early, goes on or breaks is a *bodyError, and never looks like a whole one.
type content struct {
	src  io.ReadCloser
	left int64
	shut sync.Once
	done chan struct{} // closed by Close
}

func newContent(src io.ReadCloser, length int64) *content {
	return &content{src: src, left: length, done: make(chan struct{})}
}

// Read returns io.EOF only after exactly the announced length.
func (c *content) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, c.atEnd()
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.src.Read(p)
	c.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF) && c.left > 0:
		return n, &bodyError{errBodyLength}
	case err != nil && !errors.Is(err, io.EOF):
		return n, &bodyError{err}
	case c.left == 0 && err == nil:
		return n, c.atEnd()
	}
	return n, err
}

// atEnd returns io.EOF if the source has indeed ended.
func (c *content) atEnd() error {
	var more [1]byte
	_, err := io.ReadFull(c.src, more[:])
	switch {
	case err == nil:
		return &bodyError{errBodyLength}
	case errors.Is(err, io.EOF):
		return io.EOF
	}
	return &bodyError{err}
}

// Close closes the source, once.
func (c *content) Close() error {
	var err error
	c.shut.Do(func() {
		err = c.src.Close()
		close(c.done)
	})
	return err
}

// close is Close for a body that may be missing.
func (c *content) close() {
	if c != nil {
		_ = c.Close()
	}
}
