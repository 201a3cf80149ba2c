package h1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// inSize and outSize are what a connection buffers either way, in bytes.
	inSize, outSize = 4 << 10, 4 << 10
	// lingers bounds in time, and lingerMost in bytes, what is still read when content was left
	// unread. Closing over it would reset the connection, and lose the answer.
	lingers    = 500 * time.Millisecond
	lingerMost = 1 << 20
	// slack is how much longer than Server.IdleTimeout an idle connection may be kept. So its deadline
	// needn't be set for each request.
	slack = time.Second
)

// past ends a read or write that waits.
var past = time.Unix(1, 0)

var (
	headEnd = []byte("\r\n\r\n")

	errLongHead = errors.New("h1: a head or trailer section is over the limit")
)

// conn is one connection.
type conn struct {
	server *Server
	rwc    net.Conn
	ctx    context.Context
	tls    *tls.ConnectionState
	remote string
	// transport is what the connection lies on, where it can be looked at; else nil.
	transport syscall.RawConn
	began     time.Time
	state     atomic.Int32

	// in holds what was read and not yet used, in[from:to].
	in       []byte
	from, to int
	// ended is what reading returned last.
	ended error
	// idleUntil is the deadline of reads, in nanoseconds since began, while it is that of an
	// idle connection; else 0.
	idleUntil atomic.Int64

	// writes is held while something is written to out.
	writes sync.Mutex
	out    *bufio.Writer

	watch    watch
	hijacked atomic.Bool
	// cut says that an answer broke off whose end would be that of the connection.
	cut bool
}

// setState tells the hook.
func (c *conn) setState(s http.ConnState) {
	c.state.Store(int32(s))
	if hook := c.server.ConnState; hook != nil {
		hook(c.rwc, s)
	}
}

// serve serves requests one after the other.
func (c *conn) serve() {
	c.watch.init(c)
	c.in, c.out = make([]byte, inSize), bufio.NewWriterSize(c.rwc, outSize)
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // It is this value or another.
			// The value may quote the request; its type may not.
			c.server.logf("h1: panic serving %v: %T\n%s", c.remote, v, debug.Stack())
		}
		if !c.hijacked.Load() {
			c.watch.stop()
			c.end()
			c.setState(http.StateClosed)
		}
	}()
	_ = c.rwc.SetReadDeadline(time.Now().Add(c.server.HeadTimeout))
	for first := true; ; first = false {
		head, err := c.readHead(first)
		if errors.Is(err, errLongHead) {
			c.refuse(http.StatusRequestHeaderFieldsTooLarge)
		}
		if err != nil {
			return
		}
		c.setState(http.StateActive)
		x, err := c.request(head)
		c.shrink()
		if err != nil {
			c.refuse(http.StatusBadRequest)
			return
		}
		if !c.answer(x) {
			return
		}
		c.setState(http.StateIdle)
		if c.server.stopping.Load() {
			return
		}
		c.idle()
	}
}

// end closes the connection. Closed in good order, it would make the whole of an answer of which a
// part was written.
func (c *conn) end() {
	if c.cut {
		Reset(c.rwc)
		return
	}
	_ = c.rwc.Close()
}

// refuse has a head answered that is no request.
func (c *conn) refuse(status int) {
	if c.server.Refuse != nil {
		c.server.Refuse(c.rwc, status)
		return
	}
	_ = c.rwc.SetWriteDeadline(time.Now().Add(c.server.HeadTimeout))
	text := strconv.Itoa(status) + " " + http.StatusText(status)
	_, _ = io.WriteString(c.rwc, "HTTP/1.1 "+text+"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"+text)
}

// answer has one request answered, and reports whether the next one may come.
func (c *conn) answer(x *exchange) bool {
	ended := false
	defer func() {
		x.ctx.end()
		if !ended && x.body != nil {
			x.body.abandon()
		}
		c.cut = !ended && x.unmarked()
	}()
	c.server.Handler.ServeHTTP(x, x.req)
	ended = true
	x.ctx.end()
	if c.hijacked.Load() {
		return false
	}
	written := x.finish()
	c.watch.stop()
	unread := x.body != nil && x.body.abandon()
	if x.deadline.Load() {
		_ = c.rwc.SetWriteDeadline(time.Time{})
	}
	if unread && written {
		c.linger()
	}
	return written && !unread && !x.closing
}

