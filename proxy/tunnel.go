package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// tunnel is a client's connection after CONNECT. What was authenticated and
// asked for there holds for every request inside.
type tunnel struct {
	net.Conn
	// target is the normalised host:port of the CONNECT request.
	target string
	// remote is the client's address.
	remote string
	caller caller
	// agreed is an authority that is known to be the target's.
	agreed atomic.Pointer[string]
	// secure says that TLS ended here.
	secure bool
	// first holds what was read ahead of the first byte of the tunnel.
	first io.Reader
	// ended says that the client ended its direction of the connection.
	ended atomic.Bool
	// told says that the log has, or gets, a line of something that was asked in it.
	told atomic.Bool
}

// Read gives what was read ahead before it reads on.
func (t *tunnel) Read(p []byte) (int, error) {
	if t.first == nil {
		return t.read(p)
	}
	n, err := t.first.Read(p)
	if err == io.EOF {
		t.first = nil
		if n == 0 {
			return t.read(p)
		}
		err = nil
	}
	return n, err
}

func (t *tunnel) read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		t.ended.Store(true)
	}
	return n, err
}

// NetConn returns the connection below.
func (t *tunnel) NetConn() net.Conn { return t.Conn }

// CloseWrite ends the sending direction, where the connection has two.
func (t *tunnel) CloseWrite() error {
	closeWrite(t.Conn)
	return nil
}

// bufferedConn gives the bytes that a server had buffered when its connection
// was hijacked.
type bufferedConn struct {
	net.Conn
	buffered *bufio.Reader
}

// Read gives the buffered bytes first.
func (b *bufferedConn) Read(p []byte) (int, error) {
	if b.buffered == nil {
		return b.Conn.Read(p)
	}
	if b.buffered.Buffered() == 0 {
		b.buffered = nil
		return b.Conn.Read(p)
	}
	return b.buffered.Read(p)
}

// NetConn returns the connection below.
func (b *bufferedConn) NetConn() net.Conn { return b.Conn }

// CloseWrite ends the sending direction, where the connection has two.
func (b *bufferedConn) CloseWrite() error {
	closeWrite(b.Conn)
	return nil
}

// hijackKeeper makes bytes that arrived together with CONNECT (a TLS
// ClientHello, say) part of the hijacked connection: goproxy drops the buffer in
// which they are.
type hijackKeeper struct{ http.ResponseWriter }

// Unwrap serves http.ResponseController.
func (h hijackKeeper) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijackKeeper) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if g := guardOf(c); g != nil {
		c = g.release()
	}
	if rw.Reader.Buffered() > 0 {
		c = &bufferedConn{Conn: c, buffered: rw.Reader}
	}
	return c, rw, nil
}

// handover is a listener whose connections are handed to it. One long-lived
// server serves every tunnel through it, so that its Shutdown, its idle timeouts
// and its GOAWAY reach them all.
type handover struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandover() *handover {
	return &handover{conns: make(chan net.Conn), done: make(chan struct{})}
}

// push hands c over; after Close it closes c, and reports so.
func (h *handover) push(c net.Conn) (taken bool) {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		_ = c.Close()
		return false
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener; the listener has no address of its own.
func (h *handover) Addr() net.Addr { return &net.UnixAddr{Name: "tunnels", Net: "unix"} }
