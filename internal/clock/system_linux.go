package clock

import (
	"os"
	"strings"
	"time"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
)

// clock_gettime(2): CLOCK_MONOTONIC does not count suspended time,
// CLOCK_BOOTTIME does.
const bootID = unix.CLOCK_BOOTTIME

// readMono is CLOCK_MONOTONIC as Go's runtime reads it, without a system call. Nothing
// fakes it, as it does time.Now in a bubble of testing/synctest.
func readMono() time.Duration { return time.Duration(nanotime()) }

//go:linkname nanotime runtime.nanotime
func nanotime() int64

// identifyBoot names the boot and, inside a time namespace (time_namespaces(7)),
// its offsets: two namespaces of one boot tell different times.
func identifyBoot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	// A kernel without time namespaces has no such file, and no offsets.
	offsets, _ := os.ReadFile("/proc/self/timens_offsets")
	return withOffsets(strings.TrimSpace(string(id)), string(offsets))
}

// withOffsets appends those lines of timens_offsets that hold more than zeros.
func withOffsets(id, offsets string) string {
	for line := range strings.Lines(offsets) {
		fields := strings.Fields(line)
		if len(fields) == 3 && (fields[1] != "0" || fields[2] != "0") {
			id += "+" + strings.Join(fields, ":")
		}
	}
	return id
}
