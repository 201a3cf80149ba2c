package h1

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"
)

// drains is how much unread content is read before an answer, to keep its connection. A client may
// send all of it before it reads.
const drains = 256 << 10

var (
	errChunk   = errors.New("h1: malformed chunk")
	errUnasked = errors.New("h1: the client waits for 100 (Continue), and got its answer")
)

// body is the content of a request.
type body struct {
	x *exchange

	mu      sync.Mutex
	chunked bool
	// left is what is still to come of the content, or of a chunk; inChunk says that its
	// end is.
	left    int64
	inChunk bool
	// expect says that the client waits for 100 (Continue), unless it got a final answer.
	expect bool
	closed bool
	err    error
	// whole says that all of it was read.
	whole atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

// AtHand reports whether the rest of it came with the head. Reading it to its end then waits for
// nobody.
func (b *body) AtHand() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.chunked && b.left <= int64(b.x.conn.to-b.x.conn.from)
}

func (b *body) read(p []byte) (int, error) {
	switch {
	case b.whole.Load():
		return 0, io.EOF
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	}
	if b.expect {
		if !b.x.sayContinue() {
			return 0, errUnasked
		}
		b.expect = false
	}
	n, err := b.next(p)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		b.err = err
		return n, err
	}
	if b.whole.Load() {
		b.x.ctx.allRead()
		return n, io.EOF
	}
	return n, nil
}

// next reads some.
func (b *body) next(p []byte) (int, error) {
	c := b.x.conn
	if b.chunked && b.left == 0 {
		if err := b.chunk(); err != nil || b.whole.Load() {
			return 0, err
		}
	}
	n, err := c.read(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left == 0 && !b.chunked {
		b.whole.Store(true)
	}
	if n > 0 {
		err = nil // It comes again.
	}
	return n, err
}

// chunk reads the end of the last chunk and the size line of the next. After the final chunk it
// reads the trailers.
func (b *body) chunk() error {
	c := b.x.conn
	if b.inChunk {
		if l, err := c.line(); err != nil || len(l) > 0 {
			return or(err, errChunk)
		}
		b.inChunk = false
	}
	l, err := c.line()
	if err != nil {
		return err
	}
	size, digits := int64(0), 0
	for ; digits < len(l) && l[digits] != ';'; digits++ {
		d := hexDigit(l[digits])
		if d < 0 || digits == 15 {
			return errChunk
		}
		size = size<<4 | int64(d)
	}
	if digits == 0 {
		return errChunk
	}
	if size == 0 {
		return b.trailers()
	}
	b.left, b.inChunk = size, true
	return nil
}

// trailers reads the trailer section, of which nothing is told before its end.
func (b *body) trailers() error {
	c := b.x.conn
	var all http.Header
	for room := c.server.MaxHead; ; {
		l, err := c.line()
		if err != nil {
			return err
		}
		if len(l) == 0 {
			if b.x.req.Trailer == nil {
				b.x.req.Trailer = all
			} else {
				maps.Copy(b.x.req.Trailer, all)
			}
			b.whole.Store(true)
			return nil
		}
		if room -= len(l); room < 0 {
			return errLongHead
		}
		name, value, ok := cutField(string(l))
		if !ok {
			return errMalformed
		}
		if all == nil {
			all = make(http.Header)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		all[name] = append(all[name], value)
	}
}

// Close implements io.Closer. What is unread is left for the end of the exchange.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// drain reads and drops what is unread, bounded in bytes and time, and reports whether that was
// all. It doesn't wait for a reader that waits for the client: that one may wait for the answer.
func (b *body) drain() bool {
	if b.whole.Load() {
		return true
	}
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	if b.whole.Load() {
		return true
	}
	if b.closed || b.expect || b.err != nil || !b.chunked && b.left >= drains {
		return false
	}
	// Whoever announced content and doesn't send it shall not hold up the answer.
	_ = b.x.conn.setReadDeadline(time.Now().Add(b.x.conn.server.HeadTimeout))
	buffer := make([]byte, inSize)
	for n := 0; n <= drains && b.err == nil; {
		some, _ := b.read(buffer)
		if n += some; b.whole.Load() {
			return true
		}
	}
	return false
}

// abandon lets nobody read any more, who waits for the client included, and reports
// whether something is unread.
func (b *body) abandon() bool {
	if !b.mu.TryLock() {
		_ = b.x.conn.setReadDeadline(past)
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.closed = true
	return !b.whole.Load()
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func or(err, fallback error) error {
	if err != nil {
		return err
	}
	return fallback
}
