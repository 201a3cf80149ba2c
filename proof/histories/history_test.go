package histories

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/proxy"
	"keep-proxy/rules"
)

const workflow = "books"

// history is one simulated life of a workflow.
type history struct {
	plan    *plan
	api     *api
	machine *machine
	durable durable

	mu     sync.Mutex
	wrongs []string
	tick   int
	// asked are the intents of a reference, by their subkeys, and answered those that a
	// script was told of as done.
	asked, answered map[string]map[string]bool
	// attempts counts what people granted to an item, accepted what amounts of a mutation they
	// took as covered, steadied the drifts that they let be.
	attempts map[string]int
	accepted map[string]map[int]bool
	steadied map[string]bool
	// wanted are objects that a person had undone, waived those that stay.
	wanted, waived map[string]bool
	// letBe are those of which they said, or tried to say, that they stay.
	letBe map[string]bool
	// acknowledged are mutations whose stored result they wanted, or tried to want, replayed, and since
	// when they know that it is.
	acknowledged map[string]bool
	since        map[string]time.Time
	// runs are those that were opened, by their tokens.
	runs  map[string]*running
	onces onces
	// places are the settings that arrived, closed how many sendings of a setting can't take
	// effect any more.
	places map[string][]setting
	closed map[string]int
	// decided counts people's decisions, ends the records by state, and the rest what was seen.
	decided int
	ends    map[ledger.State]int
	counts  counts
}

// counts is how often something happened that a judge's sentence is about.
type counts struct {
	drafts, jobs, twins, undone, settings, attempts, items, accepted, drifts, subkeys, rewritten, looks int
	// onces are the runs with once, singles those of one mutation or none, and loose the sendings of
	// an unmanaged scope.
	onces, singles, loose int
	// vanished are effects that others took back, unverified the replays that were refused for that,
	// confirmed those that a person wanted all the same; forgotten are contents that were dropped,
	// removed records that went, refused the requests for what was dropped; and owing the items that
	// were closed over an obligation.
	vanished, unverified, confirmed, forgotten, removed, refused, owing int
	// asked are mutations of which a person had to say what became of them, clocks those of them
	// where asking found that a clock is wrong.
	asked, clocks int
}

// running is what a script's run has done so far. Opened and tick are moments in one order.
type running struct {
	id     string
	item   string
	opened int
	// at is when it was opened, plan what it is like, and reads the item that its reads belong to.
	at    time.Time
	plan  runPlan
	reads string
	// intents are the subkeys of the references that it asked for, sent and given the markers of
	// the mutations that went out for it, and that it was told of.
	intents     map[string]map[string]bool
	sent, given map[string]bool
	// posted is since when the script waits for the answer of a reference.
	posted map[string]time.Time
	// asked are the references that it asked for, and told those of which it was told that
	// they are done.
	asked map[string]bool
	told  map[string]told
	// stopped says that it was refused because of an unknown.
	stopped bool
}

// told is when a run was told of something, in which attempt.
type told struct{ tick, attempt int }

// setting is one that arrived at the API.
type setting struct {
	marker  string
	number  int
	at      time.Time
	refused bool
}

func newHistory(p *plan) *history {
	return &history{
		plan: p, api: newAPI(p), ends: map[ledger.State]int{}, asked: map[string]map[string]bool{},
		answered: map[string]map[string]bool{}, attempts: map[string]int{}, accepted: map[string]map[int]bool{}, steadied: map[string]bool{},
		wanted: map[string]bool{}, waived: map[string]bool{}, letBe: map[string]bool{},
		acknowledged: map[string]bool{}, since: map[string]time.Time{}, runs: map[string]*running{}, places: map[string][]setting{}, closed: map[string]int{},
		durable: newDurable(),
	}
}

func (h *history) wrongf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrongs = append(h.wrongs, fmt.Sprintf(format, args...))
}

// count changes what is counted.
func (h *history) count(fn func(*counts)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fn(&h.counts)
}

// house is what all histories share: the versions of the rules, a CA and two pipes.
type house struct {
	sets []*rules.Set
	ca   *proxy.CA
	// quiet and ended are the pipes of [machine].
	quiet, ended *os.File
	// pinned are versions of connectors that were loaded, by their hashes.
	pinned sync.Map
}

// load gives a version of a connector.
func (h *house) load(hash string, content []byte) (*rules.Connector, error) {
	if c, ok := h.pinned.Load(hash); ok {
		return c.(*rules.Connector), nil
	}
	c, findings := rules.LoadPinned(content, nil, rules.Defaults{})
	if c == nil {
		return nil, findings
	}
	h.pinned.Store(hash, c)
	return c, nil
}