// shrink gives up what a long head or trailer section needed, which nothing may refer to
// any more.
func (c *conn) shrink() {
	if len(c.in) > inSize && c.to-c.from < inSize {
		in := make([]byte, inSize)
		c.from, c.to = 0, copy(in, c.in[c.from:c.to])
		c.in = in
	}
}

// idle sets the deadline until which the next request has to begin.
func (c *conn) idle() {
	c.shrink()
	now := time.Since(c.began)
	if until := time.Duration(c.idleUntil.Load()); until-now >= c.server.IdleTimeout {
		return
	}
	until := now + c.server.IdleTimeout + slack
	_ = c.rwc.SetReadDeadline(c.began.Add(until))
	c.idleUntil.Store(int64(until))
}

// setReadDeadline sets one that is not that of an idle connection.
func (c *conn) setReadDeadline(t time.Time) error {
	c.idleUntil.Store(0)
	return c.rwc.SetReadDeadline(t)
}

// readHead reads a whole head, and returns it with the empty line at its end.
func (c *conn) readHead(first bool) (head []byte, err error) {
	begun := first
	for searched := c.from; ; {
		if i := bytes.Index(c.in[searched:c.to], headEnd); i >= 0 {
			head = c.in[c.from : searched+i+len(headEnd)]
			c.from += len(head)
			return head, nil
		}
		if c.to-c.from > c.server.MaxHead {
			return nil, errLongHead
		}
		if !begun && c.from < c.to {
			begun = true
			_ = c.setReadDeadline(time.Now().Add(c.server.HeadTimeout))
		}
		searched = max(c.from, c.to-len(headEnd)+1) - c.from
		if err := c.fill(); err != nil {
			return nil, err
		}
		searched += c.from
	}
}

// room makes room for more input.
func (c *conn) room() {
	if c.from > 0 {
		copy(c.in, c.in[c.from:c.to])
		c.from, c.to = 0, c.to-c.from
	}
	if c.to == len(c.in) {
		c.in = append(c.in, make([]byte, len(c.in))...)
	}
}

// fill reads more input. It may come with the error.
func (c *conn) fill() error {
	if c.ended != nil {
		return c.ended
	}
	c.room()
	n, err := c.rwc.Read(c.in[c.to:])
	if c.to += n; n > 0 {
		c.ended = err
		return nil
	}
	if err == nil {
		return nil
	}
	c.ended = err
	return err
}

// read reads content.
func (c *conn) read(p []byte) (int, error) {
	if c.from < c.to {
		n := copy(p, c.in[c.from:c.to])
		c.from += n
		return n, nil
	}
	if c.ended != nil {
		return 0, c.ended
	}
	if len(p) >= inSize {
		n, err := c.rwc.Read(p)
		if c.ended = err; n > 0 {
			err = nil
		}
		return n, err
	}
	if err := c.fill(); err != nil {
		return 0, err
	}
	n := copy(p, c.in[c.from:c.to])
	c.from += n
	return n, nil
}

// line reads a line, which is valid until more is read, without its end.
func (c *conn) line() ([]byte, error) {
	for searched := 0; ; {
		if i := bytes.IndexByte(c.in[c.from+searched:c.to], '\n'); i >= 0 {
			l := c.in[c.from : c.from+searched+i]
			c.from += len(l) + 1
			return bytes.TrimSuffix(l, []byte{'\r'}), nil
		}
		if searched = c.to - c.from; searched > c.server.MaxHead {
			return nil, errLongHead
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// linger reads away what still comes, for a while.
func (c *conn) linger() {
	if half, ok := c.rwc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.setReadDeadline(time.Now().Add(lingers))
	_, _ = io.Copy(io.Discard, io.LimitReader(c.rwc, lingerMost))
}

// hijack gives the connection away.
func (c *conn) hijack() (net.Conn, *bufio.ReadWriter, error) {
	if c.hijacked.Swap(true) {
		return nil, nil, http.ErrHijacked
	}
	c.watch.release()
	c.server.remove(c)
	c.setState(http.StateHijacked)
	if err := c.rwc.SetDeadline(time.Time{}); err != nil {
		return nil, nil, fmt.Errorf("hijack: %w", err)
	}
	left := c.in[c.from:c.to]
	r := bufio.NewReader(io.MultiReader(bytes.NewReader(left), c.rwc))
	if len(left) > 0 {
		r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(left), c.rwc), max(len(left), outSize))
		_, _ = r.Peek(len(left))
	}
	return c.rwc, bufio.NewReadWriter(r, bufio.NewWriter(c.rwc)), nil
}
