package h1

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// newFor is how long a connection without a request yet outlives the start of a shutdown. Its
	// first request may be on its way.
	newFor = 5 * time.Second
	// lookAgain is how often a shutdown looks for such connections.
	lookAgain = 100 * time.Millisecond
)

// Server serves HTTP/1 connections. All fields but ConnContext, ConnState and Refuse are
// required, and must not change once it serves.
type Server struct {
	Handler http.Handler
	// HeadTimeout bounds the arrival of a head from its first byte. For the first head it runs from
	// the start of the connection. IdleTimeout bounds the wait for the next one, to within a second.
	HeadTimeout, IdleTimeout time.Duration
	// MaxHead bounds a head and the trailers, in bytes.
	MaxHead int
	// ConnContext returns the context whose values the connection's requests have.
	ConnContext func(net.Conn) context.Context
	// ConnState is as that of http.Server.
	ConnState func(net.Conn, http.ConnState)
	ErrorLog  *log.Logger
	// Refuse answers a head that can't be read (400), or is over the limit (431), and tells whom it
	// concerns. After it the connection is closed. Nil: the answer is its status in a line of text.
	Refuse func(c net.Conn, status int)

	stopping atomic.Bool
	mu       sync.Mutex
	closed   bool
	conns    map[*conn]struct{}
	// accepting are the listeners of ServeListener, with what tells each to end.
	accepting map[*net.Listener]chan struct{}
	// gone holds one when a connection has ended since it was last looked at.
	gone chan struct{}
}

// Serve serves a connection until its end, or until it was hijacked. After Shutdown or
// Close it closes the connection at once.
func (s *Server) Serve(c net.Conn) {
	one := &conn{server: s, rwc: c, began: time.Now()}
	if !s.add(one) {
		_ = c.Close()
		return
	}
	defer s.remove(one)
	one.ctx, one.transport = context.Background(), transportOf(c)
	if s.ConnContext != nil {
		one.ctx = s.ConnContext(c)
	}
	if secure, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := secure.ConnectionState()
		one.tls = &state
	}
	if a := c.RemoteAddr(); a != nil {
		one.remote = a.String()
	}
	one.serve()
}

func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stopping.Load() {
		return false
	}
	if s.conns == nil {
		s.conns, s.gone = make(map[*conn]struct{}), make(chan struct{}, 1)
	}
	s.conns[c] = struct{}{}
	c.setState(http.StateNew)
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	select {
	case s.gone <- struct{}{}:
	default:
	}
}

// Shutdown closes the listeners and idle connections. It waits until connections with a request
// under way have ended, or ctx has.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.closeListeners()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for !s.closeIdle() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.gone:
		case <-again.C:
		}
	}
	return nil
}

// closeIdle reports whether no connection is left.
func (s *Server) closeIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		switch http.ConnState(c.state.Load()) {
		case http.StateIdle:
			_ = c.rwc.Close()
		case http.StateNew:
			if time.Since(c.began) > newFor {
				_ = c.rwc.Close()
			}
		case http.StateActive, http.StateHijacked, http.StateClosed:
		}
	}
	return len(s.conns) == 0
}

// Close closes the listeners, and all connections that weren't hijacked.
func (s *Server) Close() error {
	s.stopping.Store(true)
	s.closeListeners()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		_ = c.rwc.Close()
	}
	return nil
}

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
	}
}

// How long accepting pauses where a connection can't be taken now: at first, and at most.
const (
	pauseFirst = 5 * time.Millisecond
	pauseMost  = time.Second
)

// ServeListener serves each connection that l accepts, and returns when l fails. After Shutdown or
// Close, which close l, it returns [http.ErrServerClosed]. Where the system has no descriptor left
// it tries again.
func (s *Server) ServeListener(l net.Listener) error {
	ending, ok := s.listen(&l)
	if !ok {
		_ = l.Close()
		return http.ErrServerClosed
	}
	defer s.unlisten(&l)
	for pause := time.Duration(0); ; {
		c, err := l.Accept()
		if err == nil {
			pause = 0
			go s.Serve(c)
			continue
		}
		var passing interface{ Temporary() bool }
		switch {
		case s.stopping.Load():
			return http.ErrServerClosed
		case !errors.As(err, &passing) || !passing.Temporary():
			return err
		}
		pause = min(max(2*pause, pauseFirst), pauseMost)
		s.logf("h1: accept: %v; again in %v", err, pause)
		select {
		case <-time.After(pause):
		case <-ending:
			return http.ErrServerClosed
		}
	}
}

// listen returns what is closed when l is to end.
func (s *Server) listen(l *net.Listener) (ending <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stopping.Load() {
		return nil, false
	}
	if s.accepting == nil {
		s.accepting = make(map[*net.Listener]chan struct{})
	}
	ended := make(chan struct{})
	s.accepting[l] = ended
	return ended, true
}

func (s *Server) unlisten(l *net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.accepting, l)
}

// closeListeners lets no more connections come, and wakes those that pause.
func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, ending := range s.accepting {
		_ = (*l).Close()
		close(ending)
		delete(s.accepting, l)
	}
}
