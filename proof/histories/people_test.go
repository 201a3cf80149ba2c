package histories

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"keep-proxy/ledger"
)

// people look at what is asked of them every so often, and decide what they see at the API.
// They are honest, and don't deny what may still come.
func (h *history) people(ctx context.Context, stop <-chan struct{}) {
	r := drawn(h.plan.seed, "people", 0)
	tick := time.NewTicker(37 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		for _, m := range h.records() {
			mood := r.IntN(10)
			switch {
			case m.Undo != nil:
				h.oversee(ctx, m, mood)
			default:
				if d := h.decide(ctx, m, mood); d != nil {
					h.resolve(ctx, m, d)
				}
			}
		}
		h.look(ctx, r)
	}
}

// decide is what a person makes of a record, nil for nothing.
func (h *history) decide(ctx context.Context, m *ledger.Mutation, mood int) *ledger.Resolve {
	made, undecided := h.api.effects(m.Marker)
	asks := ""
	if m.Escalated() {
		asks = m.Escalation.Kind
	}
	switch {
	case m.State == ledger.Applied && asks == ledger.EscalationMismatch && mood < 5:
		return h.accept(m)
	case m.State == ledger.Applied && asks == ledger.EscalationDrift && mood < 5:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.steadied[m.Item] = true
		h.counts.drifts++
		return &ledger.Resolve{Action: ledger.OnAcknowledge}
	case m.State == ledger.Applied && asks == ledger.EscalationVerify && mood < 5:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.acknowledged[m.ID] = true
		return &ledger.Resolve{Action: ledger.OnAcknowledge}
	case m.State == ledger.NeedsReconcile && mood > 0, undecided > 0:
		return nil // They let the runner work, or wait.
	case m.State == ledger.Failed && mood == 0:
		return &ledger.Resolve{Action: ledger.OnNewKey, NewKey: true}
	case m.State != ledger.NeedsReconcile && m.State != ledger.Indeterminate:
		return nil
	case made > 0 && mood%3 == 0 && (m.Operation == "doubled" || m.Operation == "owed"):
		return h.takeBack(ctx, m)
	case made > 0:
		return &ledger.Resolve{Action: ledger.OnHappened, NoResult: true}
	case mood == 1:
		return &ledger.Resolve{Action: ledger.OnCheckAgain}
	case mood == 2:
		return &ledger.Resolve{Action: ledger.OnSkip}
	default:
		return &ledger.Resolve{Action: ledger.OnDidNotHappen}
	}
}

// accept takes the payload that was refused as covered.
func (h *history) accept(m *ledger.Mutation) *ledger.Resolve {
	if m.Diff == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range m.Diff.Changes {
		amount, err := strconv.Atoi(c.Asked)
		if err != nil || c.Place != "json.amount" {
			continue
		}
		if h.accepted[m.ID] == nil {
			h.accepted[m.ID] = map[int]bool{}
		}
		h.accepted[m.ID][amount] = true
	}
	h.counts.accepted++
	return &ledger.Resolve{Action: ledger.OnAccept}
}

// takeBack says that it happened and is to be undone.
func (h *history) takeBack(ctx context.Context, m *ledger.Mutation) *ledger.Resolve {
	p := h.machine.up()
	if p == nil {
		return nil
	}
	object := h.api.made(m.Marker)[0].ID
	owed, err := p.reconciler.PlanUndo(ctx, m.Clone(), object)
	if err != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted[object] = true
	return &ledger.Resolve{Action: ledger.OnHappened, NoResult: true, Compensate: &owed}
}

// resolve carries a decision out, and reports whether it was; one that isn't open is refused.
func (h *history) resolve(ctx context.Context, m *ledger.Mutation, d *ledger.Resolve) bool {
	p := h.machine.up()
	if p == nil {
		return false
	}
	d.Key, d.Version, d.Actor, d.Reason, d.NextTryAt = m.Key, m.Version, "ana", "looked at the books", h.machine.clock.Now()
	if d.NewKey {
		h.api.grant(m.Marker)
	}
	_, err := p.ledger.Resolve(ctx, *d)
	if err == nil {
		h.mu.Lock()
		h.decided++
		if d.Action == ledger.OnAcknowledge && h.acknowledged[m.ID] {
			h.since[m.ID] = time.Now()
			h.counts.confirmed++
		}
		h.mu.Unlock()
	}
	return err == nil
}

