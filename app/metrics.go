package app

import (
	"context"
	"maps"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// metrics are the program's counters, prefix keep_. It implements proxy.Metrics
// and reconcilers.Metrics.
type metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.CounterVec
	durations  *prometheus.HistogramVec
	mutations  *prometheus.CounterVec
	unrecorded prometheus.Gauge
	upgraded   prometheus.Gauge
	carried    *prometheus.CounterVec
	tries      *prometheus.CounterVec
	tryTimes   prometheus.Histogram
	working    prometheus.Gauge
	// open is there once the admin API is, which counts for it.
	open *openMetrics

	// known are the series of requests that there were. A new kind of them makes a new map.
	known atomic.Pointer[map[requestKind]requestSeries]
}

// requestKind is what requests are told apart by.
type requestKind struct {
	effect, problem string
	status          int
}

// requestSeries are the metrics of requests of one kind. To find them by their labels
// costs more than to count.
type requestSeries struct {
	count prometheus.Counter
	took  prometheus.Observer
}

func newMetrics(a *App) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keep_requests_total", Help: "Requests, by effect, refusal (empty for none) and status.",
		}, []string{"effect", "problem", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "keep_request_duration_seconds", Help: "Time from a request's arrival to the end of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10),
		}, []string{"effect"}),
		mutations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keep_mutations_total", Help: "Claims, by decision and the state of the record afterwards.",
		}, []string{"decision", "state"}),
		unrecorded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "keep_unrecorded_outcomes", Help: "Outcomes that the ledger did not take yet.",
		}),
		upgraded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "keep_upgraded_connections", Help: "Connections that have changed protocols and are open.",
		}),
		carried: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keep_upgraded_bytes_total", Help: "Bytes of connections that had changed protocols, counted at their end, by where they came from.",
		}, []string{"from"}),
		tries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keep_reconcile_tries_total", Help: "Reconcile tries, by connector, operation, strategy and what they saw.",
		}, []string{"connector", "operation", "strategy", "seen"}),
		tryTimes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "keep_reconcile_try_duration_seconds", Help: "Time of one reconcile try.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		working: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "keep_reconcile_working", Help: "Reconcile tries of the runner that are under way.",
		}),
	}
	reload := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "keep_reload_failed", Help: "1 while the latest reload failed, so that what was in force before still is.",
	}, func() float64 {
		last := a.reloads.latest()
		return one(last != nil && last.Error != "")
	})
	healthy := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "keep_ledger_healthy", Help: "1 while the ledger takes records.",
	}, func() float64 {
		if a.store == nil || a.store.Healthy() != nil {
			return 0
		}
		return 1
	})
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "keep_build_info", Help: "Always 1; the labels tell the program's version and Go's.",
		ConstLabels: prometheus.Labels{"version": a.options.Version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
	logFull := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "keep_ledger_log_full_seconds_total", Help: "Time for which claims waited since the ledger's log was full.",
	}, func() float64 {
		if a.store == nil {
			return 0
		}
		return a.store.LogFull().Seconds()
	})
	halted := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "keep_halted", Help: "1 while an operator keeps work back (paused or draining).",
	}, func() float64 {
		return one(a.modes.halted())
	})
	m.registry.MustRegister(m.requests, m.durations, m.mutations, m.unrecorded, m.upgraded, m.carried, m.tries, m.tryTimes, m.working,
		healthy, logFull, reload, halted, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request implements proxy.Metrics.
func (m *metrics) Request(effect, problem string, status int, took time.Duration) {
	s := m.series(requestKind{effect, problem, status})
	s.count.Inc()
	s.took.Observe(took.Seconds())
}

func (m *metrics) series(k requestKind) requestSeries {
	known := m.known.Load()
	if known != nil {
		if s, ok := (*known)[k]; ok {
			return s
		}
	}
	s := requestSeries{m.requests.WithLabelValues(k.effect, k.problem, strconv.Itoa(k.status)), m.durations.WithLabelValues(k.effect)}
	grown := map[requestKind]requestSeries{k: s}
	if known != nil {
		maps.Copy(grown, *known)
	}
	m.known.CompareAndSwap(known, &grown) // else the next one of this kind is made known
	return s
}

// Mutation implements proxy.Metrics.
func (m *metrics) Mutation(decision, state string) {
	m.mutations.WithLabelValues(decision, state).Inc()
}

// Unrecorded implements proxy.Metrics.
func (m *metrics) Unrecorded(delta int) { m.unrecorded.Add(float64(delta)) }

// Upgraded implements proxy.Metrics.
func (m *metrics) Upgraded(delta int, fromClient, fromUpstream int64) {
	m.upgraded.Add(float64(delta))
	m.carried.WithLabelValues("client").Add(float64(fromClient))
	m.carried.WithLabelValues("upstream").Add(float64(fromUpstream))
}

// Tried implements reconcilers.Metrics.
func (m *metrics) Tried(connector, operation, strategy, seen string, took time.Duration) {
	m.tries.WithLabelValues(connector, operation, strategy, seen).Inc()
	m.tryTimes.Observe(took.Seconds())
}

// Working implements reconcilers.Metrics.
func (m *metrics) Working(delta int) { m.working.Add(float64(delta)) }

const (
	// countAtMost bounds how many open mutations a scrape reads: to whoever is called, more than
	// these are as many.
	countAtMost = 10_000
	// countFor bounds how long it reads. A count is told again for countRest times as long as it took. So scrapers,
	// which need no token, take little from the requests.
	countFor  = 5 * time.Second
	countRest = 20
)

// openMetrics tell at each scrape what is open, stands still or was not told, as GET /v1/status
// does. They are left out while the ledger can't be read.
type openMetrics struct {
	// count is admin.Server.Count, and mono the clock of until.
	count func(atMost int) (admin.Counts, error)
	mono  func() time.Duration
	// spacious is an error while new mutations are refused for want of space.
	spacious     func() error
	destinations func() []wire.Destination
	log          zerolog.Logger

	mu sync.Mutex
	// last and err are the latest count's, which holds until then.
	last  admin.Counts
	err   error
	until time.Duration

	unresolved, escalations, stopped, items, owed, gaps, full, waiting, dropped, failing *prometheus.Desc
}

func newOpenMetrics(a *App) *openMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("keep_"+name, help, labels, nil)
	}
	return &openMetrics{
		count: func(atMost int) (admin.Counts, error) {
			ctx, cancel := context.WithTimeout(a.ctx, countFor)
			defer cancel()
			return a.admin.Count(ctx, atMost)
		},
		mono: a.clock.Mono, spacious: func() error { return a.store.Spacious() }, destinations: a.destinationsStanding, log: a.options.Log,
		unresolved:  desc("unresolved_mutations", "Mutations whose outcome is unknown, by state; up to 10000 are counted.", "state"),
		escalations: desc("open_escalations", "Mutations that a person is asked about, by the kind of question; up to 10000 are counted.", "kind"),
		stopped:     desc("stopped_scopes", "Scopes that stand still because of an unresolved mutation, by what they are.", "scope"),
		items:       desc("waiting_items", "Items that wait for a person, with an open question or without one; up to 10000 are counted."),
		owed:        desc("owed_undos", "Effects that are to be taken back and are not yet, by their standing; up to 10000 are counted.", "standing"),
		gaps:        desc("unconfirmed_gaps", "Times of which the ledger knows nothing after a restore or a loss, until they are confirmed."),
		full:        desc("ledger_nearly_full", "1 while new mutations are refused since less than ledger.min_free is left, or can't be measured."),
		waiting:     desc("notifications_waiting", "Messages that a destination has not taken yet.", "destination"),
		dropped:     desc("notifications_dropped_total", "Messages that a destination will never get, since too many waited.", "destination"),
		failing: desc("notifications_failing",
			"1 while a destination did not take the message that was tried last, or what has to be told can't be queued.", "destination"),
	}
}

