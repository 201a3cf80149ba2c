package h1_test

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/proxy/h1"
)

// scripted is a listener that accepts what it is told to, and then waits for its end.
type scripted struct {
	accepts []error // nil for a connection
	client  chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func newScripted(accepts ...error) *scripted {
	return &scripted{accepts: accepts, client: make(chan net.Conn, len(accepts)), closed: make(chan struct{})}
}

func (l *scripted) Accept() (net.Conn, error) {
	if len(l.accepts) == 0 {
		<-l.closed
		return nil, net.ErrClosed
	}
	next := l.accepts[0]
	l.accepts = l.accepts[1:]
	if next != nil {
		return nil, &net.OpError{Op: "accept", Err: next}
	}
	client, server := net.Pipe()
	l.client <- client
	return server, nil
}

func (l *scripted) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*scripted) Addr() net.Addr { return &net.UnixAddr{} }

func listening() *h1.Server {
	return &h1.Server{Handler: http.HandlerFunc(hello), HeadTimeout: headTime, IdleTimeout: idleTime, MaxHead: 64 << 10}
}

// A system without a free descriptor has one later: that ends no listener, nor is it asked all
// the time.
func TestALackOfDescriptorsIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lack := make([]error, 0, 21)
		for range 10 {
			lack = append(lack, syscall.EMFILE, syscall.ENFILE)
		}
		l, s := newScripted(append(lack, nil)...), listening()
		began, ended := time.Now(), make(chan error, 1)
		go func() { ended <- s.ServeListener(l) }()
		client := <-l.client
		if took := time.Since(began); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("twenty tries took %v", took)
		}
		_ = client.Close()
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// Nor does it hold up the end of its server.
func TestTheEndDoesNotWaitForDescriptors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lack := make([]error, 20)
		for i := range lack {
			lack[i] = syscall.EMFILE
		}
		l, s := newScripted(lack...), listening()
		ended := make(chan error, 1)
		go func() { ended <- s.ServeListener(l) }()
		<-time.After(5*time.Second + 10*time.Millisecond)
		synctest.Wait()
		began := time.Now()
		_ = s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) || time.Since(began) > 0 {
			t.Errorf("it ended with %v, after %v", err, time.Since(began))
		}
	})
}

func TestAListenerThatFailsIsToldOf(t *testing.T) {
	t.Parallel()
	if err := listening().ServeListener(newScripted(syscall.EINVAL)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("got %v", err)
	}
	l := newScripted()
	_ = l.Close()
	if err := listening().ServeListener(l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("one that its owner closed: %v", err)
	}
}

// Nothing is accepted once the server is to end, by a listener that comes later either.
func TestListenersEndWithTheirServer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *h1.Server) error{
		"Shutdown": func(t *testing.T, s *h1.Server) error { t.Helper(); return s.Shutdown(t.Context()) },
		"Close":    func(_ *testing.T, s *h1.Server) error { return s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, ended := listening(), make(chan error, 2)
				listeners := []*scripted{newScripted(), newScripted(), newScripted()}
				for _, l := range listeners[:2] {
					go func() { ended <- s.ServeListener(l) }()
				}
				synctest.Wait()
				if err := end(t, s); err != nil {
					t.Error(err)
				}
				for _, err := range []error{<-ended, <-ended, s.ServeListener(listeners[2])} {
					if !errors.Is(err, http.ErrServerClosed) {
						t.Errorf("it ended with %v", err)
					}
				}
				for _, l := range listeners {
					<-l.closed
				}
			})
		})
	}
}
