package histories

import (
	"context"
	"time"

	"keep-proxy/ledger"
)

// retention draws what the ledger lets go of: mostly nothing, else contents, and seldom records.
func retention(seed uint64) ledger.Retention {
	r := drawn(seed, "retention", 0)
	kind := r.IntN(8)
	if kind > 2 {
		return ledger.Retention{}
	}
	return ledger.Retention{Keep: time.Minute + upTo(r, 2*time.Minute), Forget: kind == 0}
}

// forget draws what is forgotten, and lets some runs come after that, now and then with another
// amount.
func (p *plan) forget() {
	p.retention = retention(p.seed)
	if p.retention.Keep == 0 {
		return
	}
	for _, item := range p.items {
		for i := range item.runs {
			run := &item.runs[i]
			r := drawn(p.seed, "later", run.number)
			if r.IntN(3) > 0 {
				continue
			}
			run.after += time.Duration(1+r.IntN(2)) * (p.retention.Keep + 30*time.Second)
			if s := &run.steps[r.IntN(len(run.steps))]; r.IntN(2) == 0 {
				s.amount++
			}
		}
	}
}

// window is in how much time nothing may take effect twice, however much is forgotten; 0 for ever.
func (h *history) window() time.Duration {
	if h.plan.retention.Forget {
		return 2 * h.plan.retention.Keep
	}
	return 0
}

// tend lets go of what is old, every so often.
func (h *history) tend(ctx context.Context, stop <-chan struct{}) {
	if h.plan.retention.Keep == 0 {
		return
	}
	tick := time.NewTicker(19 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		var old []ledger.Key
		for _, m := range h.records() {
			if h.plan.retention.Forgettable(m, h.machine.stamp()) {
				old = append(old, m.Key)
			}
		}
		if p := h.machine.up(); p != nil && len(old) > 0 {
			_, _ = p.ledger.Forget(ctx, old, h.plan.retention) // What fails is old at the next time too.
		}
	}
}

// forgets judges contents that are dropped: no run of the item goes on, which may ask for them.
func (h *history) forgets(m *ledger.Mutation) {
	d := &h.durable
	if m.Forgotten.IsZero() {
		delete(d.forgotten, m.Key)
		return
	}
	if d.forgotten[m.Key].IsZero() {
		d.forgotten[m.Key] = time.Now()
		h.count(func(c *counts) { c.forgotten++ })
		h.whileWorkedOn(m)
	}
}

// drops judges records that are removed likewise, and lets the books forget them too.
func (h *history) drops(c changes) {
	d := &h.durable
	for _, m := range c.dropped {
		d.removed[m.Key] = time.Now()
		delete(d.ends, m.Key)
		delete(d.doubts, m.Key)
		delete(d.forgotten, m.Key)
		delete(d.open[m.Item], m.Key)
		h.count(func(c *counts) {
			c.removed++
			delete(h.acknowledged, m.ID) // What they wanted of it is not wanted of the next under its key.
			delete(h.since, m.ID)
		})
		h.whileWorkedOn(m)
	}
	for _, i := range c.left {
		delete(d.done, i.Item)
		delete(d.attempts, i.Item)
	}
}

func (h *history) whileWorkedOn(m *ledger.Mutation) {
	if len(h.durable.going[m.Item]) > 0 {
		h.wrongf("%s was forgotten while a run of its item goes on", m.Operation)
	}
}

// waives judges an obligation that is skipped: a person let it be, and not its item. Its object
// stays from now on.
func (h *history) waives(u *ledger.Mutation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case u.State != ledger.Skipped:
	case h.letBe[u.Undo.Object]:
		h.waived[u.Undo.Object] = true
	default:
		h.wrongs = append(h.wrongs, "an obligation was waived by nobody")
	}
}

// owes reports whether an item has an obligation that is neither met nor waived.
func (h *history) owes(item string) bool {
	for _, m := range h.records() {
		if m.Undo != nil && m.Item == item && m.State != ledger.Applied && m.State != ledger.Skipped {
			return true
		}
	}
	return false
}

// removedAt is when a record under a key was last removed, forgottenAt when its contents were dropped;
// zero for never.
func (h *history) removedAt(key ledger.Key) time.Time {
	h.durable.mu.Lock()
	defer h.durable.mu.Unlock()
	return h.durable.removed[key]
}

func (h *history) forgottenAt(key ledger.Key) time.Time {
	h.durable.mu.Lock()
	defer h.durable.mu.Unlock()
	return h.durable.forgotten[key]
}
