package h1_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/proxy/h1"
)

// looker is what the context of a request is, besides.
type looker interface {
	CanLook() bool
	Look()
}

// wrapped is a connection that something was put around.
type wrapped struct{ inner net.Conn }

func (w wrapped) Read(p []byte) (int, error)         { return w.inner.Read(p) }
func (w wrapped) Write(p []byte) (int, error)        { return w.inner.Write(p) }
func (w wrapped) Close() error                       { return w.inner.Close() }
func (w wrapped) LocalAddr() net.Addr                { return w.inner.LocalAddr() }
func (w wrapped) RemoteAddr() net.Addr               { return w.inner.RemoteAddr() }
func (w wrapped) SetDeadline(t time.Time) error      { return w.inner.SetDeadline(t) }
func (w wrapped) SetReadDeadline(t time.Time) error  { return w.inner.SetReadDeadline(t) }
func (w wrapped) SetWriteDeadline(t time.Time) error { return w.inner.SetWriteDeadline(t) }
func (w wrapped) NetConn() net.Conn                  { return w.inner }

// A client that goes is seen by who looks, whether or not it said more before.
func TestALookSeesTheClientGo(t *testing.T) {
	t.Parallel()
	const post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab"
	for name, c := range map[string]struct {
		says  string
		leave func(*net.TCPConn) error
		// followed says that somebody waits for its going beside.
		followed bool
	}{
		"by closing":                      {post, (*net.TCPConn).Close, false},
		"by ending its direction":         {get, (*net.TCPConn).CloseWrite, false},
		"by a reset":                      {get, func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() }, false},
		"with content that nobody read":   {post[:len(post)-1], (*net.TCPConn).Close, false},
		"after it has asked for the next": {get + get, (*net.TCPConn).Close, false},
		"by closing, and is followed":     {get, (*net.TCPConn).Close, true},
		// What follows it ends where the next request begins.
		"after it asks for the next meanwhile": {get, func(c *net.TCPConn) error {
			_, _ = c.Write([]byte(get))
			return c.Close()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leave, gone := make(chan struct{}), make(chan struct{})
			var first context.Context
			s := &h1.Server{
				HeadTimeout: headTime, IdleTimeout: idleTime, MaxHead: 64 << 10,
				Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					l, ok := r.Context().(looker)
					if !ok || !l.CanLook() {
						t.Error("nobody can look")
						panic(http.ErrAbortHandler)
					}
					if first != nil {
						return
					}
					first = r.Context()
					if c.followed {
						_ = first.Done()
					}
					if l.Look(); first.Err() != nil {
						t.Error("gone at once")
					}
					close(leave)
					<-gone
					for begun := time.Now(); first.Err() == nil && time.Since(begun) < 2*time.Minute; {
						l.Look()
					}
					if first.Err() == nil {
						t.Error("its going is not seen")
					}
					select {
					case <-first.Done():
					default:
						t.Error("who waits for it isn't told")
					}
				}),
			}
			client, server := connected(t)
			ended := make(chan struct{})
			go func() {
				s.Serve(wrapped{wrapped{server}})
				close(ended)
			}()
			if _, err := client.Write([]byte(c.says)); err != nil {
				t.Fatal(err)
			}
			<-leave
			if err := c.leave(client); err != nil {
				t.Fatal(err)
			}
			close(gone)
			<-ended
		})
	}
}

// connected is a client's connection, and the server's end of it.
func connected(t *testing.T) (client *net.TCPConn, server net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn), server
}

// What can't be looked at isn't, and is over no sooner for that.
func TestWhatCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			l := r.Context().(looker)
			if l.CanLook() {
				t.Error("a pipe can be looked at")
			}
			if l.Look(); r.Context().Err() != nil {
				t.Error("it is over")
			}
			hello(w, r)
		})
		s.say(get)
		s.want(http.StatusOK, "hello")
	})
}
