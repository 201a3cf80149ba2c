package integration

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkLatency takes the time of each read of one client, directly, through a bare
// goproxy and through the program, and reports what the two add to the median and to the
// 99th percentile of a round, with the ratio.
func BenchmarkLatency(b *testing.B) {
	l := newLab(b, kilobytes)
	theirs, _ := l.bare()
	direct := l.direct()
	ways := []*way{
		direct.of("direct", "GET", fixed("/read"), nil), theirs.of("bare read", "GET", fixed("/read"), nil), nil,
	}
	ways[2] = l.keep().of("read", "GET", fixed("/read"), ways[1])
	took := make([][]float64, len(ways))
	for i, y := range ways {
		y.do = func(k *caller, n *atomic.Int64) error {
			begun := time.Now()
			err := k.ask(n)
			took[i] = append(took[i], float64(time.Since(begun).Nanoseconds())/1e3)
			return err
		}
	}
	percents := []int{50, 99}
	added := map[int][3][]float64{}
	l.interleave(ways, 1, roundsOfWays, roundOfWay, func() {
		for _, percent := range percents {
			var at [3]float64
			for i := range ways {
				slices.Sort(took[i])
				at[i] = took[i][len(took[i])*percent/100]
			}
			all := added[percent]
			all[0], all[1], all[2] = append(all[0], at[0]), append(all[1], at[1]-at[0]), append(all[2], at[2]-at[0])
			added[percent] = all
		}
		clear(took)
	})
	for _, percent := range percents {
		of := added[percent]
		ratios := shares(of[2], of[1])
		b.Logf("p%d: direct %.0f µs; added by bare goproxy %.0f µs (%s), by keep-proxy %.0f µs (%s), ratio %.2f (%s)", percent,
			median(of[0]), median(of[1]), spread("%.0f", of[1]), median(of[2]), spread("%.0f", of[2]), median(ratios), spread("%.2f", ratios))
		b.ReportMetric(median(ratios), map[int]string{50: "added-p50/bare", 99: "added-p99/bare"}[percent])
	}
}

// streams is how many requests one connection carries at a time in BenchmarkStreams.
const streams = 100

// BenchmarkStreams compares reads by HTTP/2, a hundred at a time on one connection,
// through a bare goproxy that speaks HTTP/2, and through the program, before an upstream
// of either protocol.
func BenchmarkStreams(b *testing.B) {
	for name, kind := range map[string]string{"upstream=h1": kilobytes, "upstream=h2": kilobytesH2} {
		b.Run(name, func(b *testing.B) {
			l := newLab(b, kind)
			theirs, _ := l.bare(bareH2Var + "=1")
			bare := theirs.of("bare read", "GET", fixed("/read"), nil)
			ways := []*way{bare, l.keep().of("read", "GET", fixed("/read"), bare)}
			for _, y := range ways {
				y.shared = y.clientOf(b, true)
				y.do = func(*caller, *atomic.Int64) error { return getKilobyte(y.shared, l.target+"/read") }
			}
			l.compare(b, ways, streams, roundsOfWays)
		})
	}
}

// downloads are how many clients BenchmarkDownload has, and roundsOfDownloads how often
// each way has its turn.
const (
	downloads         = 4
	roundsOfDownloads = 9
)

// BenchmarkDownload compares downloads of 64 MiB by four clients at a time, directly,
// through a bare goproxy and through the program.
func BenchmarkDownload(b *testing.B) {
	l := newLab(b, blobs)
	theirs, _ := l.bare()
	bare := theirs.of("bare", "GET", fixed("/blob"), nil)
	ways := []*way{l.direct().of("direct", "GET", fixed("/blob"), bare), bare, l.keep().of("download", "GET", fixed("/blob"), bare)}
	for _, y := range ways {
		y.buffer = 64 << 10
	}
	l.compare(b, ways, downloads, roundsOfDownloads)
	for _, y := range ways {
		b.Logf("%s: %.0f MiB a second", y.name, median(y.rates)*mib(blob))
	}
	b.Logf("RssAnon %.1f MiB", mib(l.rssAnon()))
}

// BenchmarkNewTunnels compares opening tunnels, CONNECT and a full TLS handshake inside,
// by sixteen clients at a time, through a bare goproxy with a certificate store and
// through the program.
func BenchmarkNewTunnels(b *testing.B) {
	l := newLab(b, kilobytes)
	theirs, _ := l.bare()
	bare := theirs.of("bare tunnel", "GET", fixed("/read"), nil)
	ways := []*way{bare, l.keep().of("tunnel", "GET", fixed("/read"), bare)}
	for _, y := range ways {
		y.do = func(*caller, *atomic.Int64) error {
			k, err := call(y, l.target)
			if err == nil {
				reset(k.c) // Its port is free at once.
			}
			return err
		}
	}
	l.compare(b, ways, 16, roundsOfWays)
}

// Requests over which BenchmarkAllocations counts, and how often.
const (
	counted        = 500
	roundsOfCounts = 9
)

// BenchmarkAllocations counts, by the metrics of the two processes, what a request of each
// way allocates in a bare goproxy and in the program. Its time says nothing.
func BenchmarkAllocations(b *testing.B) {
	l := newLab(b, kilobytes)
	theirs, metrics := l.bare()
	ours := l.keep()
	bare := theirs.of("bare read", "GET", fixed("/read"), nil)
	ways := []*way{
		bare, ours.of("read", "GET", fixed("/read"), bare), ours.of("pass-through", "POST", fixed("/ignored"), nil),
		ours.of("mutation", "POST", numbered("/send/"), nil), ours.of("replay", "POST", fixed("/send/same"), nil),
	}
	units := []string{"go_memstats_mallocs_total", "go_memstats_alloc_bytes_total"}
	counts := make([][2][]float64, len(ways))
	var n atomic.Int64
	for _, y := range ways {
		y.open(b, l.target, 1)
		if err := y.callers[0].ask(&n); err != nil { // The first mutation is no replay.
			b.Fatalf("%s: %v", y.name, err)
		}
	}
	for range roundsOfCounts {
		for i, y := range ways {
			at := l.admin
			if y == bare {
				at = metrics
			}
			for u, unit := range units {
				counts[i][u] = append(counts[i][u], l.allocated(at, unit, y.callers[0], &n))
			}
		}
	}
	for u, unit := range []string{"allocations", "bytes"} {
		for i, y := range ways {
			b.Logf("%s for a %s: %.1f (%s)", unit, y.name, median(counts[i][u]), spread("%.1f", counts[i][u]))
		}
		ratios := shares(counts[1][u], counts[0][u])
		b.Logf("%s for a read: ratio %.2f (%s)", unit, median(ratios), spread("%.2f", ratios))
		b.ReportMetric(median(ratios), unit+"/bare")
	}
}

// allocated is what a request of k makes a metric grow by.
func (l *lab) allocated(at, unit string, k *caller, n *atomic.Int64) float64 {
	l.t.Helper()
	// What asking for the metric allocates is taken off.
	first := l.metric(at, unit)
	before := l.metric(at, unit)
	var problems error
	for range counted {
		problems = errors.Join(problems, k.ask(n))
	}
	if problems != nil {
		l.t.Fatal(problems)
	}
	return (l.metric(at, unit) - before - (before - first)) / counted
}
