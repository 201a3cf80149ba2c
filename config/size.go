package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. It is never negative in a loaded [Config].
type Size int64

// Units of [Size], as IEC 80000-13 names them.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
	TiB       = 1024 * GiB
)

// sizeUnits holds every accepted unit, binary ones from the largest first, since
// String uses the first that divides evenly.
var sizeUnits = []struct {
	name   string
	bytes  Size
	binary bool
}{
	{"TiB", TiB, true},
	{"GiB", GiB, true},
	{"MiB", MiB, true},
	{"KiB", KiB, true},
	{"TB", 1e12, false},
	{"GB", 1e9, false},
	{"MB", 1e6, false},
	{"kB", 1e3, false},
	{"KB", 1e3, false},
	{"B", Byte, false},
}

var errSize = errors.New("a size is a whole number and a unit")

// ParseSize reads a size such as 10MiB, 64KiB, 1GB, 512B or a bare number of
// bytes. Units are case-sensitive: k is 1000 in kB and KB, 1024 in KiB. A
// fraction, a sign, an unknown unit and a size of 8 EiB or more are errors.
func ParseSize(s string) (Size, error) {
	digits := strings.TrimRight(s, "TGMKkiB ")
	unit := strings.TrimSpace(s[len(digits):])
	if digits == "" || strings.TrimLeft(digits, "0123456789") != "" {
		return 0, errSize
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s does not fit 63 bits", digits)
	}
	per, ok := unitBytes(unit)
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", unit)
	}
	if n > math.MaxInt64/int64(per) {
		return 0, fmt.Errorf("%s does not fit 63 bits", s)
	}
	return Size(n) * per, nil
}

func unitBytes(name string) (Size, bool) {
	if name == "" {
		return Byte, true
	}
	for _, u := range sizeUnits {
		if u.name == name {
			return u.bytes, true
		}
	}
	return 0, false
}

// String writes the size with the largest binary unit that divides it, so that
// [ParseSize] gives it back exactly.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if u.binary && s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
