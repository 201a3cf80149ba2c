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

// A try may end just after the others were let go, when nobody comes for its goroutine.
func TestATryUnderWayLeavesNoGoroutineEither(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		in := newRound()
		goOn := make(chan struct{})
		in.try(func() { <-goOn })
		in.dismiss()
		close(goOn)
	})
}

func TestATryTakesAGoroutineThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newRound()
		defer in.close()
		for range 3 {
			in.try(func() {})
			synctest.Wait()
			if in.crew.waiting != 1 {
				t.Errorf("%d goroutines wait for another try, want the one", in.crew.waiting)
			}
		}
	})
}

// Who is dismissed with something left to do goes on with it.
func TestADismissedCrewBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newRound()
		defer in.close()
		in.dismiss()
		in.try(func() {})
		synctest.Wait()
		if in.crew.waiting != 1 {
			t.Errorf("%d goroutines wait for another try, want the one", in.crew.waiting)
		}
	})
}
