package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// Content is a body that was read whole. A short one is in memory. A long one is a spool or a
// stored body of the ledger. Neither a slow client nor a slow upstream then holds memory. A nil
// Content is empty.
type Content struct {
	// Packed says that nobody knows how long it is where rules read it: it has a coding.
	Packed bool

	bytes  []byte
	spool  ledger.Spool
	stored func() (io.ReadCloser, error)
	length int64
	log    zerolog.Logger

	mu   sync.Mutex
	left bool
}

// InMemory is content that is short, or that found no room elsewhere.
func InMemory(b []byte) *Content { return &Content{bytes: b, length: int64(len(b))} }

// Stored is content of this length that is kept elsewhere.
func Stored(length int64, open func() (io.ReadCloser, error)) *Content {
	return &Content{length: length, stored: open}
}

// Len implements upstream.Body.
func (c *Content) Len() int64 {
	if c == nil {
		return 0
	}
	return c.length
}

// Whole returns content that is in memory, and whether it is; see upstream.Body.
func (c *Content) Whole() ([]byte, bool) {
	if c == nil {
		return nil, true
	}
	return c.bytes, c.spool == nil && c.stored == nil
}

// Plain is Whole for rules: what they read is in memory already, or no longer than what is.
func (c *Content) Plain() ([]byte, bool) {
	b, whole := c.Whole()
	return b, whole && (c == nil || !c.Packed)
}

// weight is the room that it takes in memory while rules read it.
func (c *Content) weight() int64 {
	if _, plain := c.Plain(); plain {
		return 0
	}
	if c.Packed {
		return HeldBytes // So that it is there alone.
	}
	return c.length
}

// Open implements upstream.Body.
func (c *Content) Open() (io.ReadCloser, error) {
	switch {
	case c == nil:
		return io.NopCloser(bytes.NewReader(nil)), nil
	case c.stored != nil:
		return c.stored()
	case c.spool != nil:
		return io.NopCloser(io.NewSectionReader(c.spool, 0, c.length)), nil
	}
	// Without the WriterTo shortcut, so that who copies it sees every error.
	return io.NopCloser(struct{ io.Reader }{bytes.NewReader(c.bytes)}), nil
}

// Keep makes spooled content a body of the ledger.
func (c *Content) Keep(ctx context.Context) (ledger.Body, error) { return c.spool.Keep(ctx) }

// Taken is the content in the hands of the caller, who closes it: closing c does nothing any
// more.
func (c *Content) Taken() *Content {
	if c == nil || c.leave() {
		return nil
	}
	return &Content{spool: c.spool, log: c.log}
}

// leave gives the content up, and reports whether that was done before.
func (c *Content) leave() (before bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.left = c.left, true
	return before
}

// Close gives up what was spooled. Of what a record names by then nothing is lost.
func (c *Content) Close() {
	if c == nil || c.spool == nil || c.leave() {
		return
	}
	if err := c.spool.Close(); err != nil {
		c.log.Warn().Err(err).Msg("spool not removed; the next start does")
	}
}

// load reads the whole content into memory.
func (c *Content) load() ([]byte, error) {
	if b, whole := c.Whole(); whole {
		return b, nil
	}
	r, err := c.Open()
	if err != nil {
		return nil, err
	}
	b := make([]byte, c.length)
	_, err = io.ReadFull(r, b)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("a spooled body can't be read again: %w", err)
	}
	return b, nil
}

// HeldBytes bounds the long bodies that are in memory at once, in bytes. Rules read
// them there, and only while they do; a longer one is there alone, as is a packed one.
const HeldBytes = 8 << 20

// Contents reads bodies, and holds them in memory for rules. Make it with [NewContents].
type Contents struct {
	// Room counts the long bodies in memory. Who waits for it does so however its client
	// fares: what was sent is judged all the same.
	Room   *semaphore.Weighted
	ledger Spools
	log    zerolog.Logger
}

// Spools begins content of any size. It is a [ledger.Ledger].
type Spools interface{ Spool() (ledger.Spool, error) }

// NewContents returns Contents that put long bodies aside in the ledger.
func NewContents(l Spools, log zerolog.Logger) *Contents {
	return &Contents{Room: semaphore.NewWeighted(HeldBytes), ledger: l, log: log}
}

