package badgerstore

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// mergingRounds is how often both sides of a comparison take their turn.
	mergingRounds = 5
	// mergingRound is how long a turn lasts.
	mergingRound = time.Second
	// mergingWriters are at work at once.
	mergingWriters = 64
)

// BenchmarkMerging compares the commands of 64 writers that share transactions with the
// same commands in a transaction each: ratios of rounds in turn, of one run. A second
// time each sync takes 5 ms more, on both sides, by strace from outside the process.
func BenchmarkMerging(b *testing.B) {
	b.Run("disk", benchMerging)
	b.Run("slow", benchMergingSlowed)
}

func benchMerging(b *testing.B) {
	c := testConfig(b.TempDir())
	merged := mustOpen(b, c)
	c = testConfig(b.TempDir())
	c.unmerged = true
	single := mustOpen(b, c)
	for b.Loop() {
		var ratios, together, apart []float64
		for range mergingRounds {
			m, s := commandRate(b, merged), commandRate(b, single)
			together, apart, ratios = append(together, m), append(apart, s), append(ratios, m/s)
		}
		for _, all := range [][]float64{ratios, together, apart} {
			slices.Sort(all)
		}
		b.ReportMetric(together[mergingRounds/2], "merged-commands/s")
		b.ReportMetric(apart[mergingRounds/2], "single-commands/s")
		b.ReportMetric(ratios[0], "least-ratio")
		b.ReportMetric(ratios[mergingRounds/2], "ratio")
		b.ReportMetric(ratios[mergingRounds-1], "most-ratio")
	}
}

// commandRate is how many commands a second all writers together get done in a round.
func commandRate(b *testing.B, s *Store) float64 {
	b.Helper()
	l := benchLedger(s)
	var done atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for range mergingWriters {
		wg.Go(func() {
			for time.Since(begun) < mergingRound {
				if err := mutate(l, benchNumber.Add(1)); err != nil {
					b.Error(err)
					return
				}
				done.Add(2) // a claim and its end
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begun).Seconds()
}

// mergingMetrics are those of benchMerging in the line of a benchmark.
var mergingMetrics = regexp.MustCompile(`([0-9.e+]+) ((?:merged|single)-commands/s|(?:least-|most-)?ratio)\b`)

// benchMergingSlowed runs benchMerging in a process of its own under strace.
func benchMergingSlowed(b *testing.B) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		b.Skip("not run: strace is not on this machine")
	}
	const syncs = "msync,fdatasync,fsync"
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), strace, "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "signal=none",
			"-e", "trace="+syncs, "-e", "inject="+syncs+":delay_enter=5000",
			os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkMerging$/^disk$", "-test.benchtime=1x")
		out, err := cmd.CombinedOutput()
		found := mergingMetrics.FindAllSubmatch(out, -1)
		if err != nil || len(found) == 0 {
			b.Skipf("not run: %v under strace: %s", err, out)
		}
		for _, m := range found {
			value, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(value, string(m[2]))
		}
	}
}
