package h1

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// watch reads while a handler runs, so that the client is seen to go. What it reads is
// the beginning of the next request.
type watch struct {
	mu   sync.Mutex
	cond *sync.Cond
	conn *conn
	// running says that a goroutine reads, stopping that it shall end.
	running, stopping bool
	// never says that the connection is somebody else's.
	never bool
}

func (w *watch) init(c *conn) { w.conn, w.cond = c, sync.NewCond(&w.mu) }

// start starts reading, unless the exchange has ended. All content was read.
func (w *watch) start(x *requestContext) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// An exchange ends before its watch is stopped: whoever comes late finds that.
	if w.running || w.stopping || w.never || x.Err() != nil {
		return
	}
	w.running = true
	_ = w.conn.setReadDeadline(time.Time{})
	w.conn.room()
	go w.read(x)
}

func (w *watch) read(x *requestContext) {
	c := w.conn
	for c.ended == nil {
		n, err := c.rwc.Read(c.in[c.to:])
		c.to += n
		w.mu.Lock()
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late && w.stopping {
			w.running = false
			w.cond.Broadcast()
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if late {
			// The deadline was for content.
			_ = c.setReadDeadline(time.Time{})
			w.again()
			continue
		}
		if c.ended = err; n > 0 {
			break
		}
	}
	if c.ended != nil {
		x.end()
	}
	w.mu.Lock()
	w.running = false
	w.cond.Broadcast()
	w.mu.Unlock()
}

// again lets a stop that came meanwhile have its deadline.
func (w *watch) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		_ = w.conn.setReadDeadline(past)
	}
}

// reads reports whether the client is being read from, and seen to go by that.
func (w *watch) reads() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running
}

// release ends reading for good.
func (w *watch) release() {
	w.mu.Lock()
	w.never = true
	w.mu.Unlock()
	w.stop()
}

// stop ends reading, and returns when it has ended.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.running {
		return
	}
	w.stopping = true
	_ = w.conn.setReadDeadline(past)
	for w.running {
		w.cond.Wait()
	}
	w.stopping = false
	_ = w.conn.setReadDeadline(time.Time{})
}

// requestContext is the context of a request. It is done when its handler has returned, and when
// the client was seen to go. To notice that, the connection is read once somebody asks (Done) and
// all content has been read. Who need not be told can look instead.
type requestContext struct {
	//nolint:containedctx // It is one itself.
	context.Context
	// end makes it done.
	end  context.CancelFunc
	conn *conn

	mu sync.Mutex
	// wanted says that the client shall be followed, unread that there is content
	// before that.
	wanted, unread bool
}

// follow lets the client be seen to go, as soon as all content was read.
func (x *requestContext) follow() {
	x.mu.Lock()
	begin := !x.wanted && !x.unread
	x.wanted = true
	x.mu.Unlock()
	if begin {
		x.conn.watch.start(x)
	}
}

// CanLook reports whether Look tells anything of this connection.
func (x *requestContext) CanLook() bool { return x.conn.transport != nil }

// Look makes it done if the client has ended the connection, or its own direction of it. It
// doesn't wait, and whether content was read doesn't matter. Nor does it matter whether the client
// is followed: that ends where its next request begins.
func (x *requestContext) Look() {
	if x.Err() == nil && !x.conn.watch.reads() && x.CanLook() && ended(x.conn.transport) {
		x.end()
	}
}

// allRead says that all content was read.
func (x *requestContext) allRead() {
	x.mu.Lock()
	begin := x.wanted && x.unread
	x.unread = false
	x.mu.Unlock()
	if begin {
		x.conn.watch.start(x)
	}
}

// Done implements context.Context. Package context asks for it, whatever it is to tell.
func (x *requestContext) Done() <-chan struct{} {
	x.follow()
	return x.Context.Done()
}
