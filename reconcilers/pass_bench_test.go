package reconcilers

import (
	"context"
	"fmt"
	"os"
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
	if n, err := strconv.Atoi(os.Getenv("KEEP_BENCH_RECORDS")); err == nil {
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

// fill claims n references and ends each as end says.
func (w *world) fill(n int, end func(*ledger.Mutation)) {
	w.Helper()
	var wg sync.WaitGroup
	set, findings := rules.Load([]rules.File{{Name: "things.yaml", Data: []byte(w.rule)}}, w.hosts, rules.Defaults{})
	if findings.Failed() {
		w.Fatal(findings)
	}
	for from := range 64 {
		wg.Go(func() {
			for i := from; i < n; i += 64 {
				req := w.request(fmt.Sprint("R-", i))
				match := set.Match(req)
				derived, refusal := match.Operation.Derive(req, match)
				if refusal != nil {
					w.Error(refusal)
					return
				}
				out, err := w.ledger.Claim(w.Context(), claimIn(w, fmt.Sprint("payouts-", i/100), w.newID(), req, match, derived))
				if err != nil || out.Decision != ledger.DecideDispatch {
					w.Errorf("claim: %q %s, %v", out.Decision, out.Detail, err)
					return
				}
				end(out.Mutation)
			}
		})
	}
	wg.Wait()
}

// BenchmarkPass measures what the runner needs for 100,000 records that are due, with a
// probe in process that answers at once.
func BenchmarkPass(b *testing.B) {
	n := records(b, 100_000)
	b.StopTimer()
	for range b.N {
		w, _ := onDisk(b)
		seen := &countdown{done: make(chan struct{})}
		seen.left.Store(int64(n))
		r := w.runner(Settings{Concurrency: 128, PerConnector: 64, Rate: 1e9}, seen)
		w.fill(n, func(m *ledger.Mutation) { w.uncertain(m, false) })
		w.clock.Advance(time.Hour)
		ctx, cancel := context.WithCancel(b.Context())
		var runner sync.WaitGroup
		used := processorTime(b)
		b.StartTimer()
		runner.Go(func() { r.Run(ctx) })
		<-seen.done
		b.StopTimer()
		b.ReportMetric(float64((processorTime(b)-used).Microseconds())/float64(n), "cpu-µs/record")
		b.ReportMetric(float64(n)/b.Elapsed().Seconds()*float64(b.N), "records/s")
		cancel()
		runner.Wait()
		if keys, next, err := w.ledger.Due(b.Context(), w.clock.Now().Add(beyond), 1); err != nil || len(keys) > 0 {
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