// Describe implements prometheus.Collector.
func (m *openMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.unresolved, m.escalations, m.stopped, m.items, m.owed, m.gaps, m.full, m.waiting, m.dropped, m.failing} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *openMetrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(m.full, one(m.spacious() != nil))
	for _, d := range m.destinations() {
		gauge(m.waiting, float64(d.Waiting), d.Name)
		gauge(m.failing, one(d.Error != ""), d.Name)
		to <- prometheus.MustNewConstMetric(m.dropped, prometheus.CounterValue, float64(d.Dropped), d.Name)
	}
	counts, err := m.counted()
	if err != nil {
		return
	}
	for _, state := range []ledger.State{ledger.InFlight, ledger.NeedsReconcile, ledger.Indeterminate} {
		gauge(m.unresolved, float64(counts.Unresolved[state]), string(state))
	}
	for _, standing := range wire.OpenStandings() {
		gauge(m.owed, float64(counts.Owed[standing]), standing)
	}
	for _, kind := range ledger.EscalationKinds() {
		gauge(m.escalations, float64(counts.Escalations[kind]), kind)
	}
	for _, scope := range []ledger.BlockScope{ledger.BlockWorkflow, ledger.BlockItem, ledger.BlockMutation} {
		gauge(m.stopped, float64(counts.Stopped[scope]), string(scope))
	}
	gauge(m.items, float64(counts.Waiting))
	gauge(m.gaps, float64(counts.Gaps))
}

// counted is the latest count, which is made anew once it has rested.
func (m *openMetrics) counted() (admin.Counts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	began := m.mono()
	if began < m.until {
		return m.last, m.err
	}
	failed := m.err != nil
	m.last, m.err = m.count(countAtMost)
	ended := m.mono()
	m.until = ended + countRest*(ended-began)
	if m.err != nil && !failed {
		m.log.Warn().Err(m.err).Msg("what is open can't be counted: metrics leave it out")
	}
	return m.last, m.err
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
