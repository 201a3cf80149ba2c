//go:build !linux

package h1

import (
	"net"
	"syscall"
)

// transportOf finds nothing: how a system tells that the peer has ended differs.
func transportOf(net.Conn) syscall.RawConn { return nil }

// ended is asked of nothing here.
func ended(syscall.RawConn) bool { return true }
