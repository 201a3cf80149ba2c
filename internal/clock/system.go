package clock

import (
	"crypto/rand"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// System returns the clocks of this machine. It is supported on Linux and macOS.
//
// Where the boot can't be identified, BootID is a random name made once for this process. Its readings then compare
// with no other process's, which is the safe side.
func System() Clock { return system{bootID: processBootID()} }

type system struct{ bootID string }

func (system) Now() time.Time      { return time.Now().Round(0) }
func (system) Mono() time.Duration { return readMono() }
func (system) Boot() time.Duration { return read(bootID) }
func (s system) BootID() string    { return s.bootID }

// read returns the clock's reading. The call fails only for a clock that the kernel does not have. Both are older than
// any kernel that Go supports. To continue without a clock that guards sendings would be worse than to end.
func read(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("clock: clock_gettime: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

var processBootID = sync.OnceValue(func() string {
	if id := identifyBoot(); id != "" {
		return id
	}
	return "process-" + rand.Text()
})
