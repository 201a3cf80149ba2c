package upstream

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Request is one request in parsed form, to be sent once.
type Request struct {
	// Method is the request method. It must not be empty or CONNECT.
	Method string

	// URL is where it goes: scheme http or https, host with an optional port,
	// path and query. It must not carry user information or a fragment.
	URL *url.URL

	// Host is the Host header or :authority. Empty means URL.Host. Connections
	// and certificates go by URL alone.
	Host string

	// Header holds the end-to-end fields. Send decides on the fields of the connection and of framing,
	// and leaves them out. Those are Host, Content-Length, Transfer-Encoding, Connection, Keep-Alive,
	// Proxy-Connection, TE, Trailer, Upgrade and Expect. Send does not change Header.
	Header http.Header

	// Body is the content. Nil means none.
	Body Body

	// Total bounds the dispatch from the call of Send to the end of the answer,
	// on the boot-time clock. Zero or less means DefaultTotal.
	Total time.Duration

	// Response replaces Config.ResponseTimeout, unless it is zero.
	Response time.Duration

	// Interim is shown the first MaxInterim 1xx responses, one after the other, before Send returns.
	// Another goroutine may call it, and once more after a dispatch that was broken off. It must not
	// keep the header. Nil drops them.
	Interim func(status int, h http.Header)

	// TrustRefused says that this upstream's REFUSED_STREAM and GOAWAY may be
	// believed (RFC 9113 §8.7). The zero value believes neither.
	TrustRefused bool

	// Check is asked once, immediately before byte one, after the deadline. An error means that
	// nothing is sent, with class ErrorCheck. It is the place for what may have run out while
	// connecting: a lease, a vendor key's window. Its error text goes into the evidence. Nil allows.
	Check func() error

	// asIs says that URL.Opaque may hold the request-target, which is sent as it is.
	asIs bool
}

// Body is the content of a request. Its length is known before it is sent.
type Body interface {
	// Open returns a reader over the whole content. It is called at most once for
	// a dispatch, before byte one; Send closes what it returns, if need be while
	// it is being read. Reads must not wait: no deadline ends them.
	Open() (io.ReadCloser, error)
	// Len is the content's length in bytes, 0 or more. A reader that yields
	// fewer or more breaks the dispatch off.
	Len() int64

	// A body may have a method Whole() ([]byte, bool) that returns all of it, if it is in
	// memory. A short one then isn't opened.
}

// Bytes is a Body in memory.
type Bytes []byte

// Open returns a reader over b.
func (b Bytes) Open() (io.ReadCloser, error) { return io.NopCloser(b.reader()), nil }

// Whole returns b.
func (b Bytes) Whole() ([]byte, bool) { return b, true }

func (b Bytes) reader() io.Reader { return bytes.NewReader(b) }

// Len returns len(b).
func (b Bytes) Len() int64 { return int64(len(b)) }

// content reads a request's body and holds it to its announced length. A body that ends early, goes
// on or breaks is a *bodyError, and never looks whole.
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
