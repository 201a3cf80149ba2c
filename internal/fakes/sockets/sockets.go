// Package sockets tells tests what the system was asked for of a connection, and where it makes
// none. A connection that isn't one of the system's fails the test.
package sockets

import (
	"net"
	"strconv"
	"syscall"
	"testing"
)

// AsksForItsPeer holds that the system asks now and then whether the connection's peer is
// still there.
func AsksForItsPeer(t *testing.T, c net.Conn) {
	t.Helper()
	system, ok := c.(syscall.Conn)
	if !ok {
		t.Fatalf("%T is no connection of the system's", c)
	}
	raw, err := system.SyscallConn()
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

// Deaf is an address that refuses connections, and that nobody else gets during the test: bound, but
// not listened on.
func Deaf(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	bound, ok := name.(*syscall.SockaddrInet4)
	if err != nil || !ok {
		t.Fatalf("bound to %v: %v", name, err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.Port))
}
