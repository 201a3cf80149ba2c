package reconcilers

import (
	"sync"
	"time"

	"keep-proxy/ledger"
)

// round is a number of tries that are waited for together, and what stands in line for
// one. What isn't behind mu belongs to the runner's goroutine.
type round struct {
	tries sync.WaitGroup
	// ended has room for one: a try has ended, and its place is free.
	ended chan struct{}
	wall  wallWatch
	lines lines

	mu     sync.Mutex
	counts Counts
	// outdated says that more may be due than is in line.
	outdated bool
	// lost says that a try was not recorded.
	lost bool
	// next is when more will be due; zero for never.
	next time.Time
}

func newRound() *round {
	return &round{ended: make(chan struct{}, 1), outdated: true}
}

// outdate says that more may be due than is in line.
func (in *round) outdate() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.outdated = true
}

// forget empties the lines: things may be different when work goes on.
func (in *round) forget() {
	in.lines, in.wall.open = lines{}, true
	in.outdate()
}

// listing begins a listing. What changes from here on outdates it. It reports whether a
// try was not recorded since the last one.
func (in *round) listing() (lost bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	lost = in.lost
	in.outdated, in.lost, in.next = false, false, time.Time{}
	return lost
}

// listable reports whether what is due has to be listed, and may be.
func (in *round) listable(mono time.Duration) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return (in.outdated || in.lines.short) && in.lines.wait(mono) == 0
}

// rest is how long nothing has to be listed.
func (in *round) rest(now ledger.Stamp) time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.outdated || in.lines.short:
		return in.lines.wait(now.Mono)
	case in.next.IsZero():
		return beyond
	}
	return max(in.next.Sub(now.Wall), in.lines.wait(now.Mono))
}

// sooner says that a record will be due then, if that isn't never.
func (in *round) sooner(next time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !next.IsZero() && (in.next.IsZero() || next.Before(in.next)) {
		in.next = next
	}
}

// end counts a try, notes when its record is due again, and gives way to the next one.
func (in *round) end(out outcome) {
	in.count(out)
	m := out.moved.Mutation
	switch {
	case out.err != nil || m == nil || out.seen == "dropped" || out.seen == "stopped":
		in.lose()
	case m.Queued():
		in.sooner(m.NextTryAt)
	}
	select {
	case in.ended <- struct{}{}:
	default:
	}
}

// lose says that a try was not recorded: its record may be due still.
func (in *round) lose() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.outdated, in.lost = true, true
}

// count adds a try.
func (in *round) count(out outcome) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.counts.Tried++
	switch {
	case out.seen == "dropped":
		in.counts.Dropped++
	case out.err != nil || out.moved.Mutation == nil:
		in.counts.Errors++
	case out.moved.Mutation.State == ledger.Applied:
		in.counts.Applied++
	case out.moved.Mutation.State == ledger.Failed:
		in.counts.Failed++
	case out.moved.Mutation.State == ledger.Indeterminate:
		in.counts.Indeterminate++
	default:
		in.counts.Waiting++
	}
}

// setBackTolerance is how far the wall clock may fall behind the monotonic one between two passes.
// Slewing does so; more means that it was set back.
const setBackTolerance = time.Second

// beyond is later than any next try.
const beyond = 100 * 365 * 24 * time.Hour

// wallWatch notices that the wall clock was set back, by which next tries move into
// a distance that nobody meant. Its zero value looks once, for what another process
// left.
type wallWatch struct {
	last ledger.Stamp
	open bool
}

// setBack reports whether records may be waiting for a time of a clock that was set
// back since.
func (w *wallWatch) setBack(now ledger.Stamp) bool {
	passed, sameBoot := now.MonoSince(w.last)
	if !sameBoot || now.Wall.Sub(w.last.Wall) < passed-setBackTolerance {
		w.open = true
	}
	w.last = now
	return w.open
}

// looked ends the looking: what was found stands in line.
func (w *wallWatch) looked() { w.open = false }

// stranded reports whether the record was last written in the future. Its next try was planned
// before the clock was set back.
func stranded(m *ledger.Mutation, now time.Time) bool { return m.UpdatedAt.After(now) }
