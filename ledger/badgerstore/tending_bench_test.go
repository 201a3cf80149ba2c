package badgerstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// BenchmarkTending measures what looks at a whole ledger: scrub, sweep and verify of many
// records, and a claim beside a scrub.
func BenchmarkTending(b *testing.B) {
	n := manyRecords(b)
	c := large(b, n)
	s, err := Open(context.Background(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("scrub/records=%d", n), func(b *testing.B) { benchScrub(b, s) })
	b.Run(fmt.Sprintf("sweep/records=%d", n), func(b *testing.B) {
		for b.Loop() {
			if _, err := s.SweepBodies(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("claim beside a scrub", func(b *testing.B) { benchBesideScrub(b, s) })
	b.Run(fmt.Sprintf("due/records=%d", n), func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Due(context.Background(), time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("verify/records=%d", n), func(b *testing.B) {
		used := processorTime(b)
		for b.Loop() {
			if _, err := Verify(context.Background(), c, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((processorTime(b)-used).Microseconds())/float64(b.N*n), "cpu-µs/record")
		b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "records/s")
	})
}

func benchScrub(b *testing.B, s *Store) {
	b.Helper()
	var bytes int64
	used := processorTime(b)
	for b.Loop() {
		done, err := s.Scrub(context.Background(), nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		bytes += done.Bytes
	}
	b.ReportMetric(float64(bytes>>20)/b.Elapsed().Seconds(), "MiB/s")
	b.ReportMetric(float64(bytes>>20)/(processorTime(b)-used).Seconds(), "MiB/cpu-s")
}

// benchBesideScrub measures mutations one after another, alone and beside a scrub, in five
// interleaved rounds, and gives the medians of their 99th percentiles.
func benchBesideScrub(b *testing.B, s *Store) {
	b.Helper()
	const rounds, each = 5, 200
	var alone, beside []time.Duration
	for b.Loop() {
		for range rounds {
			alone = append(alone, slowest(b, s, each))
			ctx, cancel := context.WithCancel(context.Background())
			var scrub sync.WaitGroup
			scrub.Go(func() {
				for ctx.Err() == nil {
					_, _ = s.Scrub(ctx, nil, nil) // it ends with ctx
				}
			})
			beside = append(beside, slowest(b, s, each))
			cancel()
			scrub.Wait()
		}
	}
	slices.Sort(alone)
	slices.Sort(beside)
	without, with := alone[len(alone)/2], beside[len(beside)/2]
	b.ReportMetric(float64(without.Microseconds()), "alone-p99-µs")
	b.ReportMetric(float64(with.Microseconds()), "beside-p99-µs")
	b.ReportMetric(float64(with)/float64(without), "ratio")
}

// slowest is the 99th percentile of n mutations, one after another.
func slowest(b *testing.B, s *Store, n int) time.Duration {
	b.Helper()
	l := benchLedger(s)
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		if err := mutate(l, benchNumber.Add(1)); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[n*99/100]
}

// BenchmarkRecovery measures what a start does about records that a lost process left in
// flight.
func BenchmarkRecovery(b *testing.B) {
	const n = 10_000
	c := testConfig(b.TempDir())
	for b.Loop() {
		b.StopTimer()
		s, err := Open(context.Background(), c)
		if err != nil {
			b.Fatal(err)
		}
		l := benchLedger(s)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range n / 64 {
					if _, err := l.Claim(context.Background(), benchClaim(benchNumber.Add(1))); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		used := processorTime(b)
		b.StartTimer()
		if s, err = Open(context.Background(), c); err != nil {
			b.Fatal(err)
		}
		counts, err := benchLedger(s).Recover(context.Background(), func(*ledger.Mutation) time.Time { return time.Now() })
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		b.ReportMetric(float64(counts.NeedsReconcile), "records")
		b.ReportMetric((processorTime(b) - used).Seconds(), "cpu-s")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		c = testConfig(b.TempDir())
		b.StartTimer()
	}
}
