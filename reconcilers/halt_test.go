package reconcilers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheRunnerRestsWhileSendingIsKeptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		var halted atomic.Bool
		halted.Store(true)
		r.halted = halted.Load
		k := f.add(1, "api", 10*time.Second)
		stop := running(r)
		defer stop()
		pass(time.Hour)
		synctest.Wait()
		if n := f.tries()[k]; n != 0 || r.Working() != 0 {
			t.Fatalf("%d tries, %d under way, while sending is kept back", n, r.Working())
		}
		halted.Store(false)
		r.Kick()
		synctest.Wait()
		if n := f.tries()[k]; n != 1 {
			t.Errorf("%d tries afterwards, want 1", n)
		}
	})
}

func TestATryThatWasNotCountedYetIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		asked := 0
		// The pause begins between the look at it and the try.
		r.halted = func() bool { asked++; return asked > 1 }
		k := f.add(1, "api", 0)
		if c := r.RunOnce(t.Context()); c.Tried != 0 || f.tries()[k] != 0 || r.Working() != 0 {
			t.Errorf("%+v, %d tries, %d under way", c, f.tries()[k], r.Working())
		}
		r.halted = func() bool { return false }
		if r.RunOnce(t.Context()); f.tries()[k] != 1 {
			t.Errorf("%d tries afterwards, want 1", f.tries()[k])
		}
	})
}
