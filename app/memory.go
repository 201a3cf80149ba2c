package app

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// A sidecar shares its machine with the work. What lives of its heap is small beside what it allocates under load.
// Leaving some garbage then saves a tenth of its processor time. When the load is over, nobody waits while it is
// collected and released.
const (
	// softMemory is what the runtime may hold, in bytes, as long as much less than that
	// lives.
	softMemory = 108 << 20
	// softHeap is what lives, with stacks and garbage, in bytes. The closer what lives comes to it, the less garbage
	// may stay. What the runtime needs beside is the rest of softMemory.
	softHeap = 92 << 20
	// garbage is how much garbage may stay, in bytes, but never more than four times what lives.
	garbage = 40 << 20
	// leastGarbage may stay however much lives, and no less than half of what the collector has to look through. A
	// limit close above what lives would have it collect all the time. What it only has to know of costs it nothing,
	// like the memory tables and buffers of the ledger's engine.
	leastGarbage = 16 << 20
	// tuneEvery is how often the process looks whether a load is over.
	tuneEvery = 5 * time.Second
	// calm is what a process without load allocates between two looks at most, in bytes. Trimming needs worthTrimming
	// bytes allocated since memory was last released. So much may stay behind after a load that ends slowly.
	calm          = 4 << 20
	worthTrimming = 4 << 20
)

// TuneMemory sets the collector for a process that is only this program, where GOGC and GOMEMLIMIT don't say otherwise.
// Until ctx ends, it releases memory to the system whenever a load is over.
func TuneMemory(ctx context.Context) {
	b := bounder{heap: readHeap, setPercent: func(percent int) { debug.SetGCPercent(percent) }, setLimit: func(limit int64) { debug.SetMemoryLimit(limit) }}
	if os.Getenv("GOGC") != "" {
		b.setPercent = func(int) {}
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		b.setLimit = func(int64) {}
	}
	b.bound()
	afterCollections(ctx, b.bound)
	t := trimmer{heap: readHeap, free: giveBack}
	go func() {
		tick := time.NewTicker(tuneEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				t.look()
			}
		}
	}()
}

// afterCollections calls f after each collection until ctx ends, never twice at a time. What nothing refers to is found
// by the next collection.
func afterCollections(ctx context.Context, f func()) {
	runtime.AddCleanup(&struct{ nothing [64]byte }{}, func(ctx context.Context) {
		if ctx.Err() != nil {
			return
		}
		f()
		afterCollections(ctx, f)
	}, ctx)
}

// heap is what the runtime says of itself, in bytes.
type heap struct {
	// allocated is what was allocated so far, and live what the last collection left. Of that, scanned is what it had
	// to look through. The goroutines' stacks take stacks.
	allocated, live, scanned, stacks uint64
}

// bounder sets how much garbage may stay by what lives. It has to after each collection: the ledger's engine takes tens
// of MiB at once when it writes tables. What was right for what lived before is then far too much.
type bounder struct {
	heap       func() heap
	setPercent func(int)
	setLimit   func(int64)

	percent int
	limit   int64
}

func (b *bounder) bound() {
	now := b.heap()
	if percent := now.percent(); percent != b.percent {
		b.percent = percent
		b.setPercent(percent)
	}
	if limit := now.limit(); limit != b.limit {
		b.limit = limit
		b.setLimit(limit)
	}
}

// garbage is how much may stay, in bytes.
func (h heap) garbage() uint64 {
	room := softHeap - min(h.live+h.stacks, softHeap)
	return min(max(room, leastGarbage, h.scanned/2), max(garbage, h.scanned/2))
}

// percent is the collector's percentage, in steps of a twentieth of it.
func (h heap) percent() int {
	percent := min(int(h.garbage()*100/max(h.live, 1)), 400)
	step := max(percent/20, 1)
	return percent / step * step
}

// limit is the limit of what the runtime holds, in steps of 16 MiB above the least. It lies
// above what the percentage leads to, so that it only counts in a burst.
func (h heap) limit() int64 {
	const step = 16 << 20
	return max(softMemory, int64((h.live+h.stacks+h.garbage()+leastGarbage+step-1)/step*step))
}

// trimmer releases memory to the system when much was allocated since it last did and now is calm.
type trimmer struct {
	heap func() heap
	free func()

	// last is what had been allocated at the last look, trimmed when memory was last released.
	last, trimmed uint64
}

// look is taken at regular times.
func (t *trimmer) look() {
	now := t.heap()
	if now.allocated-t.last <= calm && now.allocated-t.trimmed >= worthTrimming {
		t.free()
		now = t.heap()
		t.trimmed = now.allocated
	}
	t.last = now.allocated
}

// giveBack collects twice and releases the rest to the system. What is in a sync.Pool, and what has a finalizer,
// outlives one collection.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}

// readHeap asks the runtime; what it doesn't know is 0.
func readHeap() heap {
	samples := []runtimemetrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
	}
	runtimemetrics.Read(samples)
	value := func(s runtimemetrics.Sample) uint64 {
		if s.Value.Kind() != runtimemetrics.KindUint64 {
			return 0
		}
		return s.Value.Uint64()
	}
	return heap{allocated: value(samples[0]), live: value(samples[1]), scanned: value(samples[2]), stacks: value(samples[3])}
}
