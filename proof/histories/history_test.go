package histories

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/proxy"
	"keep-proxy/rules"
)

const (
	workflow = "books"
	host     = "api.test"
)

// history is one simulated life of a workflow.
type history struct {
	plan    *plan
	api     *api
	machine *machine

	mu     sync.Mutex
	wrongs []string
	// decided counts people's decisions, ends the records by state.
	decided int
	ends    map[ledger.State]int
}

func (h *history) wrongf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrongs = append(h.wrongs, fmt.Sprintf(format, args...))
}

// house is what all histories share: rules, a CA and two pipes.
type house struct {
	set *rules.Set
	ca  *proxy.CA
	// quiet and ended are the pipes of [machine].
	quiet, ended *os.File
}

// outcome is what a history showed.
type outcome struct {
	wrongs                              []string
	sendings, reads, crashes, decisions int
	ends                                map[ledger.State]int
}

// simulate goes through one history.
func simulate(t *testing.T, shared *house, p *plan) outcome {
	t.Helper()
	var out outcome
	synctest.Test(t, func(t *testing.T) {
		h := &history{plan: p, api: newAPI(p), ends: map[ledger.State]int{}}
		h.machine = &machine{
			plan: p, api: h.api, set: shared.set, ca: shared.ca, quiet: shared.quiet, ended: shared.ended,
			clock: &virtual{began: time.Now().Add(-time.Hour)}, crashed: make(chan event, 32),
		}
		h.api.arrived = h.onTop
		ctx, cancel := context.WithCancel(t.Context())
		h.live(ctx)
		h.judge(ctx)
		cancel()
		h.machine.kill()
		h.machine.ending.Wait()
		h.api.working.Wait()
		out = outcome{wrongs: slices.Concat(h.wrongs, h.api.wrongs, h.machine.refusals), reads: h.api.reads, crashes: h.machine.crashes - 1, decisions: h.decided, ends: h.ends}
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
		if pause(20 * time.Second); h.settled(ctx) {
			break
		}
	}
	close(stop)
	others.Wait()
	pause(2 * latest)
}

// happen makes an event.
func (h *history) happen(e event) {
	switch e.kind {
	case "wall":
		h.machine.clock.wall.Add(int64(e.jump))
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

// records are the workflow's mutations as they are durable now.
func (h *history) records(ctx context.Context) []*ledger.Mutation {
	p := h.machine.up()
	if p == nil {
		return nil
	}
	page, err := p.ledger.Mutations(ctx, ledger.Filter{Workflow: workflow, Limit: 100})
	if err != nil {
		return nil
	}
	return page.Items
}

// settled reports whether nothing is open any more.
func (h *history) settled(ctx context.Context) bool {
	if h.machine.up() == nil {
		return false
	}
	for _, m := range h.records(ctx) {
		if m.State == ledger.InFlight || m.Unresolved() || m.Queued() {
			return false
		}
	}
	return true
}

func reference(m *ledger.Mutation) string { return strings.Trim(m.Identity["reference"], `"`) }

// onTop judges a request that arrives at the API: nothing else of its scope may have been
// unknown when it was claimed.
func (h *history) onTop(arriving string) {
	p := h.machine.up()
	if p == nil {
		return
	}
	_ = p.ledger.View(context.Background(), func(v ledger.View) error {
		blockers, err := v.Blockers(workflow)
		if err != nil || len(blockers) == 0 {
			return err
		}
		ours := h.find(v, arriving)
		for _, b := range blockers {
			m, err := v.Mutation(b.Key)
			if err != nil || ours == nil || m.Key == ours.Key || b.Scope == ledger.BlockMutation || b.Scope == ledger.BlockItem && m.Item != ours.Item {
				continue
			}
			if d := ours.Current(); d != nil && !d.Resend && m.UnknownSince.Wall.Before(d.Started.Wall) && !m.UnknownSince.Wall.IsZero() {
				h.wrongf("%s went out while another outcome of its scope was unknown", ours.Operation)
			}
		}
		return nil
	})
}

// find is the record of a reference.
func (h *history) find(v ledger.View, ref string) *ledger.Mutation {
	for _, item := range h.plan.items {
		keys, err := v.ItemMutations(workflow, item.name)
		if err != nil {
			continue
		}
		for _, k := range keys {
			if m, err := v.Mutation(k); err == nil && reference(m) == ref {
				return m
			}
		}
	}
	return nil
}

// judge holds the records against the API's books, at rest.
func (h *history) judge(ctx context.Context) {
	for _, item := range h.plan.items {
		for _, r := range item.runs {
			for _, s := range r.steps {
				if made, _ := h.api.effects(s.reference); made > 1 {
					h.wrongf("%s took effect %d times", s.operation, made)
				}
			}
		}
	}
	for _, m := range h.records(ctx) {
		h.ends[m.State]++
		made, _ := h.api.effects(reference(m))
		switch {
		case m.State == ledger.Applied && made == 0:
			h.wrongf("%s is recorded as applied, but never took effect", m.Operation)
		case m.State == ledger.Failed && made > 0:
			h.wrongf("%s is recorded as failed, but took effect", m.Operation)
		case m.State == ledger.InFlight, m.State == ledger.NeedsReconcile, m.State == ledger.Indeterminate:
			h.wrongf("%s never came to an end: %s", m.Operation, m.State)
		}
	}
}
