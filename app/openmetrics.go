package app

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

const (
	// countAtMost bounds how many open mutations a scrape reads: to whoever is called, more than
	// these are as many.
	countAtMost = 10_000
	// countFor bounds how long it reads, and countRest how many times as long as a count took it
	// is told again: so that no scraper, of which none needs a token, takes much from the requests.
	countFor  = 5 * time.Second
	countRest = 20
)

// openMetrics tell at each scrape what is open, stands still or was not told, as GET /v1/status
// does. They are left out while the ledger can't be read.
type openMetrics struct {
	// count is admin.Server.Count, and mono the clock by which it rests.
	count func(atMost int) (admin.Counts, error)
	mono  func() time.Duration
	// spacious is an error while new mutations are refused for want of space.
	spacious     func() error
	destinations func() []wire.Destination
	log          zerolog.Logger

	mu sync.Mutex
	// last and err are what the latest count gave, which holds until then.
	last  admin.Counts
	err   error
	until time.Duration

	unresolved, escalations, stopped, items, gaps, full, waiting, dropped, failing *prometheus.Desc
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
	for _, d := range []*prometheus.Desc{m.unresolved, m.escalations, m.stopped, m.items, m.gaps, m.full, m.waiting, m.dropped, m.failing} {
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
