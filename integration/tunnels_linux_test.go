package integration

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tunnels that BenchmarkTunnels opens, how many in a go and at once, and how many of them are
// at work at once in the end.
const (
	manyTunnels   = 10_000
	openAtATime   = 1_000
	openAtOnce    = 32
	activeTunnels = 2_000
	activeTurns   = 5
)

// BenchmarkTunnels opens idle tunnels, over each of which something was read, and reports
// what they cost the program, another process: memory 31 s later, with that of the idle
// program taken off, and descriptors. Then many of them are at work at once. Its time says
// nothing.
func BenchmarkTunnels(b *testing.B) {
	l := newLab(b, kilobytes)
	var open []*caller
	idle := l.rest(soakCalm)
	b.Logf("idle: %v", idle)
	begun := time.Now()
	l.openMore(manyTunnels, &open)
	took := time.Since(begun)
	now := l.rest(soakCalm)
	b.Logf("%d tunnels: %v; %.1f KiB and %.2f descriptors for each (opened and asked in %s)", manyTunnels, now,
		now.kibEach(idle, manyTunnels), float64(now.sockets-idle.sockets)/manyTunnels, took.Round(time.Millisecond))
	b.ReportMetric(now.kibEach(idle, manyTunnels), "KiB/tunnel")
	begun = time.Now()
	for range activeTurns {
		l.askAll(open[:activeTunnels], activeTunnels)
	}
	b.Logf("%d of them at work at once, %d requests each, in %s: %v", activeTunnels, activeTurns, time.Since(begun).Round(time.Millisecond), l.count())
	leaveAll(&open)
	l.poll("the tunnels' descriptors are free again", func() bool { return l.count().sockets < manyTunnels/100 })
	b.Logf("when all have left: %v", l.count())
}

// rest waits a while, and counts.
func (l *lab) rest(d time.Duration) counts {
	l.t.Helper()
	wait(l.t.Context(), d)
	return l.count()
}

// kibEach is what each of n tunnels takes of the memory, in KiB.
func (c counts) kibEach(idle counts, n int) float64 {
	return float64(c.anonymous-idle.anonymous) / float64(n) / 1024
}

// openMore opens tunnels until there are n. Those that are open are
// asked now and then, so that none is closed as idle where opening takes long.
func (l *lab) openMore(n int, open *[]*caller) {
	l.t.Helper()
	l.t.Cleanup(func() { leaveAll(open) })
	y := l.keep().of("tunnel", "GET", fixed("/read"), nil)
	for len(*open) < n {
		*open = append(*open, l.openSome(y, min(n-len(*open), openAtATime))...)
		l.askAll(*open, openAtOnce)
	}
}

// openSome opens so many tunnels, and asks over each.
func (l *lab) openSome(y *way, n int) []*caller {
	l.t.Helper()
	made := make([]*caller, n)
	problems := make([]error, n)
	var all sync.WaitGroup
	var next, asked atomic.Int64
	for range openAtOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < n; i = next.Add(1) - 1 {
				if made[i], problems[i] = call(y, l.target); problems[i] == nil {
					// The proxy doesn't wait long for the first request.
					problems[i] = made[i].ask(&asked)
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(problems...); err != nil {
		l.t.Fatalf("tunnels were not opened: %v", err)
	}
	return made
}

// askAll asks once over each, so many at once.
func (l *lab) askAll(callers []*caller, atOnce int) {
	l.t.Helper()
	var all sync.WaitGroup
	var n, next atomic.Int64
	for range atOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(callers); i = next.Add(1) - 1 {
				if err := callers[i].ask(&n); err != nil {
					l.t.Errorf("tunnel %d of %d: %v", i, len(callers), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// leaveAll ends the tunnels by resets, so that their ports are free at once.
func leaveAll(open *[]*caller) {
	for _, k := range *open {
		reset(k.c)
	}
	*open = nil
}
