package clock

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var _ = [...]Clock{system{}, (*Fake)(nil)}

func TestSystemClocksRun(t *testing.T) {
	t.Parallel()
	c := System()
	first, second := Take(c), Take(c)
	if second.Mono <= first.Mono {
		t.Errorf("monotonic clock went from %v to %v", first.Mono, second.Mono)
	}
	if second.Boot <= first.Boot {
		t.Errorf("boot-time clock went from %v to %v", first.Boot, second.Boot)
	}
	if first.Boot < first.Mono {
		t.Errorf("boot time %v is less than monotonic time %v, which leaves sleep out", first.Boot, first.Mono)
	}
	if d := time.Since(first.Wall); d < -time.Minute || d > time.Minute {
		t.Errorf("wall clock is %v off", d)
	}
	if s := first.Wall.String(); strings.Contains(s, "m=") {
		t.Errorf("wall time %s carries a monotonic reading", s)
	}
}

func TestBootIDIsSharedByProcessesOfOneBoot(t *testing.T) {
	t.Parallel()
	const child = "KEEP_CLOCK_TEST_CHILD"
	if os.Getenv(child) != "" {
		os.Stdout.WriteString(System().BootID())
		os.Exit(0)
	}
	id := System().BootID()
	if id == "" {
		t.Fatal("BootID is empty")
	}
	if id != System().BootID() {
		t.Error("BootID changed inside one process")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestBootIDIsSharedByProcessesOfOneBoot$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if own := strings.HasPrefix(id, "process-"); !own && string(out) != id {
		t.Errorf("another process has boot id %q, this one %q", out, id)
	} else if own && string(out) == id {
		t.Errorf("two processes share the boot id %q, which each made for itself", id)
	}
}

func TestFakeMovesEachClockAsTold(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		move             func(*Fake)
		wall, mono, boot time.Duration
		id               string
	}{
		"untouched":            {func(*Fake) {}, 0, time.Hour, time.Hour, "boot-1"},
		"advance moves all":    {func(f *Fake) { f.Advance(time.Minute) }, time.Minute, 61 * time.Minute, 61 * time.Minute, "boot-1"},
		"wall forward":         {func(f *Fake) { f.JumpWall(time.Minute) }, time.Minute, time.Hour, time.Hour, "boot-1"},
		"wall back":            {func(f *Fake) { f.JumpWall(-time.Minute) }, -time.Minute, time.Hour, time.Hour, "boot-1"},
		"sleep spares mono":    {func(f *Fake) { f.Sleep(time.Minute) }, time.Minute, time.Hour, 61 * time.Minute, "boot-1"},
		"reboot starts afresh": {func(f *Fake) { f.Reboot(time.Minute) }, time.Minute, 0, 0, "boot-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewFake(start)
			tc.move(f)
			want := Stamp{Wall: start.Add(tc.wall), Mono: tc.mono, Boot: tc.boot, BootID: tc.id}
			if got := Take(f); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
