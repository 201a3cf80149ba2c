package reconcilers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestTriesLeaveNoGoroutine(t *testing.T) {
	for name, end := range map[string]func(*round){"nothing is in line": (*round).dismiss, "the round is over": (*round).close} {
		// What is left at the end of a bubble fails it.
		synctest.Test(t, func(t *testing.T) {
			in := newRound()
			var tried atomic.Int32
			for range 5 {
				in.try(func() { tried.Add(1) })
				in.try(func() { tried.Add(1) })
				in.tries.Wait()
			}
			synctest.Wait()
			if n := tried.Load(); n != 10 {
				t.Errorf("%s: %d tries, want 10", name, n)
			}
			end(in)
		})
	}
}

func TestATryTakesAGoroutineThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newRound()
		defer in.close()
		in.try(func() {})
		synctest.Wait()
		in.tries.Add(1)
		select {
		case in.hand <- func() {}:
		default:
			in.tries.Done()
			t.Error("the goroutine of a try that has ended is gone")
		}
	})
}
