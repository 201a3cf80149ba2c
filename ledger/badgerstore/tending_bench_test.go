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
	b.Run("claim/alone", func(b *testing.B) { benchClaimsOf(b, s) })
	b.Run("claim/beside a scrub", func(b *testing.B) {
		ctx, cancel := context.WithCancel(context.Background())
		var beside sync.WaitGroup
		beside.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Scrub(ctx, nil, nil) // it ends with ctx
			}
		})
		benchClaimsOf(b, s)
		cancel()
		beside.Wait()
	})
	b.Run(fmt.Sprintf("due/records=%d", n), func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Due(context.Background(), time.Now(), 256); err != nil {
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

// benchClaimsOf measures mutations one after another.
func benchClaimsOf(b *testing.B, s *Store) {
	b.Helper()
	l := benchLedger(s)
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	for i := range took {
		start := time.Now()
		if err := mutate(l, benchNumber.Add(1)); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
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
