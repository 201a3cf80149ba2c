package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// content is a body that was read whole. A short one is in memory; a long one is in a
// spool of the ledger, so that neither a slow client nor a slow upstream holds memory,
// or is a body that the ledger has. A nil content is empty.
type content struct {
	bytes  []byte
	spool  ledger.Spool
	stored func() (io.ReadCloser, error)
	length int64
	// packed says that nobody knows how long it is where rules read it: it has a coding.
	packed bool

	mu   sync.Mutex
	left bool
}

// inMemory is content that is short, or that found no room elsewhere.
func inMemory(b []byte) *content { return &content{bytes: b, length: int64(len(b))} }

func (c *content) size() int64 {
	if c == nil {
		return 0
	}
	return c.length
}

// short returns content that is in memory, and whether it is.
func (c *content) short() ([]byte, bool) {
	if c == nil {
		return nil, true
	}
	return c.bytes, c.spool == nil && c.stored == nil
}

// plain is short for rules: what they read is in memory already, or no longer than what is.
func (c *content) plain() ([]byte, bool) {
	b, short := c.short()
	return b, short && (c == nil || !c.packed)
}

// weight is the room that it takes in memory while rules read it.
func (c *content) weight() int64 {
	if _, plain := c.plain(); plain {
		return 0
	}
	if c.packed {
		return heldBytes // So that it is there alone.
	}
	return c.size()
}

// Whole returns content that is in memory, and whether it is; see upstream.Body.
func (c *content) Whole() ([]byte, bool) { return c.short() }

// open returns a reader over the whole content.
func (c *content) open() (io.ReadCloser, error) {
	switch {
	case c == nil:
		return io.NopCloser(bytes.NewReader(nil)), nil
	case c.stored != nil:
		return c.stored()
	case c.spool != nil:
		return io.NopCloser(io.NewSectionReader(c.spool, 0, c.length)), nil
	}
	return io.NopCloser(newReader(c.bytes)), nil
}

// taken is the content in the hands of the caller, who closes it: closing c does nothing any
// more.
func (c *content) taken() *content {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return nil
	}
	c.left = true
	return &content{spool: c.spool}
}

// close gives up what was spooled. Of what a record names by then nothing is lost.
func (c *content) close(p *Proxy) {
	if c == nil || c.spool == nil {
		return
	}
	c.mu.Lock()
	left := c.left
	c.left = true
	c.mu.Unlock()
	if left {
		return
	}
	if err := c.spool.Close(); err != nil {
		p.config.Log.Warn().Err(err).Msg("spool not removed; the next start does")
	}
}

// Len implements upstream.Body.
func (c *content) Len() int64 { return c.size() }

// Open implements upstream.Body.
func (c *content) Open() (io.ReadCloser, error) { return c.open() }

// heldBytes bounds the long bodies that are in memory at once, in bytes. Rules read
// them there, and only while they do; a longer one is there alone, as is a packed one.
const heldBytes = 8 << 20

// held counts them. Who waits for room does so however its client fares: what was sent
// is judged all the same.
type held struct {
	*semaphore.Weighted
	ctx context.Context
}

func newHeld() *held { return &held{semaphore.NewWeighted(heldBytes), context.Background()} }

// holding gives content to use, in memory for as long as that takes. use must not wait
// for a network, must not keep what it was given, and must not hold more.
func (p *Proxy) holding(c *content, use func([]byte)) error {
	return p.holdingBoth(c, nil, func(b, _ []byte) { use(b) })
}

// holdingBoth is holding for two at once: who held one and waited for the other could
// wait for ever.
func (p *Proxy) holdingBoth(one, two *content, use func(one, two []byte)) error {
	if weight := min(one.weight()+two.weight(), heldBytes); weight > 0 {
		if err := p.held.Acquire(p.held.ctx, weight); err != nil {
			return err
		}
		defer p.held.Release(weight)
	}
	first, err := one.load()
	if err != nil {
		return err
	}
	second, err := two.load()
	if err != nil {
		return err
	}
	use(first, second)
	return nil
}

// load reads the whole content into memory.
func (c *content) load() ([]byte, error) {
	if b, short := c.short(); short {
		return b, nil
	}
	r, err := c.open()
	if err != nil {
		return nil, err
	}
	b := make([]byte, c.size())
	_, err = io.ReadFull(r, b)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("a spooled body can't be read again: %w", err)
	}
	return b, nil
}

// loaded gives req to use with its body c, in memory for as long as that takes.
func (p *Proxy) loaded(req *rules.Request, c *content, use func(*rules.Request)) error {
	return p.holding(c, func(b []byte) { use(withBody(req, c, b)) })
}

// withBody is req with its content c, which is b. A short one is in req already, unless it is
// packed: req keeps what it made of its content.
func withBody(req *rules.Request, c *content, b []byte) *rules.Request {
	if _, plain := c.plain(); plain {
		return req
	}
	return req.WithBody(b)
}

// same reports whether b is a itself, not only equal to it.
func same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
