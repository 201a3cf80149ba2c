package h1

import (
	"errors"
	"net"
	"net/http"
	"time"
)

// How long accepting pauses where a connection can't be taken now: at first, and at most.
const (
	pauseFirst = 5 * time.Millisecond
	pauseMost  = time.Second
)

// ServeListener serves each connection that l accepts, and returns when l fails; after Shutdown
// or Close, which close l, with [http.ErrServerClosed]. Where the system has no descriptor left
// it tries again.
func (s *Server) ServeListener(l net.Listener) error {
	if !s.listen(&l) {
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
		<-time.After(pause)
	}
}

func (s *Server) listen(l *net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.stopping.Load() {
		return false
	}
	if s.accepting == nil {
		s.accepting = make(map[*net.Listener]struct{})
	}
	s.accepting[l] = struct{}{}
	return true
}

func (s *Server) unlisten(l *net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.accepting, l)
}

// closeListeners lets no more connections come.
func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.accepting {
		_ = (*l).Close()
	}
}
