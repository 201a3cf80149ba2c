package app

import "golang.org/x/sys/unix"

// spareDescriptors are left to the ledger, to upstreams and to the admin API: without
// any, the ledger could write no new file and would stop.
const spareDescriptors = 512

// highestDescriptor is the highest that a client's connection may have; 0 if the system
// doesn't say how many there are. Go's runtime has raised the limit as far as it may. At
// least half of a small number is the clients'.
func highestDescriptor() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return clientDescriptors(limit.Cur)
}

func clientDescriptors(limit uint64) int {
	const many = 1 << 30 // Of unlimited ones.
	limit = min(limit, many)
	return int(limit - min(spareDescriptors, limit/2))
}

// noteDescriptors tells an operator that fewer connections are taken than configured.
func (a *App) noteDescriptors(highest int) {
	if most := a.config.Proxy.MaxConnections; highest > 0 && highest < most {
		a.options.Log.Warn().Int("max_connections", most).Int("descriptors", highest).
			Msg("the limit of open files allows fewer connections than proxy.max_connections: those beyond it are answered 503; " +
				"raise it (LimitNOFILE= of systemd, ulimit -n), or lower proxy.max_connections")
	}
}
