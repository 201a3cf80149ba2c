package ledger

import (
	"bytes"
	"testing"
	"time"
)

func TestStampAges(t *testing.T) {
	t.Parallel()
	base := Stamp{Wall: time.Unix(1e9, 0), Mono: time.Hour, Boot: 2 * time.Hour, BootID: "b"}
	later := func(wall, mono, boot time.Duration, id string) Stamp {
		return Stamp{Wall: base.Wall.Add(wall), Mono: base.Mono + mono, Boot: base.Boot + boot, BootID: id}
	}
	for _, c := range []struct {
		name      string
		now       Stamp
		mono, age time.Duration
		sameBoot  bool
	}{
		{"the same moment", base, 0, 0, true},
		{"all clocks agree", later(time.Minute, time.Minute, time.Minute, "b"), time.Minute, time.Minute, true},
		{"the machine slept", later(time.Hour, time.Minute, time.Hour, "b"), time.Minute, time.Hour, true},
		{"the wall was set back", later(-time.Hour, time.Minute, time.Minute, "b"), time.Minute, time.Minute, true},
		{"the wall was set ahead", later(time.Hour, time.Minute, time.Minute, "b"), time.Minute, time.Hour, true},
		{"another boot", later(time.Hour, time.Minute, 9*time.Hour, "c"), 0, time.Hour, false},
		{"another boot, the wall set back", later(-time.Hour, time.Minute, time.Minute, "c"), 0, 0, false},
		{"before it in the same boot", later(0, -time.Minute, -time.Minute, "b"), 0, 0, false},
		{"no boot id", later(time.Minute, time.Minute, time.Hour, ""), 0, time.Minute, false},
	} {
		mono, sameBoot := c.now.MonoSince(base)
		if mono != c.mono || sameBoot != c.sameBoot {
			t.Errorf("%s: monotonic %s, %v; want %s, %v", c.name, mono, sameBoot, c.mono, c.sameBoot)
		}
		if age := c.now.Age(base); age != c.age {
			t.Errorf("%s: age %s, want %s", c.name, age, c.age)
		}
		at, known := c.now.WallOf(base)
		if want := c.now.Wall.Add(base.Boot - c.now.Boot); known != c.sameBoot || known && !at.Equal(want) {
			t.Errorf("%s: the wall clock would have shown %s, %v; want %s, %v", c.name, at, known, want, c.sameBoot)
		}
	}
}

func TestStampInBinary(t *testing.T) {
	t.Parallel()
	for _, want := range []Stamp{
		{},
		{Wall: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), Mono: time.Hour, Boot: 2 * time.Hour, BootID: "boot"},
		{Wall: time.Date(1950, 1, 1, 0, 0, 0, 1, time.UTC), Mono: -1, Boot: 1 << 62},
	} {
		b, err := want.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got Stamp
		if err := got.UnmarshalBinary(b); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	for name, bad := range map[string][]byte{
		"too short": make([]byte, stampSize-1), "too many nanoseconds": append(make([]byte, 8), bytes.Repeat([]byte{0xff}, stampSize-8)...),
	} {
		if err := new(Stamp).UnmarshalBinary(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