// oversee is what a person does about an obligation: they have one run that is not sent by
// itself, say what became of one that is unknown, and now and then let be what is twice.
func (h *history) oversee(ctx context.Context, u *ledger.Mutation, mood int) {
	p := h.machine.up()
	if p == nil {
		return
	}
	gone, undecided := h.api.isGone(u.Undo.Object)
	switch {
	case mood == 9 && u.State != ledger.Applied:
		h.waive(ctx, u)
	case u.State == ledger.Failed && !u.Queued() && mood < 4:
		_, _ = p.ledger.RunObligation(ctx, ledger.RunObligation{Key: u.Key, Version: u.Version, Actor: "ana", Reason: "try again"})
	case u.State == ledger.Indeterminate && gone:
		h.resolve(ctx, u, &ledger.Resolve{Action: ledger.OnHappened, NoResult: true})
	case u.State == ledger.Indeterminate && !undecided:
		h.resolve(ctx, u, &ledger.Resolve{Action: ledger.OnDidNotHappen})
	}
}

// delays lets a person find, soon after an undo was lost, that what is twice may stay. It must
// not be theirs to say while the undo may still take effect.
func (h *history) delays(id string) {
	h.api.working.Go(func() {
		pause(2 * time.Second)
		ctx := context.Background()
		for _, u := range h.records() {
			if u.Undo != nil && u.Undo.Object == id {
				h.waive(ctx, u)
			}
		}
	})
}

// waive lets be what is twice. Whether it was done shows in what is committed: a person may not
// hear of it.
func (h *history) waive(ctx context.Context, u *ledger.Mutation) {
	h.mu.Lock()
	h.letBe[u.Undo.Object] = true
	h.mu.Unlock()
	h.resolve(ctx, u, &ledger.Resolve{Action: ledger.OnSkip})
}

// look goes through the items, of which now and then one is closed, left out, opened again or
// begun anew.
func (h *history) look(ctx context.Context, r *rand.Rand) {
	for _, item := range h.items() {
		mood := r.IntN(12)
		var i *ledger.Item
		err := h.machine.stored(func(s stored) (err error) {
			i, err = s.Item(workflow, item)
			return err
		})
		if err != nil || h.mayStillCome(item) {
			continue
		}
		d := ledger.DecideItem{Workflow: workflow, Item: item, Actor: "ana", Reason: "looked at the item"}
		waits := i.State == ledger.ItemNeedsAttention || i.State == ledger.ItemDone || i.State == ledger.ItemSkipped
		owes := h.owes(item)
		switch {
		case owes && mood > 5:
			d.Action, d.WithMutations = ledger.ItemSkip, true
		case mood == 0:
			d.Action, d.Attempt = ledger.ItemNewAttempt, i.Attempt
		case mood == 1:
			d.Action = ledger.ItemClose
		case mood == 2:
			d.Action, d.WithMutations = ledger.ItemSkip, true
		case mood < 7 && waits:
			d.Action = ledger.ItemReopen
		default:
			continue
		}
		if h.decideItem(ctx, d) && owes && d.Action != ledger.ItemReopen {
			h.count(func(c *counts) { c.owing++ })
		}
	}
}

// mayStillCome reports whether something of an item may still take effect.
func (h *history) mayStillCome(item string) bool {
	for _, m := range h.records() {
		if _, undecided := h.api.effects(m.Marker); m.Item == item && undecided > 0 {
			return true
		}
	}
	return false
}

// decideItem carries a decision on an item out, and reports whether it is known to be. One whose
// end isn't known counts as taken.
func (h *history) decideItem(ctx context.Context, d ledger.DecideItem) bool {
	p := h.machine.up()
	if p == nil {
		return false
	}
	_, err := p.ledger.DecideItem(ctx, d)
	if err != nil && !errors.Is(err, ledger.ErrUnavailable) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.items++
	if d.Action == ledger.ItemNewAttempt {
		h.attempts[d.Item]++
		h.counts.attempts++
	}
	return err == nil
}
