package clock

import (
	"strconv"
	"sync"
	"time"
)

// Fake is a clock for tests: it moves only when told to. Make it with [NewFake].
// Its methods may be called concurrently.
type Fake struct {
	mu         sync.Mutex
	wall       time.Time
	mono, boot time.Duration
	boots      int
}

// NewFake returns a fake clock that shows the given wall time, an hour after its
// first boot.
func NewFake(wall time.Time) *Fake {
	return &Fake{wall: wall.Round(0), mono: time.Hour, boot: time.Hour, boots: 1}
}

// Now returns the wall time.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wall
}

// Mono returns the time since boot without sleep.
func (f *Fake) Mono() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mono
}

// Boot returns the time since boot with sleep.
func (f *Fake) Boot() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.boot
}

// BootID returns "boot-1", "boot-2" and so on.
func (f *Fake) BootID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return "boot-" + strconv.Itoa(f.boots)
}

// Advance lets time pass on every clock.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(d)
	f.mono += d
	f.boot += d
}

// JumpWall sets the wall clock forward, or back for a negative d; the others go
// on undisturbed.
func (f *Fake) JumpWall(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(d)
}

// Sleep lets the machine sleep: wall and boot time pass, monotonic time does not.
func (f *Fake) Sleep(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(d)
	f.boot += d
}

// Reboot starts a new boot after the given wall time: the other two clocks start
// again from zero.
func (f *Fake) Reboot(down time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(down)
	f.mono, f.boot = 0, 0
	f.boots++
}
