package app

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes/testca"
	"keep-proxy/ledger"
)

// values are what a registry gives, by the name and the values of its labels.
func values(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

// openWorld is openMetrics, and what they are told.
type openWorld struct {
	*openMetrics
	registry *prometheus.Registry
	counts   admin.Counts
	err      error
	counted  int
	now      time.Duration
	// takes is how long one count does.
	takes time.Duration
}

func newOpenWorld() *openWorld {
	w := &openWorld{openMetrics: newOpenMetrics(&App{clock: clock.System()}), registry: prometheus.NewRegistry(), now: time.Hour}
	w.mono = func() time.Duration { return w.now }
	w.count = func(int) (admin.Counts, error) {
		w.counted++
		w.now += w.takes
		return w.counts, w.err
	}
	w.spacious = func() error { return nil }
	w.destinations = func() []wire.Destination { return nil }
	w.registry.MustRegister(w.openMetrics)
	return w
}

func TestMetricsTellWhatIsOpen(t *testing.T) {
	t.Parallel()
	w := newOpenWorld()
	w.counts = admin.Counts{
		Unresolved:  map[ledger.State]int{ledger.Indeterminate: 3},
		Escalations: map[string]int{ledger.EscalationIndeterminate: 3, ledger.EscalationVerify: 1},
		Stopped:     map[ledger.BlockScope]int{ledger.BlockWorkflow: 2},
		Waiting:     5,
		Gaps:        1,
		Owed:        map[string]int{"given_up": 2},
	}
	w.spacious = func() error { return ledger.ErrLowSpace }
	w.destinations = func() []wire.Destination {
		return []wire.Destination{{Name: "pager", Waiting: 4, Dropped: 2, Error: "exit status 1"}, {Name: "ops"}}
	}
	got := values(t, w.registry)
	for name, want := range map[string]float64{
		"keep_unresolved_mutations indeterminate":   3,
		"keep_unresolved_mutations needs_reconcile": 0,
		"keep_unresolved_mutations in_flight":       0,
		"keep_open_escalations indeterminate":       3,
		"keep_open_escalations verify":              1,
		"keep_stopped_scopes workflow":              2,
		"keep_waiting_items":                        5,
		"keep_stopped_scopes item":                  0,
		"keep_stopped_scopes mutation":              0,
		"keep_unconfirmed_gaps":                     1,
		"keep_owed_undos given_up":                  2,
		"keep_owed_undos owed":                      0,
		"keep_ledger_nearly_full":                   1,
		"keep_notifications_waiting pager":          4,
		"keep_notifications_dropped_total pager":    2,
		"keep_notifications_failing pager":          1,
		"keep_notifications_waiting ops":            0,
		"keep_notifications_failing ops":            0,
	} {
		if value, there := got[name]; !there || value != want {
			t.Errorf("%s is %v (there: %v), want %v", name, value, there, want)
		}
	}
	// What isn't asked has a series as well: an alert on it is no alert on nothing.
	for _, kind := range ledger.EscalationKinds() {
		if _, there := got["keep_open_escalations "+kind]; !there {
			t.Errorf("no series of the kind %s", kind)
		}
	}
}

// A scrape needs no token: whoever scrapes often must not take the ledger's time.
func TestACountIsToldAgainForAsLongAsItRests(t *testing.T) {
	t.Parallel()
	w := newOpenWorld()
	w.takes = 10 * time.Millisecond
	for range 3 {
		values(t, w.registry)
	}
	if w.counted != 1 {
		t.Errorf("counted %d times at once", w.counted)
	}
	w.now += countRest * w.takes
	values(t, w.registry)
	if w.counted != 2 {
		t.Errorf("counted %d times after the rest, want 2", w.counted)
	}
}

// What is broken is told by the others: none of them may go with what can't be counted.
func TestWhatCannotBeCountedIsLeftOut(t *testing.T) {
	t.Parallel()
	w := newOpenWorld()
	w.err = errors.New("the ledger can't be read")
	got := values(t, w.registry)
	if _, there := got["keep_ledger_nearly_full"]; !there || len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestAScrapeTellsWhoWaitsAndWhatStandsStill(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	_, port := newSite(t, ca, "127.0.0.2:0", "lost.things.test")
	w := newDialled(t, port, ca, nameserver(t, func(string, int) []string { return []string{"127.0.0.2"} }))
	if got := values(t, w.app.metrics.registry); got["keep_stopped_scopes workflow"] != 0 || got["keep_ledger_nearly_full"] != 0 {
		t.Errorf("at the start: %v", got)
	}
	if status, text := w.post("lost.things.test"); status != http.StatusFailedDependency {
		t.Fatalf("%d %s", status, text)
	}
	w.app.metrics.open.rested()
	got := values(t, w.app.metrics.registry)
	if got["keep_open_escalations indeterminate"] != 1 || got["keep_unresolved_mutations indeterminate"] != 1 || got["keep_stopped_scopes workflow"] != 1 {
		t.Errorf("after an answer was lost: %v", got)
	}
}

// rested has the next scrape count anew.
func (m *openMetrics) rested() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until = 0
}

// The pages for whoever is called have a row for each metric, and for each kind of question.
func TestTheOperatorsPagesNameEveryMetricAndEveryKind(t *testing.T) {
	t.Parallel()
	called, err := os.ReadFile("../docs/called.md")
	if err != nil {
		t.Fatal(err)
	}
	deciding, err := os.ReadFile("../docs/deciding.md")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	w := newDialled(t, "443", ca, nil)
	_, page, _ := strings.Cut(string(called), "\n## Metrics\n")
	page, _, _ = strings.Cut(page, "\n## ")
	described := make(chan *prometheus.Desc, 1000)
	w.app.metrics.registry.Describe(described)
	close(described)
	known := map[string]bool{}
	for d := range described {
		_, name, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		if known[name] = true; strings.HasPrefix(name, "keep_") && !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "`"+name+"{") {
			t.Errorf("no row tells of %s", name)
		}
	}
	for _, name := range regexp.MustCompile(`\bkeep_[a-z_]+`).FindAllString(page, -1) {
		if !known[name] {
			t.Errorf("the page tells of %s, which is no metric", name)
		}
	}
	_, asked, _ := strings.Cut(string(deciding), "\n## Kinds of questions\n")
	asked, _, _ = strings.Cut(asked, "\n## ")
	for _, kind := range ledger.EscalationKinds() {
		if !strings.Contains(asked, "\n| `"+kind+"` |") {
			t.Errorf("no row tells what to do about %s", kind)
		}
	}
}
