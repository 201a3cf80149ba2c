package histories

import (
	"slices"
	"strings"
	"sync"
	"time"

	"keep-proxy/ledger"
)

// durable is what the commits have put, in their order.
type durable struct {
	mu sync.Mutex
	// ended is when a run was over, claims the sendings that scripts claimed.
	ended  map[string]time.Time
	claims map[string]bool
	// open are an item's mutations that may still come to one end or another.
	open map[string]map[ledger.Key]*ledger.Mutation
	done map[string]ledger.ItemState
	// attempts are those of items, going the runs of an item that go on, and ends the mutations
	// that came to an end which is final.
	attempts map[string]int
	going    map[string]map[string]bool
	ends     map[ledger.Key]ledger.State
	// doubts are the mutations of which a person was asked.
	doubts map[ledger.Key]bool
	// forgotten is when a mutation's contents were dropped, removed when its record was.
	forgotten, removed map[ledger.Key]time.Time
}

func newDurable() durable {
	return durable{
		ended: map[string]time.Time{}, claims: map[string]bool{}, open: map[string]map[ledger.Key]*ledger.Mutation{}, done: map[string]ledger.ItemState{},
		attempts: map[string]int{}, going: map[string]map[string]bool{}, ends: map[ledger.Key]ledger.State{}, doubts: map[ledger.Key]bool{},
		forgotten: map[ledger.Key]time.Time{}, removed: map[ledger.Key]time.Time{},
	}
}

// committed judges what a commit put: no run goes on after its end, and nothing is finished
// or closed over what is open.
func (h *history) committed(c changes) {
	d := &h.durable
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range c.mutations {
		h.forgets(m)
		h.claimed(m)
	}
	h.drops(c)
	for _, i := range c.items {
		if d.attempts[i.Item] > 0 && i.Attempt > d.attempts[i.Item] && len(d.open[i.Item]) > 0 {
			h.wrongf("an attempt was begun over a mutation that is open")
		}
		d.done[i.Item], d.attempts[i.Item] = i.State, i.Attempt
	}
	for item, state := range d.done {
		if n := len(d.open[item]); n > 0 && (state == ledger.ItemDone || state == ledger.ItemSkipped) {
			h.wrongf("an item is %s over a mutation that is open", state)
		}
	}
	for _, r := range c.runs {
		if r.State == ledger.RunFinished {
			h.finished(r)
		}
		if _, over := d.ended[r.ID]; r.State.Ended() && !over {
			d.ended[r.ID] = time.Now()
		}
		h.goes(r)
	}
	h.oneGoes()
}

// goes judges that one run of an item goes on at a time.
func (h *history) goes(r *ledger.Run) {
	d := &h.durable
	if r.Item == "" {
		return // It has many.
	}
	if d.going[r.Item] == nil {
		d.going[r.Item] = map[string]bool{}
	}
	d.going[r.Item][r.ID] = true
	if r.State.Ended() {
		delete(d.going[r.Item], r.ID)
	}
}

// oneGoes is called once all of a commit was seen.
func (h *history) oneGoes() {
	for _, all := range h.durable.going {
		if len(all) > 1 {
			h.wrongf("two runs of an item go on at once")
		}
	}
}

// claimed notes a mutation, and judges a sending of it that is new.
func (h *history) claimed(m *ledger.Mutation) {
	if m.Undo != nil {
		h.waives(m)
		return // It may be met whatever became of its item.
	}
	d := &h.durable
	if d.open[m.Item] == nil {
		d.open[m.Item] = map[ledger.Key]*ledger.Mutation{}
	}
	delete(d.open[m.Item], m.Key)
	if isOpen(m) {
		d.open[m.Item][m.Key] = m
	}
	if m.State == ledger.Indeterminate && !d.doubts[m.Key] {
		d.doubts[m.Key] = true
		h.doubted(m)
	}
	before := d.ends[m.Key]
	if m.State == ledger.Applied || m.State == ledger.Skipped {
		d.ends[m.Key] = m.State
	}
	for i := range m.Dispatches {
		s := &m.Dispatches[i]
		if d.claims[s.ID] {
			continue
		}
		d.claims[s.ID] = true
		if _, over := d.ended[s.Run]; over && s.Run != "" && !s.Resend && !s.Redispatch {
			h.wrongf("a run claimed %s after it was over", m.Operation)
		}
		if before != "" {
			h.wrongf("%s was claimed although it is %s", m.Operation, before)
		}
		if state := d.done[m.Item]; state == ledger.ItemDone || state == ledger.ItemSkipped {
			h.wrongf("%s was claimed for an item that is %s", m.Operation, state)
		}
	}
}

// doubted counts a mutation of which a person is asked, and what its record names.
func (h *history) doubted(m *ledger.Mutation) {
	clocks := slices.ContainsFunc(m.Observations, func(o ledger.Observation) bool { return strings.Contains(o.Reason, "one of the clocks is wrong") })
	h.count(func(c *counts) {
		c.asked++
		if clocks {
			c.clocks++
		}
	})
}

// finished judges a run that came to a good end.
func (h *history) finished(r *ledger.Run) {
	for _, all := range h.durable.open {
		for _, m := range all {
			if m.Run == r.ID {
				h.wrongf("a run is finished over a mutation that is open: %s", m.Operation)
			}
		}
	}
}

// isOver reports whether a run was over before now.
func (h *history) isOver(run string) bool {
	h.durable.mu.Lock()
	defer h.durable.mu.Unlock()
	at, over := h.durable.ended[run]
	return over && at.Before(time.Now())
}
