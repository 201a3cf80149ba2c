package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// ServeRun answers on a listener of one run's own until it is closed or Shutdown;
// then it returns nil. What arrives there is on behalf of the run with this token
// digest (see [TokenDigest]) and needs no credentials; those of another run are
// refused with 407. For clients that can't be given any.
//
// Who reaches the listener acts for the run, so it must not be reachable by others
// than the run's own processes.
func (p *Proxy) ServeRun(l net.Listener, digest string) error {
	err := p.outer.ServeListener(guardedListener{&ownListener{Listener: p.limit.wrap(l), digest: digest}, p})
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// ownListener marks its connections with the run that they belong to.
type ownListener struct {
	net.Listener
	digest string
}

// Accept implements net.Listener.
func (l *ownListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &ownConn{Conn: c, digest: l.digest}, nil
}

type ownConn struct {
	net.Conn
	digest string
}

// NetConn returns the connection below.
func (c *ownConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends the sending direction, where the connection has two.
func (c *ownConn) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}

type ownerKey struct{}

// withOwner is a server's ConnContext: it notes whose listener the connection
// came in by.
func withOwner(ctx context.Context, c net.Conn) context.Context {
	for c != nil {
		if own, ok := c.(*ownConn); ok {
			return context.WithValue(ctx, ownerKey{}, own.digest)
		}
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		c = wrapped.NetConn()
	}
	return ctx
}

// ownerOf is the token digest of the run whose listener a request came in by; empty
// for the listeners that all share.
func ownerOf(ctx context.Context) string {
	digest, _ := ctx.Value(ownerKey{}).(string)
	return digest
}
