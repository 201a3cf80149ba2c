package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

const (
	// keepFirst is how long after the start the ledger is tended first, keepEvery how
	// long after each time.
	keepFirst = 10 * time.Minute
	keepEvery = 24 * time.Hour
	// forgetBatch is how many records are forgotten in one transaction at most.
	forgetBatch = 32
	// wallDrift is how far the wall clock and the boot clock may go apart and still agree. They must have agreed for
	// believedAfter before the wall clock is believed about how old something is.
	wallDrift     = time.Hour
	believedAfter = 24 * time.Hour
)

// keeper tends the ledger while nobody asks for it. Cold records are read and held against their checksums. Old ones
// are forgotten, and what nobody names is removed.
type keeper struct {
	store interface {
		Scrub(ctx context.Context, visit func(*ledger.Mutation) error, progress func(badgerstore.Scrubbed) error) (badgerstore.Scrubbed, error)
		SweepBodies(ctx context.Context) (badgerstore.Swept, error)
	}
	ledger interface {
		Forget(ctx context.Context, keys []ledger.Key, r ledger.Retention) (ledger.ForgetCounts, error)
	}
	retention ledger.Retention
	clock     clock.Clock
	// agreed is the first known moment of this boot since which the wall clock went as the boot clock did.
	agreed  ledger.Stamp
	metrics *keeperMetrics
	log     zerolog.Logger
}

// retentionOf is what the configuration says.
func retentionOf(c config.Retention) ledger.Retention {
	return ledger.Retention{Keep: c.Keep, Forget: c.After == config.AfterForget}
}

func (a *App) openKeeper(context.Context) error {
	a.keeper = &keeper{
		store: a.store, ledger: a.ledger, retention: retentionOf(a.config.Ledger.Retention),
		clock: a.clock, agreed: a.now(), metrics: newKeeperMetrics(a.metrics.registry), log: a.options.Log,
	}
	return nil
}

// run tends the ledger now and then, until ctx ends.
func (k *keeper) run(ctx context.Context) {
	timer := time.NewTimer(keepFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := k.pass(ctx); err != nil && ctx.Err() == nil {
			k.log.Error().Err(err).Msg("ledger not tended to the end")
		}
		timer.Reset(keepEvery)
	}
}

// pass tends all once. Contents that a record lost are removed at the next pass. Whoever has just read the record still
// finds them.
func (k *keeper) pass(ctx context.Context) error {
	swept, err := k.store.SweepBodies(ctx)
	k.metrics.swept(swept)
	if err != nil {
		return err
	}
	var old []ledger.Key
	now := k.now()
	if !agree(k.agreed, now) {
		k.log.Warn().Stringer("for", believedAfter).Msg("the wall clock jumped: nothing is forgotten before it has run steadily")
		k.agreed = now
	}
	last := badgerstore.Scrubbed{}
	done, err := k.store.Scrub(ctx, func(m *ledger.Mutation) error {
		if seen := m.LastSeen(); seen.Boot < k.agreed.Boot && agree(seen, now) {
			k.agreed = seen
		}
		if now.Boot-k.agreed.Boot >= believedAfter && k.retention.Forgettable(m, now) {
			old = append(old, m.Key)
		}
		return nil
	}, func(far badgerstore.Scrubbed) error {
		k.metrics.scrubbed(last, far)
		last = far
		if len(old) < forgetBatch {
			return nil
		}
		defer func() { old = old[:0] }()
		return k.forget(ctx, old, k.retention)
	})
	if err == nil {
		err = k.forget(ctx, old, k.retention)
	}
	if err != nil {
		return err
	}
	k.metrics.passed(done, k.clock.Now())
	level := zerolog.InfoLevel
	if len(done.Damaged) > 0 {
		level = zerolog.ErrorLevel
	}
	k.log.WithLevel(level).Strs("damaged", done.Damaged[:min(len(done.Damaged), 10)]).
		Int("values", done.Values).Int64("read_bytes", done.Bytes).Int("bodies", done.Bodies).
		Int("bodies_removed", swept.Bodies+swept.Orphans).Msg("ledger tended")
	return nil
}

// forget lets go of records by commands of a bounded size. Where they are so long that it's too
// much for one transaction, it goes on with fewer.
func (k *keeper) forget(ctx context.Context, keys []ledger.Key, r ledger.Retention) error {
	for most := forgetBatch; len(keys) > 0; {
		n := min(most, len(keys))
		counts, err := k.ledger.Forget(ctx, keys[:n], r)
		switch {
		case err == nil:
			k.metrics.forgot(counts)
			keys = keys[n:]
		case n > 1 && !errors.Is(err, ledger.ErrUnavailable) && ctx.Err() == nil:
			most = n / 2
		default:
			return err
		}
	}
	return nil
}

func (k *keeper) now() ledger.Stamp { return ledger.Stamp(clock.Take(k.clock)) }

// agree reports whether the wall clock and the boot clock went alike between two moments of one boot.
func agree(earlier, now ledger.Stamp) bool {
	drift, known := now.Drift(earlier)
	return known && drift < wallDrift
}

// keeperMetrics are the keeper's.
type keeperMetrics struct {
	bytes, removed prometheus.Counter
	damaged, last  prometheus.Gauge
	forgotten      *prometheus.CounterVec
}

func newKeeperMetrics(r prometheus.Registerer) *keeperMetrics {
	m := &keeperMetrics{
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "keep_ledger_scrubbed_bytes_total", Help: "Bytes of the ledger that were read to see whether they are whole.",
		}),
		removed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "keep_ledger_bodies_removed_total", Help: "Stored contents that were removed since no record named them any more.",
		}),
		damaged: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "keep_ledger_damaged_bodies", Help: "Stored contents that the last whole scrub found missing or damaged.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "keep_ledger_scrubbed_timestamp_seconds", Help: "When the last whole scrub ended, in seconds since 1970; 0 before the first.",
		}),
		forgotten: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keep_ledger_forgotten_total", Help: "Mutations that retention let go of, by what it took: contents or record.",
		}, []string{"what"}),
	}
	r.MustRegister(m.bytes, m.removed, m.damaged, m.last, m.forgotten)
	return m
}

func (m *keeperMetrics) swept(s badgerstore.Swept) { m.removed.Add(float64(s.Bodies + s.Orphans)) }

func (m *keeperMetrics) scrubbed(last, far badgerstore.Scrubbed) {
	m.bytes.Add(float64(far.Bytes - last.Bytes))
}

func (m *keeperMetrics) passed(s badgerstore.Scrubbed, at time.Time) {
	m.damaged.Set(float64(len(s.Damaged)))
	m.last.Set(float64(at.Unix()))
}

func (m *keeperMetrics) forgot(c ledger.ForgetCounts) {
	m.forgotten.WithLabelValues("contents").Add(float64(c.Dropped))
	m.forgotten.WithLabelValues("record").Add(float64(c.Removed))
}
