package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// drops makes the system drop whatever comes on a connection, as a router does that has forgotten
// it: what is sent there is never acknowledged.
func drops(t *testing.T, c net.Conn) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // No byte of any packet.
	if controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing[0]})
	}); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
}

// accepted keeps the connections that a server was given.
type accepted struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (a *accepted) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.conns = append(a.conns, c)
	}
	return c, err
}

func (a *accepted) all() []net.Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conns
}

// A connection over HTTP/2 that was dropped in silence costs the reads on it, and no later one: the
// transport would go on using it until the system gives it up.
func TestAReadThatNobodyHearsIsTheLastOnItsConnection(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	conns := &accepted{Listener: srv.Listener}
	srv.Listener, srv.EnableHTTP2 = conns, true
	srv.StartTLS()
	defer srv.Close()
	p := NewPassthrough(Config{Roots: srvRoots(srv)})
	defer p.CloseIdle()
	read := func() (string, error) {
		ctx, leaves := context.WithTimeout(t.Context(), 3*time.Second)
		defer leaves()
		resp, err := p.RoundTrip(get(t, mustURL(t, srv.URL)).WithContext(ctx))
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		content, err := io.ReadAll(resp.Body)
		return string(content), err
	}
	for range 2 {
		if got, err := read(); got != "HTTP/2.0" || err != nil {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	if n := len(conns.all()); n != 1 {
		t.Fatalf("two reads over %d connections, want 1", n)
	}
	drops(t, conns.all()[0])
	if _, err := read(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("what nobody hears: %v, want a timeout", err)
	}
	if got, err := read(); got != "HTTP/2.0" || err != nil {
		t.Errorf("the next read: %q, %v, want one over another connection", got, err)
	}
}
