package h1

import (
	"errors"
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
func ended(transport syscall.RawConn) bool { return endedBy(transport, unix.Poll) }

// endedBy asks by poll. A signal, with which Go's scheduler interrupts threads, is no answer.
func endedBy(transport syscall.RawConn, poll func([]unix.PollFd, int) (int, error)) bool {
	over := true
	err := transport.Control(func(fd uintptr) {
		asked := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := poll(asked[:], 0)
		for errors.Is(err, unix.EINTR) {
			n, err = poll(asked[:], 0)
		}
		over = n != 0 || err != nil
	})
	return err != nil || over
}
