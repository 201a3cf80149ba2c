package app

import (
	"os"

	"golang.org/x/sys/unix"
)

// spareDescriptors are left to the ledger, to upstreams and to the admin API: without
// any, the ledger could write no new file and would stop.
const spareDescriptors = 512

// highestDescriptor is the highest that a client's connection may have; 0 if the system
// doesn't say how many there are. Go's runtime has raised the limit as far as it may. Call
// it once the ledger is open, which holds one for each of its tables.
func highestDescriptor() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return clientDescriptors(limit.Cur, usedDescriptors())
}

// usedDescriptors is how many are open: the lowest that is free, which is what is given.
func usedDescriptors() uint64 {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	return uint64(f.Fd())
}

// clientDescriptors leaves some of those that are free, and of few of them half. Those in
// use don't count: a large ledger alone may hold half of a small limit, and every client
// would be turned away.
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
