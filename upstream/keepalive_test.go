package upstream

import (
	"net"
	"syscall"
	"testing"
)

// What is carried without a limit of silence ends when its peer is gone: the system asks.
func TestConnectionsToUpstreamsAskWhetherThePeerIsThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := newDialer(Config{}).dialTCP(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var on int
	if controlErr := raw.Control(func(fd uintptr) { on, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) }); controlErr != nil {
		t.Fatal(controlErr)
	}
	if err != nil || on == 0 {
		t.Errorf("SO_KEEPALIVE is %d, %v", on, err)
	}
}