// Hold gives use two contents in memory. It takes both at once, since holding one and waiting for
// the other could block for ever. The function use must not wait for a network, keep what it was
// given, or hold more.
func (k *Contents) Hold(one, two *Content, use func(one, two []byte)) error {
	if weight := min(one.weight()+two.weight(), HeldBytes); weight > 0 {
		if err := k.Room.Acquire(context.Background(), weight); err != nil {
			return err
		}
		defer k.Room.Release(weight)
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

// Load gives req to use with its body c, in memory for as long as that takes; see Hold.
func (k *Contents) Load(req *rules.Request, c *Content, use func(*rules.Request)) error {
	return k.Hold(c, nil, func(b, _ []byte) { use(WithBody(req, c, b)) })
}

// WithBody is req with its content c, which is b. A short one is in req already, unless it is
// packed: req keeps what it made of its content.
func WithBody(req *rules.Request, c *Content, b []byte) *rules.Request {
	if _, plain := c.Plain(); plain {
		return req
	}
	return req.WithBody(b)
}

// Same reports whether b is a itself, not only equal to it.
func Same(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// SpoolError says that content could not be put aside: the ledger's disk is full, or
// fails.
type SpoolError struct{ Err error }

// Error implements error.
func (e SpoolError) Error() string { return e.Err.Error() }

// Unwrap returns the ledger's error.
func (e SpoolError) Unwrap() error { return e.Err }

// Need says what to do when content can't be put aside.
type Need uint8

const (
	// MustSpool gives up: nothing was sent yet.
	MustSpool Need = iota
	// MaySpool goes on in memory: an answer can't be had again.
	MaySpool
)

// Read reads r to its end; length is what it will be, -1 if that isn't known. What
// came before an error is in the content that goes with it.
func (k *Contents) Read(r io.Reader, length int64, n Need) (*Content, error) {
	var head bytes.Buffer
	if length <= ledger.InlineBody {
		_, err := head.ReadFrom(io.LimitReader(r, ledger.InlineBody+1))
		if err != nil || head.Len() <= ledger.InlineBody {
			return InMemory(head.Bytes()), err
		}
	}
	spool, err := k.ledger.Spool()
	if err != nil {
		if n == MaySpool {
			_, err = head.ReadFrom(r)
			return InMemory(head.Bytes()), err
		}
		return nil, SpoolError{err}
	}
	unwritten, err := spoolFrom(spool, io.MultiReader(&head, r))
	c := &Content{spool: spool, length: spool.Size(), log: k.log}
	if failed := (SpoolError{}); errors.As(err, &failed) && n == MaySpool {
		defer c.Close()
		return backToMemory(spool, unwritten, io.MultiReader(&head, r))
	}
	return c, err
}

// Aside spools content that is in memory, if it is long.
func (k *Contents) Aside(b []byte) (*Content, error) {
	if len(b) <= ledger.InlineBody {
		return InMemory(b), nil
	}
	return k.Read(bytes.NewReader(b), int64(len(b)), MustSpool)
}

// spoolFrom copies r to its end. If the spool fails, what it didn't take of what was read
// is returned.
func spoolFrom(to ledger.Spool, r io.Reader) (unwritten []byte, err error) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			if taken, err := to.Write(buffer[:n]); err != nil {
				return buffer[taken:n], SpoolError{err}
			}
		}
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func backToMemory(spool ledger.Spool, unwritten []byte, r io.Reader) (*Content, error) {
	var all bytes.Buffer
	if _, err := all.ReadFrom(io.NewSectionReader(spool, 0, spool.Size())); err != nil {
		return nil, SpoolError{err}
	}
	all.Write(unwritten)
	_, err := all.ReadFrom(r)
	return InMemory(all.Bytes()), err
}

// StoredBodies opens bodies that the ledger has. It is a [ledger.Ledger].
type StoredBodies interface {
	Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error)
}

// StoredBody reads a body that the ledger has.
func StoredBody(ctx context.Context, l StoredBodies, b ledger.Body) ([]byte, error) {
	if b.Size == 0 {
		return nil, nil
	}
	r, err := l.Body(ctx, b)
	if err != nil {
		return nil, err
	}
	if in, ok := r.(interface{ Whole() []byte }); ok {
		return in.Whole(), r.Close()
	}
	content, err := io.ReadAll(io.LimitReader(r, b.Size+1)) // A byte more, as its end is where it is found whole.
	return content, errors.Join(err, r.Close())
}
