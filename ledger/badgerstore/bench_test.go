package badgerstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// benchLedger binds the real commands to a store.
func benchLedger(s *Store) *ledger.Ledger {
	return ledger.New(s, ledger.Config{Now: s.config.Now, NewID: s.config.NewID})
}

var benchNumber atomic.Uint64

// benchClaim is a claim of a mutation that was never seen, in an item of its own.
func benchClaim(n uint64) ledger.Claim {
	name := strconv.FormatUint(n, 36)
	m := ledgertest.SampleMutation(name, ledger.InFlight, 0)
	m.Item, m.Run, m.Dispatches = "order-"+name, "", nil
	binary.BigEndian.PutUint64(m.Key[:], n*0x9e3779b97f4a7c15)
	m.ID = m.Key.ID()
	body := fmt.Appendf(nil, "%01024d", n)
	m.Request.Body = ledgertest.SampleBody(body)
	return ledger.Claim{
		Scope: m.Scope, Key: m.Key, DispatchID: "d-" + name, Record: *m, Body: body, Connector: []byte("connector: stripe"),
	}
}

// mutate is one mutation of the proxy: a claim, then its outcome.
func mutate(l *ledger.Ledger, n uint64) error {
	c := benchClaim(n)
	got, err := l.Claim(context.Background(), c)
	if err != nil || got.Decision != ledger.DecideDispatch {
		return fmt.Errorf("claim: %s %s %w", got.Decision, got.Detail, err)
	}
	d := *got.Dispatch
	d.Verdict, d.Ended, d.Status, d.Head, d.BodyComplete = ledger.VerdictApplied, d.Started, 200, true, true
	ended, err := l.EndDispatch(context.Background(), ledger.EndDispatch{
		Key: c.Key, Dispatch: d, Result: &ledger.Result{Status: 200, Body: c.Record.Request.Body}, Body: c.Body,
	})
	if err == nil {
		l.Deliver("run-1", ended.Mutation, "")
	}
	return err
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkCommands measures claim, finish and delivery as the proxy uses them, merged
// into shared transactions and, in the same run, one transaction each; cpu-µs is the
// processor time of a mutation.
func BenchmarkCommands(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		for _, mode := range []string{"merged", "single"} {
			b.Run(fmt.Sprintf("writers=%d/%s", writers, mode), func(b *testing.B) {
				c := testConfig(b.TempDir())
				c.unmerged = mode == "single"
				s := mustOpen(b, c)
				l := benchLedger(s)
				before := s.Commits()
				var wg sync.WaitGroup
				var left atomic.Int64
				left.Store(int64(b.N))
				used := processorTime(b)
				b.ResetTimer()
				for range writers {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if err := mutate(l, benchNumber.Add(1)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "commands/s")
				b.ReportMetric(float64((processorTime(b)-used).Microseconds())/float64(b.N), "cpu-µs")
				b.ReportMetric(float64(s.Commits()-before)/float64(2*b.N), "syncs/command")
			})
		}
	}
}

// manyRecords is how many records the benchmarks of a large ledger hold;
// KEEP_BENCH_RECORDS overrides it.
func manyRecords(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("KEEP_BENCH_RECORDS"))
	if err != nil {
		return 50_000
	}
	return n
}

// large makes a ledger with n settled records.
func large(b *testing.B, n int) Config {
	b.Helper()
	c := testConfig(b.TempDir())
	s, err := Open(context.Background(), c)
	if err != nil {
		b.Fatal(err)
	}
	l := benchLedger(s)
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				if err := mutate(l, benchNumber.Add(1)); err != nil {
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
	return c
}

// BenchmarkLarge gives the time to open a ledger with many records, all of its
// verification included, and the median latency of a claim in it, against that in
// an empty one.
func BenchmarkLarge(b *testing.B) {
	n := manyRecords(b)
	full, empty := large(b, n), large(b, 0)
	b.Run(fmt.Sprintf("open/records=%d", n), func(b *testing.B) { benchOpen(b, full) })
	b.Run(fmt.Sprintf("claim/records=%d", n), func(b *testing.B) { benchClaims(b, empty, full) })
}

func benchOpen(b *testing.B, c Config) {
	b.Helper()
	for b.Loop() {
		s, err := Open(context.Background(), c)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// benchClaims claims in an empty ledger and in a full one in turn.
func benchClaims(b *testing.B, empty, full Config) {
	b.Helper()
	took := map[string][]time.Duration{}
	ledgers := map[string]*ledger.Ledger{}
	for name, c := range map[string]Config{"empty": empty, "full": full} {
		s, err := Open(context.Background(), c)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		ledgers[name] = benchLedger(s)
	}
	b.ResetTimer()
	for range b.N {
		for name, l := range ledgers {
			claim := benchClaim(benchNumber.Add(1))
			start := time.Now()
			if _, err := l.Claim(context.Background(), claim); err != nil {
				b.Fatal(err)
			}
			took[name] = append(took[name], time.Since(start))
		}
	}
	b.StopTimer()
	median := map[string]float64{}
	for name, all := range took {
		slices.Sort(all)
		median[name] = float64(all[len(all)/2].Nanoseconds())
		b.ReportMetric(median[name]/1000, name+"-p50-µs")
	}
	b.ReportMetric(median["full"]/median["empty"], "p50-ratio")
}

// BenchmarkOpenRun measures the opening of a run with its sync, each of another item.
func BenchmarkOpenRun(b *testing.B) {
	s := mustOpen(b, testConfig(b.TempDir()))
	l := benchLedger(s)
	for n := 0; b.Loop(); n++ {
		_, err := l.OpenRun(context.Background(), ledger.OpenRun{Workflow: "w", Item: strconv.Itoa(n), TokenSHA256: strconv.Itoa(n)})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCrowdedGate measures the gate with 10,000 running runs, and 1,000 items that
// stand still.
func BenchmarkCrowdedGate(b *testing.B) {
	s := mustOpen(b, testConfig(b.TempDir()))
	const runs, stops, step = 10_000, 1_000, 100
	for from := 0; from < runs; from += step {
		err := s.Update(context.Background(), func(tx ledger.Tx) error {
			for n := from; n < from+step; n++ {
				r := ledgertest.SampleRun(fmt.Sprint("run-", n), 0)
				r.Workflow, r.Item, r.TokenSHA256 = "w", fmt.Sprint("item-", n), fmt.Sprint("token-", n)
				if err := tx.PutRun(r); err != nil {
					return err
				}
				if n >= stops {
					continue
				}
				m := ledgertest.SampleMutation(fmt.Sprint(n), ledger.Indeterminate, 0)
				m.Workflow, m.Item, m.Run = r.Workflow, fmt.Sprint("stopped-", n), r.ID
				m.Policy.BlockScope = ledger.BlockItem
				if err := tx.PutMutation(m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	l := benchLedger(s)
	b.ReportAllocs()
	for b.Loop() {
		if a := l.GateToken("token-5000", ""); !a.Open {
			b.Fatal(a)
		}
	}
}

// BenchmarkStanding measures the gate.
func BenchmarkStanding(b *testing.B) {
	s := mustOpen(b, testConfig(b.TempDir()))
	r := ledgertest.SampleRun("run-1", 0)
	if err := s.Update(context.Background(), func(tx ledger.Tx) error { return tx.PutRun(r) }); err != nil {
		b.Fatal(err)
	}
	l := benchLedger(s)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := l.StandingByToken(r.TokenSHA256); err != nil {
			b.Fatal(err)
		}
	}
}
