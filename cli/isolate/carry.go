package isolate

import (
	"context"
	"errors"
	"io"
	"net"
)

// carry carries both directions between two connections until both have ended, or ctx ends. The end of one direction is
// passed on. A broken connection resets the other one.
func carry(ctx context.Context, a, b net.Conn) (there, back int64, err error) {
	broken := func() { reset(a); reset(b) }
	defer context.AfterFunc(ctx, broken)()
	defer func() { _, _ = a.Close(), b.Close() }()
	one := func(from, to net.Conn) (int64, error) {
		// Read and write: for short messages splice(2) takes more calls.
		n, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
		if err == nil {
			err = closeWrite(to)
		}
		if err != nil {
			broken()
		}
		return n, err
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		there, err = one(a, b)
		ended <- err
	}()
	back, err = one(b, a)
	return there, back, errors.Join(<-ended, err)
}

// closeWrite ends one direction of a connection.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// reset ends a connection so that nobody takes that for an end in good order.
func reset(c net.Conn) {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapped.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Forward carries what a front gives to a running proxy, until ctx ends.
func Forward(ctx context.Context, front net.Listener, proxy string) {
	for {
		c, err := front.Accept()
		if err != nil {
			return
		}
		go func() {
			there, err := (&net.Dialer{}).DialContext(ctx, "tcp", proxy)
			if err != nil {
				reset(c)
				return
			}
			_, _, _ = carry(ctx, c, there) // The client sees how it ends.
		}()
	}
}
