package reconcilers

import (
	"testing"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
)

func TestAWallClockSetBackIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		move func(*clock.Fake)
		want bool
	}{
		"time passes":                        {func(f *clock.Fake) { f.Advance(time.Minute) }, false},
		"the wall clock is set ahead":        {func(f *clock.Fake) { f.JumpWall(time.Hour) }, false},
		"the machine sleeps":                 {func(f *clock.Fake) { f.Sleep(time.Hour) }, false},
		"the wall clock is slewed":           {func(f *clock.Fake) { f.Advance(time.Minute); f.JumpWall(-time.Second) }, false},
		"the wall clock is set back":         {func(f *clock.Fake) { f.Advance(time.Minute); f.JumpWall(-2 * time.Second) }, true},
		"it is set back by less than passed": {func(f *clock.Fake) { f.Advance(time.Hour); f.JumpWall(-time.Minute) }, true},
		"the clocks are those of a new boot": {func(f *clock.Fake) { f.Reboot(time.Minute) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			now := func() ledger.Stamp { return ledger.Stamp(clock.Take(f)) }
			var w wallWatch
			if !w.setBack(now()) {
				t.Error("a new process does not look at what another one left")
			}
			w.looked()
			c.move(f)
			if got := w.setBack(now()); got != c.want {
				t.Errorf("set back: %t, want %t", got, c.want)
			}
			if w.setBack(now()) != c.want {
				t.Error("it is not looked for until somebody has looked")
			}
		})
	}
}

func TestARecordIsNotStrandedByAWallClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("R-1")
	w.clock.JumpWall(-24 * time.Hour)
	if n := w.after(time.Second).Tried; n != 1 {
		t.Errorf("tried %d times after the clock was set back, want 1", n)
	}
	if due := w.due(m); due < 0 || due > time.Hour {
		t.Errorf("the next try is due in %s", due)
	}
	if n := w.after(time.Second).Tried; n != 0 {
		t.Errorf("tried again at once")
	}
}
