package config

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, text string
		want       Size
		err        string
	}{
		{"a binary unit", "10MiB", 10 << 20, ""},
		{"a decimal unit", "10MB", 10_000_000, ""},
		{"kilo in small", "1kB", 1000, ""},
		{"kilo in capitals", "1KB", 1000, ""},
		{"kibi", "1KiB", 1024, ""},
		{"the largest unit", "1TiB", 1 << 40, ""},
		{"a space before the unit", "10 MiB", 10 << 20, ""},
		{"bytes", "512B", 512, ""},
		{"no unit", "512", 512, ""},
		{"nothing of something", "0MiB", 0, ""},
		{"the most that fits", "9223372036854775807", math.MaxInt64, ""},
		{"one more", "9223372036854775808", 0, "9223372036854775808 does not fit 63 bits"},
		{"a product that does not fit", "8388608TiB", 0, "8388608TiB does not fit 63 bits"},
		{"the last product that does", "8388607TiB", 8388607 << 40, ""},
		{"a fraction", "1.5MiB", 0, errSize.Error()},
		{"a sign", "-1MiB", 0, errSize.Error()},
		{"nothing", "", 0, errSize.Error()},
		{"a unit alone", "MiB", 0, errSize.Error()},
		{"a unit in small letters", "10mib", 0, errSize.Error()},
		{"a doubled unit", "10MiBMiB", 0, `unknown unit "MiBMiB"`},
		{"a unit without bytes", "10M", 0, `unknown unit "M"`},
		{"hexadecimal", "0x10", 0, errSize.Error()},
		{"digits in groups", "1_000", 0, errSize.Error()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseSize(c.text)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("ParseSize(%q) = %d, %v; want %d, %q", c.text, got, err, c.want, c.err)
			}
		})
	}
}

func TestSizesPrintAsTheyAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size Size
		want string
	}{
		{0, "0B"}, {1, "1B"}, {1023, "1023B"}, {KiB, "1KiB"}, {1536, "1536B"}, {10 * MiB, "10MiB"}, {1024 * GiB, "1TiB"}, {1e9, "1000000000B"},
	} {
		if got := c.size.String(); got != c.want {
			t.Errorf("%d prints %s, want %s", int64(c.size), got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		size := Size(rapid.Int64Min(0).Draw(t, "size"))
		if got, err := ParseSize(size.String()); err != nil || got != size {
			t.Fatalf("%d prints %s, which reads as %d, %v", int64(size), size, int64(got), err)
		}
	})
}
