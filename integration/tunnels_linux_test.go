package integration

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tunnels that BenchmarkTunnels opens, how many in a go and at once, and how many of them are
// at work at once in the end.
const (
	someTunnels   = 2_000
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
	l := newLab(b, func(s *settings) { s.Dial, s.Response, s.Total = "60s", "60s", "60s" }) // Thousands of connections at once.
	y := l.keep()
	y.method, y.path = "GET", fixed("/read")
	var open []*caller
	b.Cleanup(func() {
		for _, k := range open {
			reset(k.c)
		}
	})
	l.openMore(b, y, openAtOnce, &open)
	l.leaveAll(b, &open)
	for b.Loop() {
		idle := l.rest(b)
		b.ReportMetric(mib(idle.anonymous), "idle-MiB")
		b.Logf("idle: %v", idle)
		logRow(b, "idle", "", "RssAnon", "%.0f MiB", []float64{mib(idle.anonymous)}, "")
		for _, n := range []int{someTunnels, manyTunnels} {
			begun := time.Now()
			l.openMore(b, y, n, &open)
			took := time.Since(begun)
			now := l.rest(b)
			each := float64(now.anonymous-idle.anonymous) / float64(n) / 1024
			b.Logf("%d tunnels: %v; %.1f KiB and %.2f descriptors for each (opened and asked in %s)",
				n, now, each, float64(now.sockets-idle.sockets)/float64(n), took.Round(time.Millisecond))
			logRow(b, fmt.Sprintf("%d idle tunnels", n), "idle", "RssAnon of each", "%.0f KiB", []float64{each}, fmt.Sprintf(": %.0f MiB in all", mib(now.anonymous)))
			b.ReportMetric(each, map[int]string{someTunnels: "KiB/2000-tunnels", manyTunnels: "KiB/10000-tunnels"}[n])
		}
		begun := time.Now()
		for range activeTurns {
			l.askAll(b, open[:activeTunnels], activeTunnels)
		}
		b.Logf("%d of them at work at once, %d requests each, in %s: %v", activeTunnels, activeTurns, time.Since(begun).Round(time.Millisecond), l.count())
		l.leaveAll(b, &open)
		l.poll("the tunnels' descriptors are free again", func() bool { return l.count().sockets < manyTunnels/100 })
		b.Logf("when all have left: %v", l.count())
	}
}

// rest waits a while, and counts.
func (l *lab) rest(b *testing.B) counts {
	b.Helper()
	wait(b.Context(), soakCalm)
	return l.count()
}

// openMore opens tunnels until there are n, and returns them all. Those that are open are
// asked now and then, so that none is closed as idle where opening takes long.
func (l *lab) openMore(b *testing.B, y *way, n int, open *[]*caller) []*caller {
	b.Helper()
	for len(*open) < n {
		*open = append(*open, l.openSome(b, y, min(n-len(*open), openAtATime))...)
		l.askAll(b, *open, openAtOnce)
	}
	return *open
}

// openSome opens so many tunnels, and asks over each.
func (l *lab) openSome(b *testing.B, y *way, n int) []*caller {
	b.Helper()
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
		b.Fatalf("tunnels were not opened: %v", err)
	}
	return made
}

// askAll asks once over each, so many at once.
func (l *lab) askAll(b *testing.B, callers []*caller, atOnce int) {
	b.Helper()
	var all sync.WaitGroup
	var n, next atomic.Int64
	for range atOnce {
		all.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(callers); i = next.Add(1) - 1 {
				if err := callers[i].ask(&n); err != nil {
					b.Errorf("tunnel %d of %d: %v", i, len(callers), err)
					return
				}
			}
		})
	}
	all.Wait()
}

// leaveAll ends the tunnels by resets, so that their ports are free at once.
func (l *lab) leaveAll(b *testing.B, open *[]*caller) {
	b.Helper()
	for _, k := range *open {
		reset(k.c)
	}
	*open = nil
}
