package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ServeRun answers on a listener of one run's own until it is closed or Shutdown; then it returns
// nil. What arrives there is for the run with this token digest (see [TokenDigest]) and needs no
// credentials. Those of another run are refused with 407. For clients that can't be given any.
//
// Whoever reaches the listener acts for the run. So only the run's own processes may reach it.
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
	return &ownConn{wrapped{c}, l.digest}, nil
}

type ownConn struct {
	wrapped
	digest string
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

// ownerOf is the token digest of the run whose listener a request came by. It is empty for shared
// listeners.
func ownerOf(ctx context.Context) string {
	digest, _ := ctx.Value(ownerKey{}).(string)
	return digest
}

// drainRetryAfter is what a refusal while draining or overloaded, or by rules of before, asks for.
const drainRetryAfter = time.Second

// connectionLimit bounds the client connections of all listeners together, and leaves
// descriptors to what is no connection of a client.
type connectionLimit struct {
	most int64
	now  atomic.Int64
	// highest is the highest descriptor that a connection may have, 0 for any. A system
	// gives the lowest one that is free: so many are open, of whatever kind.
	highest uintptr
	// over answers a connection over the limit, and closes it.
	over func(net.Conn)
}

func newConnectionLimit(most, highest int) *connectionLimit {
	return &connectionLimit{most: int64(most), highest: uintptr(max(highest, 0))}
}

// tooHigh reports whether a connection's descriptor is one of those that are left to
// others.
func (l *connectionLimit) tooHigh(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok || l.highest == 0 {
		return false
	}
	high := true
	raw, err := s.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { high = fd > l.highest })
	}
	return err != nil || high
}

func (l *connectionLimit) wrap(inner net.Listener) net.Listener {
	return &limitedListener{Listener: inner, limit: l}
}

type limitedListener struct {
	net.Listener
	limit *connectionLimit
}

// Accept implements net.Listener. A connection over the limit is answered with
// 503 and closed, whatever it asks.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.limit.now.Add(1) <= l.limit.most && !l.limit.tooHigh(c) {
			return &limitedConn{wrapped: wrapped{c}, limit: l.limit}, nil
		}
		l.limit.now.Add(-1)
		go l.limit.over(c)
	}
}

// overloaded says 503 `overloaded` to a connection over the limit, and tells of it.
func (p *Proxy) overloaded(c net.Conn) {
	f := refuse(problemOverloaded, "Too many connections are open; nothing was sent.")
	f.retryAfter = drainRetryAfter
	resp := f.response(&http.Request{}, nil, p.config.Help)
	defer func() { _ = resp.Body.Close() }()
	resp.Header.Set("Connection", "close")
	resp.Header.Set("Date", p.config.Clock.Now().UTC().Format(http.TimeFormat))
	var whole bytes.Buffer
	err := resp.Write(&whole)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(faultLinger))
		_, err = c.Write(whole.Bytes())
	}
	p.noteRefused(c, nil, f.problem, f.detail, resp.StatusCode, err == nil)
	closeWrite(c)
	// What nobody has read would reset the connection, and the client might lose the answer (RFC 9112 §9.6).
	_, _ = io.CopyN(io.Discard, c, faultDrain)
	_ = c.Close()
}

type limitedConn struct {
	wrapped
	limit *connectionLimit
	once  sync.Once
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.once.Do(func() { c.limit.now.Add(-1) })
	return c.Conn.Close()
}
