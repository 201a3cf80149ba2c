package proxy

import (
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// drainRetryAfter is what a refusal while draining or overloaded asks for.
const drainRetryAfter = time.Second

// connectionLimit bounds the client connections of all listeners together.
type connectionLimit struct {
	most int64
	now  atomic.Int64
}

func newConnectionLimit(most int) *connectionLimit { return &connectionLimit{most: int64(most)} }

func (l *connectionLimit) wrap(inner net.Listener) net.Listener {
	return &limitedListener{Listener: inner, limit: l}
}

type limitedListener struct {
	net.Listener
	limit *connectionLimit
}

// Accept implements net.Listener. A connection over the limit is answered with
// 503 and closed, before anything of it is read.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.limit.now.Add(1) <= l.limit.most {
			return &limitedConn{Conn: c, limit: l.limit}, nil
		}
		l.limit.now.Add(-1)
		go turnAway(c)
	}
}

// turnAway says 503 `overloaded` to a connection over the limit.
func turnAway(c net.Conn) {
	f := refuse(problemOverloaded, "Too many connections are open; nothing was sent.")
	f.retryAfter = drainRetryAfter
	resp := f.response(&http.Request{}, "")
	defer func() { _ = resp.Body.Close() }()
	resp.Header.Set("Connection", "close")
	resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_ = resp.Write(c)
	closeWrite(c)
	_ = c.Close()
}

type limitedConn struct {
	net.Conn
	limit *connectionLimit
	once  sync.Once
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.once.Do(func() { c.limit.now.Add(-1) })
	return c.Conn.Close()
}

// CloseWrite ends the sending direction, where the connection has two.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}
