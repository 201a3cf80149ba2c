package upstream

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unheardAfter is how often in a row the system resent in vain, each time after twice the wait.
// That is over a second without a sign of the peer's system, however busy that is.
const unheardAfter = 3

// unheard reports whether a connection has no receiver any more, as behind a router that dropped
// it. One that can't be asked isn't.
func unheard(c net.Conn) bool {
	at, ok := tcpBelow(c).(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := at.SyscallConn()
	if err != nil {
		return false
	}
	again := uint8(0)
	err = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO); err == nil {
			again = info.Retransmits
		}
	})
	return err == nil && again >= unheardAfter
}
