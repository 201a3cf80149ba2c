package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock_gettime(3) of macOS: CLOCK_UPTIME_RAW does not count time asleep. Both
// CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW do, and only the latter is never
// adjusted.
const (
	monoID = unix.CLOCK_UPTIME_RAW
	bootID = unix.CLOCK_MONOTONIC_RAW
)

func readMono() time.Duration { return read(monoID) }

func identifyBoot() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
