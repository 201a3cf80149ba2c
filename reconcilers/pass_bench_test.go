package reconcilers

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
	"keep-proxy/ledger/ledgertest"
	"keep-proxy/rules"
)

// instant is a probe in process that finds the effect at once.
type instant struct{ r *Reconciler }

func (p instant) try(ctx context.Context, t *try) (outcome, bool) {
	return p.r.observe(ctx, t, sighting{
		seen: ledger.SeenApplied, reached: true, strong: true, objects: []string{t.mutation.ID},
		result: &rules.Response{Status: 201, Body: []byte(`{"id":"thing"}`)},
	}), true
}

// countdown is a Metrics that closes done after so many tries.
type countdown struct {
	noMetrics
	left atomic.Int64
	done chan struct{}
}

func (c *countdown) Tried(string, string, string, string, time.Duration) {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// records is how many records these benchmarks work on.
func records(b *testing.B, otherwise int) int {
	b.Helper()
	return setting(b, "KEEP_BENCH_RECORDS", otherwise)
}

// setting is a number from the environment, if it is there.
func setting(b *testing.B, name string, otherwise int) int {
	b.Helper()
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
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

// onDisk is a world whose ledger is the embedded one.
func onDisk(b *testing.B) (*world, *badgerstore.Store) {
	b.Helper()
	w := newWorld(b, viaProbe)
	store, err := badgerstore.Open(b.Context(), badgerstore.Config{
		Dir: b.TempDir() + "/ledger", Now: w.now, NewID: w.newID, Logger: zerolog.Nop(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	w.ledger = ledger.New(store, ledger.Config{Now: w.now, NewID: w.newID})
	return w, store
}

// runner makes a Reconciler over the world's ledger, which asks instant.
func (w *world) runner(s Settings, m Metrics) *Reconciler {
	w.Helper()
	r, err := New(Config{
		Ledger: w.ledger, Sender: panicking{}, Credentials: &w.creds, Pinned: w.pinned(), Clock: w.clock, NewID: w.newID,
		Metrics: m, Settings: s, Log: zerolog.Nop(),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(r.Close)
	r.strategies[rules.StrategyProbe] = instant{r}
	w.r = r
	return r
}

// together calls fn for each number below n, with 64 at a time.
func together(n int, fn func(i int)) {
	const workers = 64
	var wg sync.WaitGroup
	for from := range workers {
		wg.Go(func() {
			for i := from; i < n; i += workers {
				fn(i)
			}
		})
	}
	wg.Wait()
}

// fill claims n references, as many in a workflow as said, and then ends each as end says:
// what is unknown would be looked through by each claim after it.
func (w *world) fill(n, inWorkflow int, end func(*ledger.Mutation)) {
	w.Helper()
	set, findings := rules.Load([]rules.File{{Name: "things.yaml", Data: []byte(w.rule)}}, w.hosts, rules.Defaults{})
	if findings.Failed() {
		w.Fatal(findings)
	}
	claimed := make([]*ledger.Mutation, n)
	together(n, func(i int) {
		req := w.request(fmt.Sprint("R-", i))
		match := set.Match(req)
		derived, refusal := match.Operation.Derive(req, match)
		if refusal != nil {
			w.Error(refusal)
			return
		}
		workflow := fmt.Sprint("payouts-", i/inWorkflow)
		out, err := w.ledger.Claim(w.Context(), claimIn(w, workflow, w.newID(), req, match, derived))
		if err != nil || out.Decision != ledger.DecideDispatch {
			w.Errorf("claim: %q %s, %v", out.Decision, out.Detail, err)
			return
		}
		claimed[i] = out.Mutation
	})
	together(n, func(i int) {
		if claimed[i] != nil {
			end(claimed[i])
		}
	})
}

// BenchmarkPass measures what the runner needs for 100,000 records that are due, with a
// probe in process that answers at once: where each hundred of them are in a workflow of
// their own, and where all are in one. KEEP_BENCH_TRIES is how many the runner makes at a time.
func BenchmarkPass(b *testing.B) {
	n := records(b, 100_000)
	for name, inWorkflow := range map[string]int{"many-workflows": 100, "one-workflow": n} {
		b.Run(name, func(b *testing.B) { benchPass(b, n, inWorkflow) })
	}
}

func benchPass(b *testing.B, n, inWorkflow int) {
	b.Helper()
	b.StopTimer()
	for range b.N {
		w, store := onDisk(b)
		seen := &countdown{done: make(chan struct{})}
		seen.left.Store(int64(n))
		tries := setting(b, "KEEP_BENCH_TRIES", 256)
		r := w.runner(Settings{Concurrency: 2 * tries, PerConnector: tries, Rate: 1e9}, seen)
		w.fill(n, inWorkflow, func(m *ledger.Mutation) { w.uncertain(m, false) })
		w.clock.Advance(time.Hour)
		ctx, cancel := context.WithCancel(b.Context())
		var runner sync.WaitGroup
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		commits, used := store.Commits(), processorTime(b)
		b.StartTimer()
		runner.Go(func() { r.Run(ctx) })
		<-seen.done
		b.StopTimer()
		b.ReportMetric(float64((processorTime(b)-used).Microseconds())/float64(n), "cpu-µs/record")
		b.ReportMetric(float64(n)/b.Elapsed().Seconds()*float64(b.N), "records/s")
		b.ReportMetric(float64(n)/float64(store.Commits()-commits), "records/commit")
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/record")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n), "bytes/record")
		cancel()
		runner.Wait()
		if keys, next, err := w.ledger.Due(b.Context(), w.clock.Now().Add(beyond)); err != nil || len(keys) > 0 {
			b.Fatalf("%d records are still unknown, the next at %s, %v", len(keys), next, err)
		}
	}
}

// BenchmarkIdlePass measures what the runner does every Poll with 100,000 settled records
// and none due; cpu-% is its share of one processor.
func BenchmarkIdlePass(b *testing.B) {
	n := records(b, 100_000)
	w, store := onDisk(b)
	for from := 0; from < n; from += 500 {
		err := store.Update(b.Context(), func(tx ledger.Tx) error {
			for i := from; i < min(from+500, n); i++ {
				m := ledgertest.SampleMutation(strconv.Itoa(i), ledger.Applied, 0)
				m.Item = fmt.Sprint("item-", i)
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
	r := w.runner(Settings{}, nil)
	round, ctx := newRound(), context.Background()
	used := processorTime(b)
	for b.Loop() {
		round.outdate()
		if started, paused := r.pass(ctx, round); started > 0 || paused {
			b.Fatalf("%d tries began, paused: %t", started, paused)
		}
	}
	each := (processorTime(b) - used) / time.Duration(b.N)
	b.ReportMetric(100*each.Seconds()/r.settings.Poll.Seconds(), "cpu-%")
}
