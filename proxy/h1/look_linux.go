package h1

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// transportOf finds what a connection lies on; nil where that can't be looked at.
func transportOf(c net.Conn) syscall.RawConn {
	for {
		if at, ok := c.(syscall.Conn); ok {
			raw, err := at.SyscallConn()
			if err != nil {
				return nil
			}
			return raw
		}
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapped.NetConn()
	}
}

// ended reports whether the peer has ended the connection, or its own direction of it. One
// that was closed here, and one that can't be asked, has ended.
func ended(transport syscall.RawConn) bool {
	over := true
	err := transport.Control(func(fd uintptr) {
		asked := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // Descriptors are small.
		n, err := unix.Poll(asked[:], 0)
		over = n != 0 || err != nil
	})
	return err != nil || over
}
