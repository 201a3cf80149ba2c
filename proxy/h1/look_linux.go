package h1

import (
	"errors"
	"net"
	"sync"
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

// endedBy asks by poll.
func endedBy(transport syscall.RawConn, poll func([]unix.PollFd, int) (int, error)) bool {
	l, _ := looks.Get().(*look)
	l.over, l.poll = true, poll
	err := transport.Control(l.do)
	over := err != nil || l.over
	l.poll = nil
	looks.Put(l)
	return over
}

// look is one look whether a connection has ended. It is used again, so that none allocates.
type look struct {
	asked [1]unix.PollFd
	over  bool
	poll  func([]unix.PollFd, int) (int, error)
	do    func(fd uintptr) // ask, for the connection
}

var looks = sync.Pool{New: func() any {
	l := new(look)
	l.do = l.ask
	return l
}}

// ask polls once. A signal, with which Go's scheduler interrupts threads, is no answer.
func (l *look) ask(fd uintptr) {
	l.asked[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP}
	n, err := l.poll(l.asked[:], 0)
	for errors.Is(err, unix.EINTR) {
		n, err = l.poll(l.asked[:], 0)
	}
	l.over = n != 0 || err != nil
}
