package ledger

import "time"

// Stamp is one moment on every clock that a decision may need.
//
// Wall is for people and for vendor windows. Mono is CLOCK_MONOTONIC, which
// stands still while the machine sleeps and which processes of one boot share:
// settle times are measured on it. Boot is CLOCK_BOOTTIME, which runs on during
// sleep: resend windows take the larger of wall and boot age. Mono and Boot of
// different boots (BootID) can't be compared.
type Stamp struct {
	Wall   time.Time     `json:"wall"`
	Mono   time.Duration `json:"mono"`
	Boot   time.Duration `json:"boot"`
	BootID string        `json:"boot_id"`
}

// MonoSince returns the monotonic time from earlier to s, and whether the two
// can be compared at all: they must be of the same boot, in order.
func (s Stamp) MonoSince(earlier Stamp) (time.Duration, bool) {
	if s.BootID == "" || s.BootID != earlier.BootID || s.Mono < earlier.Mono {
		return 0, false
	}
	return s.Mono - earlier.Mono, true
}

// Age returns the larger of wall and boot time since earlier; it is never
// negative. Of different boots only the wall clock counts. It bounds how long ago
// something at most happened, as a vendor's window needs it.
func (s Stamp) Age(earlier Stamp) time.Duration {
	age := s.Wall.Sub(earlier.Wall)
	if s.BootID != "" && s.BootID == earlier.BootID {
		age = max(age, s.Boot-earlier.Boot)
	}
	return max(age, 0)
}
