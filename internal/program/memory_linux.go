package program

import (
	"errors"

	"golang.org/x/sys/unix"
)

// limitMemory bounds the data that a process, and what it starts from now on, may have.
// One that is gone already needs no bound.
func limitMemory(pid int, bytes int64) error {
	if bytes <= 0 {
		return nil
	}
	limit := unix.Rlimit{Cur: uint64(bytes), Max: uint64(bytes)}
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
