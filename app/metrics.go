package app

import (
	"maps"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
		if last := a.reloads.latest(); last != nil && last.Error != "" {
			return 1
		}
		return 0
	})
	healthy := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "keep_ledger_healthy", Help: "1 while the ledger takes records.",
	}, func() float64 {
		if a.store == nil || a.store.Healthy() != nil {
			return 0
		}
		return 1
	})
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
		if a.modes.halted() {
			return 1
		}
		return 0
	})
	m.registry.MustRegister(m.requests, m.durations, m.mutations, m.unrecorded, m.upgraded, m.carried, m.tries, m.tryTimes, m.working,
		healthy, logFull, reload, halted,
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
