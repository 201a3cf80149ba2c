package app

import (
	"context"
	"os"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// A sidecar shares its machine with the work. What lives of its heap is small beside
// what it allocates under load, so that letting some garbage lie about then spares a
// tenth of its processor time; when the load is over, nobody waits for it being
// collected and given back.
const (
	// softMemory is the heap, in bytes, above which the collector works harder. More
	// that is really in use is no error, it only costs time.
	softMemory = 160 << 20
	// garbage is how much garbage may lie about, in bytes, but never less than what
	// lives and never more than four times as much.
	garbage = 40 << 20
	// tuneEvery is how often the process looks at itself.
	tuneEvery = 5 * time.Second
	// calm is what a process without load allocates between two looks at most, and
	// worthTrimming what must have been allocated since memory was last given back; in
	// bytes.
	calm          = 4 << 20
	worthTrimming = 16 << 20
)

// TuneMemory sets the collector for a process that is nothing but this program, where
// GOGC and GOMEMLIMIT don't say otherwise, and gives memory back to the system whenever
// a load is over, until ctx ends.
func TuneMemory(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softMemory)
	}
	t := tuner{heap: readHeap, free: debug.FreeOSMemory, setPercent: func(percent int) { debug.SetGCPercent(percent) }}
	if os.Getenv("GOGC") != "" {
		t.setPercent = func(int) {}
	}
	t.look()
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

// heap is what the runtime says of itself, in bytes.
type heap struct {
	// allocated is what was allocated so far, live what the last collection left.
	allocated, live uint64
}

// tuner sets how much garbage may lie about by what lives, and gives memory back when
// much was allocated since it last did and now is calm.
type tuner struct {
	heap       func() heap
	free       func()
	setPercent func(int)

	percent int
	// last is what had been allocated at the last look, trimmed when memory was last
	// given back.
	last, trimmed uint64
}

// look is taken at regular times.
func (t *tuner) look() {
	now := t.heap()
	if percent := percentFor(now.live); percent != t.percent {
		t.percent = percent
		t.setPercent(percent)
	}
	if now.allocated-t.last <= calm && now.allocated-t.trimmed >= worthTrimming {
		t.free()
		now = t.heap()
		t.trimmed = now.allocated
	}
	t.last = now.allocated
}

// percentFor is the collector's percentage for so much that lives, in steps of 50.
func percentFor(live uint64) int {
	const step = 50
	percent := int(garbage * 100 / max(live, 1) / step * step)
	return min(max(percent, 100), 400)
}

// readHeap asks the runtime; what it doesn't know is 0.
func readHeap() heap {
	samples := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(samples)
	value := func(s runtimemetrics.Sample) uint64 {
		if s.Value.Kind() != runtimemetrics.KindUint64 {
			return 0
		}
		return s.Value.Uint64()
	}
	return heap{allocated: value(samples[0]), live: value(samples[1])}
}
