package histories

import (
	"context"
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
		for _, m := range h.records(ctx) {
			mood := r.IntN(10)
			if d := h.decide(m, mood); d != nil {
				h.resolve(ctx, m, d)
			}
		}
	}
}

// decide is what a person makes of a record, nil for nothing.
func (h *history) decide(m *ledger.Mutation, mood int) *ledger.Resolve {
	made, undecided := h.api.effects(reference(m))
	switch {
	case m.State == ledger.NeedsReconcile && mood > 0, undecided > 0:
		return nil // They let the runner work, or wait.
	case m.State == ledger.Failed && mood == 0:
		return &ledger.Resolve{Action: ledger.OnNewKey, NewKey: true}
	case m.State != ledger.NeedsReconcile && m.State != ledger.Indeterminate:
		return nil
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

// resolve carries a decision out; one that isn't open is refused.
func (h *history) resolve(ctx context.Context, m *ledger.Mutation, d *ledger.Resolve) {
	p := h.machine.up()
	if p == nil {
		return
	}
	d.Key, d.Version, d.Actor, d.Reason, d.NextTryAt = m.Key, m.Version, "ana", "looked at the books", h.machine.clock.Now()
	if d.NewKey {
		h.api.grant(reference(m))
	}
	if _, err := p.ledger.Resolve(ctx, *d); err == nil {
		h.mu.Lock()
		h.decided++
		h.mu.Unlock()
	}
}
