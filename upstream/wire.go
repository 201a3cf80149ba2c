package upstream

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// rawConn is the connection below TLS.
type rawConn struct {
	net.Conn
	sys     syscall.RawConn // nil if the connection can't be looked at
	tcp     lingerer        // what it lies on; nil if that isn't TCP
	written atomic.Int64
	eof     atomic.Bool // the peer ended the transport connection
	looking bool        // reads don't block; set only while nobody else reads
	now     readNow     // of the look at work
}

// readNow is one read that doesn't wait, and what came of it. It is kept with its
// connection, so that a look allocates nothing.
type readNow struct {
	p   []byte
	n   int
	err error
	do  func(fd uintptr) bool // the read, for the connection below
}

// lingerer is a connection of TCP, in what matters at its end.
type lingerer interface {
	SetLinger(sec int) error
	Close() error
}

// tcpBelow finds what a connection lies on, such as below the TLS of another proxy.
func tcpBelow(c net.Conn) lingerer {
	for {
		if tcp, ok := c.(lingerer); ok {
			return tcp
		}
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapped.NetConn()
	}
}

// NetConn returns the connection below.
func (r *rawConn) NetConn() net.Conn { return r.Conn }

func newRawConn(c net.Conn) *rawConn {
	r := &rawConn{Conn: c, tcp: tcpBelow(c)}
	if sc, ok := c.(syscall.Conn); ok {
		if sys, err := sc.SyscallConn(); err == nil {
			r.sys = sys
		}
	}
	r.now.do = func(fd uintptr) bool {
		r.now.n, r.now.err = syscall.Read(int(fd), r.now.p)
		return true
	}
	return r
}

// endsBroken says whether the connection ends with a reset, also when the process ends. Whatever
// was written and is still here is then dropped. Otherwise the system goes on sending it after the
// connection is closed or the process is lost. If the peer takes nothing that lasts minutes.
func (r *rawConn) endsBroken(broken bool) {
	sec := -1 // As the system has it.
	if broken {
		sec = 0
	}
	if r.tcp != nil {
		_ = r.tcp.SetLinger(sec)
	}
}

// Write counts what was written.
func (r *rawConn) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(p)
	r.written.Add(int64(n))
	return n, err
}

// Read notes the end of the transport connection, which TLS does not tell from
// its own end (close_notify). While looking it does not wait: with nothing to
// read it returns os.ErrDeadlineExceeded, which crypto/tls treats as temporary.
func (r *rawConn) Read(p []byte) (n int, err error) {
	if r.looking {
		n, err = r.readNow(p)
	} else {
		n, err = r.Conn.Read(p)
	}
	if errors.Is(err, io.EOF) {
		r.eof.Store(true)
	}
	return n, err
}

func (r *rawConn) readNow(p []byte) (n int, err error) {
	r.now.p = p
	ctlErr := r.sys.Read(r.now.do)
	n, err = r.now.n, r.now.err
	r.now.p, r.now.n, r.now.err = nil, 0, nil
	switch {
	case ctlErr != nil:
		return 0, ctlErr
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, os.ErrDeadlineExceeded
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// plainConn is the connection above TLS, or above rawConn where there is none.
type plainConn struct {
	net.Conn
	writing sync.Mutex   // held by Write until what it wrote is counted
	begun   atomic.Int64 // bytes handed to Write, counted before it writes
	written atomic.Int64 // bytes that Write reported as written
	left    atomic.Int64 // bytes that may still be read of a head; below 0: any
	readErr error        // how reading ended, which parsers tend to hide; HTTP/1.1 only
	frames  *frameWatch  // HTTP/2 only
	head    headWatch    // HTTP/1.1 only
	ended   atomic.Bool  // the peer has ended the connection, in whatever way
}

// Write counts what is written, before and after.
func (c *plainConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.begun.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// count is what was written. An answer may be read before what it answers is counted:
// what is being written counts as written.
func (c *plainConn) count() int64 {
	if !c.writing.TryLock() {
		return c.begun.Load()
	}
	defer c.writing.Unlock()
	return c.written.Load()
}

// settle waits until nothing is being written any more. The connection is closed.
func (c *plainConn) settle() {
	c.writing.Lock()
	defer c.writing.Unlock()
}

// Read enforces the limit on a head and shows HTTP/2 frames to their watch.
func (c *plainConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	switch {
	case left == 0:
		c.readErr = errHeadTooBig
		return 0, errHeadTooBig
	case left > 0 && int64(len(p)) > left:
		p = p[:left]
	}
	n, err := c.Conn.Read(p)
	if left > 0 {
		c.left.Add(-int64(n))
	}
	if errors.Is(err, io.EOF) {
		c.ended.Store(true)
	}
	if c.frames != nil {
		c.frames.see(p[:n])
	} else {
		c.readErr = err
		if left >= 0 {
			c.head.see(p[:n])
		}
	}
	return n, err
}