// outcome is what a history showed.
type outcome struct {
	wrongs                              []string
	sendings, reads, crashes, decisions int
	ends                                map[ledger.State]int
	counts                              counts
	// fates are the numbers of what the API did that was not simply good.
	fates []int
}

// simulate goes through one history.
func simulate(t *testing.T, shared *house, p *plan) outcome {
	t.Helper()
	var out outcome
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(p)
		h.machine = &machine{
			plan: p, api: h.api, house: shared, sets: shared.sets, ca: shared.ca, quiet: shared.quiet, ended: shared.ended,
			clock: &virtual{began: time.Now().Add(-time.Hour)}, crashed: make(chan event, 32), committed: h.committed,
		}
		h.api.watcher = h
		ctx, cancel := context.WithCancel(t.Context())
		h.live(ctx)
		h.judge()
		cancel()
		h.machine.kill()
		h.machine.ending.Wait()
		h.api.working.Wait()
		out = outcome{
			wrongs: slices.Concat(h.wrongs, h.api.wrongs, h.machine.refusals), reads: h.api.reads, crashes: h.machine.crashes - 1,
			decisions: h.decided, ends: h.ends, counts: h.counts, fates: p.fates(),
		}
		for _, n := range h.api.sendings {
			out.sendings += n
		}
	})
	slices.Sort(out.wrongs)
	out.wrongs = slices.Compact(out.wrongs)
	return out
}

// live lets everything happen, and then time pass until all is settled.
func (h *history) live(ctx context.Context) {
	if err := h.machine.start(ctx); err != nil {
		h.wrongf("the machine doesn't start: %v", err)
		return
	}
	stop := make(chan struct{})
	var scripts, others sync.WaitGroup
	others.Go(func() { h.machine.keepUp(ctx, stop) })
	others.Go(func() { h.people(ctx, stop) })
	others.Go(func() { h.tend(ctx, stop) })
	for _, item := range h.plan.items {
		scripts.Go(func() { h.script(ctx, item) })
	}
	begun := time.Now()
	for _, e := range h.plan.events {
		pause(e.at - time.Since(begun))
		h.happen(e)
	}
	scripts.Wait()
	h.machine.disarm()
	h.api.mu.Lock()
	h.api.calm = true
	h.api.mu.Unlock()
	for range 60 {
		if pause(20 * time.Second); h.settled() {
			break
		}
	}
	close(stop)
	others.Wait()
	pause(2 * (latest + longest))
}

// happen makes an event.
func (h *history) happen(e event) {
	switch e.kind {
	case "wall":
		if h.plan.retention.Forget {
			return // What is removed early by it is sent again.
		}
		h.machine.clock.wall.Add(int64(e.jump))
		if e.reboot { // It is put right again.
			go func() {
				pause(e.down)
				h.machine.clock.wall.Add(-int64(e.jump))
			}()
		}
	case "rules":
		h.machine.rewrite()
		h.count(func(c *counts) { c.rewritten++ })
	case "kill":
		h.machine.kill()
		h.machine.crashed <- e
	default:
		h.machine.arm(e)
	}
}

// keepUp starts the machine again after each crash.
func (m *machine) keepUp(ctx context.Context, stop <-chan struct{}) {
	for {
		var e event
		select {
		case <-stop:
			return
		case e = <-m.crashed:
		}
		if m.up() != nil {
			continue
		}
		pause(e.down)
		if e.reboot {
			m.clock.reboot()
		}
		if err := m.start(ctx); err != nil {
			return
		}
	}
}

func (m *machine) disarm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed = nil
}

// up is the running process, nil while there is none.
func (m *machine) up() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.process
}

func (m *machine) isDown(p *process) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.dead
}

// records are the mutations as they are durable now, newest first; none while the program is
// down. They are the store's own: most of what looks at them looks at all of them, and often.
func (h *history) records() []*ledger.Mutation {
	if h.machine.up() == nil {
		return nil
	}
	var all []*ledger.Mutation
	_ = h.machine.stored(func(s stored) error {
		all = slices.Clone(s.all)
		return nil
	})
	slices.Reverse(all)
	return all
}

// settled reports whether nothing is open any more.
func (h *history) settled() bool {
	if h.machine.up() == nil {
		return false
	}
	for _, m := range h.records() {
		if isOpen(m) || m.Queued() || m.Undo != nil && m.State == ledger.Failed {
			return false
		}
	}
	return true
}

// isOpen reports whether a mutation may still come to one end or another.
func isOpen(m *ledger.Mutation) bool {
	return m.State == ledger.InFlight || m.State == ledger.NeedsReconcile || m.State == ledger.Indeterminate
}
