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
