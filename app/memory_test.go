package app

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

const mib = 1 << 20

func TestMemoryIsGivenBackOnceALoadIsOver(t *testing.T) {
	t.Parallel()
	var total uint64
	freed := 0
	m := trimmer{heap: func() heap { return heap{allocated: total} }, free: func() { freed++ }}
	for _, step := range []struct {
		says  string
		more  uint64
		freed int
	}{
		{"the start is a load", 20 * mib, 0},
		{"which is over", 1 * mib, 1},
		{"a calm process has little to give", 1 * mib, 1},
		{"however long it takes", 2 * mib, 1},
		{"under load it is left alone", 100 * mib, 1},
		{"still", 5 * mib, 1},
		{"and trimmed afterwards", 0, 2},
		{"once", 0, 2},
		{"small loads", 1 * mib, 2},
		{"add", 2 * mib, 2},
		{"up in the end", 1 * mib, 3},
	} {
		total += step.more
		if m.look(); freed != step.freed {
			t.Errorf("%s: freed %d times, want %d", step.says, freed, step.freed)
		}
	}
}

func TestGarbageIsBoundedByWhatLives(t *testing.T) {
	t.Parallel()
	var now heap
	var percents []int
	var limits []int64
	b := bounder{
		heap:       func() heap { return now },
		setPercent: func(p int) { percents = append(percents, p) },
		setLimit:   func(l int64) { limits = append(limits, l/mib) },
	}
	for _, step := range []struct{ live, scanned uint64 }{
		{0, 0}, {8, 4}, {16, 4}, {17, 4}, {35, 8}, {60, 8}, {80, 8}, {100, 8}, {200, 8}, {201, 8}, {200, 100}, {10, 10},
	} {
		now = heap{live: step.live * mib, scanned: step.scanned * mib, stacks: step.live * mib / 10}
		b.bound()
	}
	if want := []int{400, 240, 231, 110, 42, 20, 16, 8, 7, 25, 400}; !slices.Equal(percents, want) {
		t.Errorf("percentages %v, want %v", percents, want)
	}
	if want := []int64{108, 112, 128, 144, 256, 288, 108}; !slices.Equal(limits, want) {
		t.Errorf("limits %v MiB, want %v", limits, want)
	}
}

// It is bounded after each collection, and no more once nobody needs it.
func TestEveryCollectionIsNoticed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var noticed atomic.Int64
	afterCollections(ctx, func() { noticed.Add(1) })
	for noticed.Load() < 3 {
		collect()
	}
	cancel()
	collect()
	collect() // It may have been about to notice the one before.
	was := noticed.Load()
	for range 5 {
		collect()
	}
	if n := noticed.Load(); n != was {
		t.Errorf("%d collections were noticed after the end", n-was)
	}
}

// collect returns once a collection has found what nothing refers to.
func collect() {
	found := make(chan struct{})
	runtime.AddCleanup(&struct{ nothing [64]byte }{}, func(found chan struct{}) { close(found) }, found)
	for {
		runtime.GC()
		select {
		case <-found:
			return
		default:
			runtime.Gosched()
		}
	}
}

func TestTheRuntimeTellsOfItsHeap(t *testing.T) {
	t.Parallel()
	runtime.GC()
	if h := readHeap(); h.allocated == 0 || h.live == 0 || h.stacks == 0 {
		t.Errorf("it does not say what was allocated, lives, and is stacks: %+v", h)
	}
}
