package wire

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that reads and writes as Go prints it ("1h30m0s").
type Duration time.Duration

// String prints d as [time.Duration] does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText writes d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [time.ParseDuration] reads.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no duration; write it like 90s or 1h30m", b)
	}
	*d = Duration(parsed)
	return nil
}
