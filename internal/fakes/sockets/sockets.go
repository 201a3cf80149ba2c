// Package sockets tells tests what the system was asked for of a connection. A connection
// that isn't one of the system's fails the test.
package sockets

import (
	"net"
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
