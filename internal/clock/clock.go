// Package clock tells the time on the three clocks that decisions need, and
// says which of them is for what.
//
// The wall clock ([Clock.Now]) is for people, for vendors' windows, and for comparing with an upstream's time. It may
// jump either way.
//
// The monotonic clock ([Clock.Mono]) is for settle times and the spacing of confirmations. It stands still while this
// machine sleeps, since nothing can be concluded from the passing of time then. Its values can be compared between
// processes of one boot.
//
// The boot-time clock ([Clock.Boot]) is for deadlines that guard a sending and for the age of a vendor key. It goes on
// while this machine sleeps, since the upstream's time does.
//
// Values of the last two mean nothing under another [Clock.BootID].
//
// Go's own monotonic reading (inside time.Time) and its timers stand still during
// sleep. A timer that guards a deadline must therefore be short, and look at the
// boot-time clock whenever it fires.
//
// # Failure
//
// A boot that can't be identified gets a name that no other process has. So no reading is compared across a restart. A
// clock that the kernel doesn't have ends the program by a panic. Without it neither a deadline nor a settle time could
// be kept.
package clock

import "time"

// Clock tells the time. Its methods may be called concurrently.
type Clock interface {
	// Now returns the wall time, without Go's monotonic reading. Subtracting two of them is the difference of wall
	// clocks.
	Now() time.Time
	// Mono returns the time since some instant of this boot. Its clock never jumps and stands still while the machine
	// sleeps.
	Mono() time.Duration
	// Boot returns the time since some instant of this boot. Its clock never jumps and runs on while the machine
	// sleeps.
	Boot() time.Duration
	// BootID names the boot within which Mono and Boot can be compared. It is
	// never empty.
	BootID() string
}

// Stamp is one moment on every clock. It is what is stored.
type Stamp struct {
	Wall   time.Time     `json:"wall"`
	Mono   time.Duration `json:"mono"`
	Boot   time.Duration `json:"boot"`
	BootID string        `json:"boot_id"`
}

// Take reads every clock once. The readings lie some hundred nanoseconds apart.
func Take(c Clock) Stamp {
	return Stamp{Wall: c.Now(), Mono: c.Mono(), Boot: c.Boot(), BootID: c.BootID()}
}
