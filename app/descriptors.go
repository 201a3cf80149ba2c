package app

import (
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"keep-proxy/upstream"
)

// spareDescriptors are left to the ledger, to upstreams and to the admin API. Of them, ledgersDescriptors are for the
// ledger alone: without any, it could write no new file and would stop. A client has up to 250 requests at once on one
// connection of HTTP/2. Each may need one to its upstream.
const (
	spareDescriptors   = 512
	ledgersDescriptors = 128
)

// highestDescriptors are the highest that a client's connection may have, and that any other may have. They are 0 if
// the system doesn't say how many there are. Go's runtime has raised the limit as far as it may. Call it once the
// ledger is open, which holds one for each of its tables.
func highestDescriptors() (clients, others int) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, 0
	}
	clients = clientDescriptors(limit.Cur, usedDescriptors())
	return clients, otherDescriptors(limit.Cur, clients)
}

// descriptorBound keeps connections to upstreams, the lookups before them, and connections of the admin API off the
// ledger's descriptors. The system takes the lowest that is free: so many are open, of whatever kind.
type descriptorBound struct{ highest atomic.Int64 } // 0 for any

// allows reports whether a connection's descriptor isn't the ledger's.
func (b *descriptorBound) allows(c syscall.RawConn) bool {
	highest := b.highest.Load()
	low := false
	err := c.Control(func(fd uintptr) { low = int64(fd) <= highest })
	return highest == 0 || err == nil && low
}

// control is what a dialer asks before it connects.
func (b *descriptorBound) control(_, _ string, c syscall.RawConn) error {
	if b.allows(c) {
		return nil
	}
	return errLedgers
}

// errLedgers refuses one of the ledger's descriptors: nothing was connected to.
var errLedgers = &upstream.Error{Class: upstream.ErrorDial, Text: "connecting: too many files are open, and the last are the ledger's"}

// resolver looks names up without the ledger's descriptors. Each name that is asked for at once takes two, before
// anything is connected.
func (b *descriptorBound) resolver() *net.Resolver {
	d := &net.Dialer{Control: b.control}
	return &net.Resolver{Dial: d.DialContext}
}

// refused reports whether a lookup failed because of the bound; package net keeps no more
// than its text.
func (*descriptorBound) refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), errLedgers.Text)
}

// wrap closes what is accepted beyond the bound. Without a token anybody on this machine can
// connect to the admin API.
func (b *descriptorBound) wrap(l net.Listener) net.Listener { return boundListener{l, b} }

type boundListener struct {
	net.Listener
	bound *descriptorBound
}

// Accept implements net.Listener.
func (l boundListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s, ok := c.(syscall.Conn)
		if !ok {
			return c, nil
		}
		if raw, err := s.SyscallConn(); err == nil && l.bound.allows(raw) {
			return c, nil
		}
		_ = c.Close()
	}
}

// otherDescriptors is the highest that a connection which is no client's may have. A part of what is above the highest
// of clients is the ledger's.
func otherDescriptors(limit uint64, clients int) int {
	const many = 1 << 30
	above := int(min(limit, many)) - clients
	return clients + max(above-min(ledgersDescriptors, above/4), 0)
}

// usedDescriptors is how many are open: the lowest that is free, which the system takes.
func usedDescriptors() uint64 {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	return uint64(f.Fd())
}

// clientDescriptors leaves some of those that are free, and of few of them half. Those in use don't count. A large
// ledger alone may hold half of a small limit, and every client would be turned away.
func clientDescriptors(limit, used uint64) int {
	const many = 1 << 30 // Of unlimited ones.
	limit = min(limit, many)
	free := limit - min(used, limit)
	return int(limit - min(spareDescriptors, free/2))
}

// noteDescriptors tells an operator that fewer connections are taken than configured. It
// is no warning: who only runs a command can do nothing about it, and needs few.
func (a *App) noteDescriptors(highest int) {
	if most := a.config.Proxy.MaxConnections; highest > 0 && highest < most {
		a.options.Log.Info().Int("max_connections", most).Int("descriptors", highest).
			Msg("the limit of open files allows fewer connections than proxy.max_connections: those beyond it are answered 503; " +
				"raise it (LimitNOFILE= of systemd, ulimit -n), or lower proxy.max_connections")
	}
}
