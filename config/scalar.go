package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// reading is what the meaning of a text depends on besides the text.
type reading struct {
	// base is the folder that relative paths are taken from.
	base string
}

// scalar reads one value from its text, whichever source it came from.
type scalar[T any] func(in reading, s string) (T, *fault)

func readText(_ reading, s string) (string, *fault) {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", &fault{"control characters are not allowed", "remove them"}
	}
	return s, nil
}

func readPath(in reading, s string) (string, *fault) {
	switch {
	case s == "":
		return "", nil
	case strings.ContainsRune(s, 0):
		return "", &fault{"a path can't hold NUL", "remove it"}
	case s == "~" || strings.HasPrefix(s, "~/"):
		return "", &fault{"~ is a shell's abbreviation and is not expanded here", "write the home folder in full"}
	case filepath.IsAbs(s):
		return filepath.Clean(s), nil
	default:
		return filepath.Join(in.base, s), nil
	}
}

func readBool(_ reading, s string) (bool, *fault) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, &fault{"not a boolean", "write true or false"}
	}
}

func readInt(_ reading, s string) (int, *fault) {
	n, err := strconv.Atoi(s)
	if err != nil || s[0] == '+' || leadingZero(s) {
		return 0, &fault{"not a whole number", "write decimal digits without a leading zero, such as 5"}
	}
	return n, nil
}

// leadingZero finds what YAML 1.1 would read as octal and YAML 1.2 as decimal.
func leadingZero(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0' && '0' <= s[1] && s[1] <= '9'
}

func readNumber(_ reading, s string) (float64, *fault) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "-0123456789.") != "" || leadingZero(s) {
		return 0, &fault{"not a number", "write a decimal number such as 0.2"}
	}
	return n, nil
}

func readDuration(_ reading, s string) (time.Duration, *fault) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if _, numeric := strconv.ParseFloat(s, 64); numeric == nil {
		return 0, &fault{"a duration needs a unit", fmt.Sprintf("write %ss for seconds, or use ms, m or h", s)}
	}
	return 0, &fault{"not a duration", "write a number and a unit (ms, s, m, h), such as 10s or 1h30m"}
}

func readSize(_ reading, s string) (Size, *fault) {
	n, err := ParseSize(s)
	switch {
	case errors.Is(err, errSize):
		return 0, &fault{"not a size", "write a whole number and a unit, such as 64KiB or 10MiB"}
	case err != nil:
		return 0, &fault{"not a size: " + err.Error(), "use B, KiB, MiB, GiB or TiB (kB, MB, GB and TB are powers of 1000)"}
	case leadingZero(s):
		return 0, &fault{"not a size: a leading zero", "write the number without it"}
	default:
		return n, nil
	}
}

// readEnum accepts the given values. A value in later belongs to the format but
// to no version yet.
func readEnum[T ~string](values []T, later ...T) scalar[T] {
	return func(_ reading, s string) (T, *fault) {
		names := make([]string, len(values))
		for i, v := range values {
			if s == string(v) {
				return v, nil
			}
			names[i] = string(v)
		}
		fix := "use " + orList(names)
		for _, v := range later {
			if s == string(v) {
				return "", notYet(s, fix)
			}
		}
		return "", &fault{"not a known value", fix}
	}
}

func notYet(name, fix string) *fault {
	return &fault{fmt.Sprintf("not yet built: this version does not know what to do with %s", name), fix}
}

// orList writes a, b or c.
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
