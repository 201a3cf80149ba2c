package histories

import (
	"strconv"
	"time"

	"keep-proxy/ledger"
)

// arrives judges a mutation that arrives at the API, by what is durable then.
func (h *history) arrives(q asked) {
	h.stops(q)
	h.sends(q)
	_ = h.machine.stored(func(v stored) error {
		m := h.recordOf(v, q.KeepID)
		if m == nil {
			h.wrongf("%s went out before its claim was durable", q.operation)
			return nil
		}
		h.onTop(v, m)
		if q.Draft != "" {
			h.count(func(c *counts) { c.drafts++ })
			if m.Kept["draft"] != strconv.Quote(q.Draft) {
				h.wrongf("%s went out before what its steps gave was durable", m.Operation)
			}
		}
		if q.place != "" {
			h.sets(v, q, m)
		}
		if q.operation == "dear" {
			h.drifts(q, m)
		}
		return nil
	})
}

// recordOf is the mutation with a marker, nil for none.
func (h *history) recordOf(v stored, marker string) *ledger.Mutation {
	return h.record(v, func(m *ledger.Mutation) bool { return m.Marker == marker })
}

func (h *history) record(v stored, is func(*ledger.Mutation) bool) *ledger.Mutation {
	for _, item := range h.items() {
		for _, m := range v.all {
			if m.Item == item && is(m) {
				return m
			}
		}
	}
	return nil
}

// onTop judges that nothing else of its scope was unknown when it was claimed.
func (h *history) onTop(v stored, ours *ledger.Mutation) {
	blockers, err := v.Blockers(workflow)
	if err != nil {
		return
	}
	for _, b := range blockers {
		m, err := v.Mutation(b.Key)
		if err != nil || m.Key == ours.Key || b.Scope == ledger.BlockMutation || b.Scope == ledger.BlockItem && m.Item != ours.Item {
			continue
		}
		if d := ours.Current(); d != nil && !d.Resend && m.UnknownSince.Wall.Before(d.Started.Wall) && !m.UnknownSince.Wall.IsZero() {
			h.wrongf("%s went out while another outcome of its scope was unknown", ours.Operation)
		}
	}
}

// sets judges a setting: it isn't made again after a later one of the same place. And what
// the ledger has settled by then must not undo it.
func (h *history) sets(v stored, q asked, m *ledger.Mutation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.settings++
	first := time.Now()
	for _, s := range h.places[q.place] {
		if s.marker == q.KeepID && s.at.Before(first) {
			first = s.at
		}
	}
	current := m.Current()
	for _, s := range h.places[q.place] {
		if s.marker == q.KeepID {
			continue
		}
		if current != nil && current.Resend && !h.plan.retention.Forget && !s.refused && s.at.After(first) && s.at.Before(time.Now()) {
			h.wrongs = append(h.wrongs, "a place was set again after a later setting of it")
		}
		if other := h.recordOf(v, s.marker); other != nil && !isOpen(other) {
			h.closed[s.marker] = max(h.closed[s.marker], s.number)
		}
	}
	f := h.api.plan.fate(q.Reference, q.number)
	refused := f.answer == "422" || f.answer == "429"
	h.places[q.place] = append(h.places[q.place], setting{q.KeepID, q.number, time.Now(), refused})
}

// takes judges what takes effect.
func (h *history) takes(q asked) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// What an API that answers first has been believed about may still be on its way.
	believed := h.api.plan.fate(q.Reference, q.number).believed
	if q.place != "" && q.number <= h.closed[q.KeepID] && !believed {
		h.wrongs = append(h.wrongs, "a setting took effect after the one that came next had gone out")
	}
}

// undoes judges what is taken back: it is owed, not the oldest of its kind, and not waived.
func (h *history) undoes(o *object) {
	_ = h.machine.stored(func(v stored) error {
		m := h.recordOf(v, o.KeepID)
		owed := h.record(v, func(u *ledger.Mutation) bool {
			return u.Undo != nil && m != nil && u.Undo.Of == m.Key && u.Undo.Object == o.ID
		})
		h.mu.Lock()
		wanted, waived := h.wanted[o.ID], h.waived[o.ID]
		h.counts.undone++
		h.mu.Unlock()
		switch oldest := h.api.made(o.KeepID)[0]; {
		case owed == nil:
			h.wrongf("something was taken back that isn't owed")
		case waived:
			h.wrongf("something was taken back that was waived")
		case oldest.ID == o.ID && !wanted:
			h.wrongf("the oldest was taken back")
		}
		return nil
	})
}

// drifts judges that a re-run which asks for something else than its earlier runs, before it
// asked for what they did, is not sent where its rule refuses that.
func (h *history) drifts(q asked, m *ledger.Mutation) {
	d := m.Current()
	h.mu.Lock()
	defer h.mu.Unlock()
	if d == nil || d.Resend || d.Redispatch || len(m.Dispatches) > 1 || h.steadied[m.Item] || h.plan.retention.Forget {
		return
	}
	var run *running
	for _, r := range h.runs {
		if r.id == d.Run && r.id != "" {
			run = r
		}
	}
	if run == nil {
		return
	}
	for _, earlier := range h.runs {
		for ref, was := range earlier.told {
			if earlier.item == run.item && was.tick < run.opened && was.attempt == m.Attempt && ref != q.Reference && !run.asked[ref] {
				h.wrongs = append(h.wrongs, "a re-run that changed its mind was sent")
			}
		}
	}
}

// looks judges a script's read that arrives at the API.
func (h *history) looks(token string) {
	h.mu.Lock()
	run := h.runs[token]
	h.counts.looks++
	h.mu.Unlock()
	h.stopsRead(run)
	if run != nil && h.isOver(run.id) {
		h.wrongf("a run read after it was over")
	}
}
