package background

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestWaitEndsWithTheWork(t *testing.T) {
	var g Group
	var done atomic.Int32
	goOn := make(chan struct{})
	for range 10 {
		if !g.Go(func() { <-goOn; done.Add(1) }) {
			t.Fatal("work was refused before Wait")
		}
	}
	close(goOn)
	g.Wait()
	if done.Load() != 10 {
		t.Errorf("%d of 10 had ended when Wait returned", done.Load())
	}
	if g.Go(func() { t.Error("work began after Wait") }) {
		t.Error("work was taken after Wait")
	}
}

// Beginners and waiters meet at any moment; the race detector looks on. All that was
// taken has ended when the last Wait returns.
func TestWorkMayComeWhileSomebodyWaits(t *testing.T) {
	for range 200 {
		var g Group
		var taken, done atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if g.Go(func() { done.Add(1) }) {
					taken.Add(1)
				}
			})
			all.Go(g.Wait)
		}
		all.Wait()
		g.Wait()
		if taken.Load() != done.Load() {
			t.Fatalf("%d were taken, %d ended", taken.Load(), done.Load())
		}
	}
}
