package ledger

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Stamp is one moment on every clock that a decision may need. Wall is for people and vendor windows. Mono
// (CLOCK_MONOTONIC) stands still in sleep: settle is measured on it. Boot (CLOCK_BOOTTIME) runs on: resend windows
// take the larger of wall and boot age. Those of different boots (BootID) can't be compared.
type Stamp struct {
	Wall   time.Time     `json:"wall"`
	Mono   time.Duration `json:"mono"`
	Boot   time.Duration `json:"boot"`
	BootID string        `json:"boot_id"`
}

// MonoSince returns the monotonic time from earlier to s, if they are of the same boot, in order.
func (s Stamp) MonoSince(earlier Stamp) (time.Duration, bool) {
	if s.BootID == "" || s.BootID != earlier.BootID || s.Mono < earlier.Mono {
		return 0, false
	}
	return s.Mono - earlier.Mono, true
}

// sameBoot reports whether both are of one start of the machine.
func (s Stamp) sameBoot(other Stamp) bool { return s.BootID != "" && s.BootID == other.BootID }

// Drift returns how much further than the boot clock the wall clock went since earlier. It reports whether both are of
// one boot, in order.
func (s Stamp) Drift(earlier Stamp) (time.Duration, bool) {
	if !s.sameBoot(earlier) || s.Boot < earlier.Boot {
		return 0, false
	}
	return (s.Wall.Sub(earlier.Wall) - (s.Boot - earlier.Boot)).Abs(), true
}

// WallOf returns what the wall clock of s would have shown at an earlier moment of the same boot. It reports whether
// that can be told.
func (s Stamp) WallOf(earlier Stamp) (time.Time, bool) {
	if s.BootID == "" || s.BootID != earlier.BootID || s.Boot < earlier.Boot {
		return time.Time{}, false
	}
	return s.Wall.Add(earlier.Boot - s.Boot), true
}

// Age returns the larger of wall and boot time since earlier, never negative. Of different boots the wall clock alone
// counts, which may be wrong.
func (s Stamp) Age(earlier Stamp) time.Duration {
	age := s.Wall.Sub(earlier.Wall)
	if s.BootID != "" && s.BootID == earlier.BootID {
		age = max(age, s.Boot-earlier.Boot)
	}
	return max(age, 0)
}

// stampSize is the length of a stamp in binary, without its boot's id.
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
