package ledger

import (
	"encoding/binary"
	"fmt"
	"time"
)

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

// sameBoot reports whether both are of one start of the machine.
func (s Stamp) sameBoot(other Stamp) bool { return s.BootID != "" && s.BootID == other.BootID }

// WallOf returns what the wall clock that shows s.Wall would have shown at an earlier
// moment, and whether that can be told: only the boot-time clock knows how long ago it
// was, and it begins anew with each boot. A wall clock that was set meanwhile showed
// something else then.
func (s Stamp) WallOf(earlier Stamp) (time.Time, bool) {
	if s.BootID == "" || s.BootID != earlier.BootID || s.Boot < earlier.Boot {
		return time.Time{}, false
	}
	return s.Wall.Add(earlier.Boot - s.Boot), true
}

// Age returns the larger of wall and boot time since earlier; it is never
// negative. Of different boots only the wall clock counts, which may still be that of before
// the machine was switched off: who must not take it for less asks for the boot as well.
func (s Stamp) Age(earlier Stamp) time.Duration {
	age := s.Wall.Sub(earlier.Wall)
	if s.BootID != "" && s.BootID == earlier.BootID {
		age = max(age, s.Boot-earlier.Boot)
	}
	return max(age, 0)
}

// stampSize is the length of a stamp in binary, without its boot's id: seconds since
// 1970 and nanoseconds of the wall clock, then Mono and Boot in nanoseconds.
const stampSize = 8 + 4 + 8 + 8

// MarshalBinary implements encoding.BinaryMarshaler; ledgers hold stamps so.
func (s Stamp) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, stampSize+len(s.BootID))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Wall.Unix()))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Wall.Nanosecond()))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Mono))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Boot))
	return append(b, s.BootID...), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. Wall is in UTC.
func (s *Stamp) UnmarshalBinary(b []byte) error {
	if len(b) < stampSize {
		return fmt.Errorf("stamp: %d bytes are too few", len(b))
	}
	nanos := binary.BigEndian.Uint32(b[8:])
	if nanos >= 1e9 {
		return fmt.Errorf("stamp: %d nanoseconds are too many", nanos)
	}
	*s = Stamp{
		Wall:   time.Unix(int64(binary.BigEndian.Uint64(b)), int64(nanos)).UTC(),
		Mono:   time.Duration(binary.BigEndian.Uint64(b[12:])),
		Boot:   time.Duration(binary.BigEndian.Uint64(b[20:])),
		BootID: string(b[stampSize:]),
	}
	return nil
}
