package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// natural decides whether a request that sets a state may be sent again now: not before
// settle of every earlier sending is over, since one that takes effect late would undo
// what comes next, and not once a later mutation may have changed the same. Not open, the
// try is over with the outcome, or, not usable, the next strategy's.
func (s resend) natural(ctx context.Context, t *try) (out outcome, open, usable bool) {
	m := *t.mutation
	m.Policy = m.Policy.Heeding(cautionOf(t.operation))
	left, begun := untilSettled(&m, s.now(), s.ledger.Process())
	if !ledger.NaturalOpen(&m, s.now(), s.ledger.Process()) {
		waits := (!begun || left > 0) && m.Policy.Natural && !m.ResendClosed
		if waits && !asksOtherwise(t.operation.Strategies) {
			out = s.observe(ctx, t, sighting{reason: "it is sent again once nothing that was sent before can take effect any more"})
			return out, false, true
		}
		out, usable = t.pass("used up, too late, or too early to be sent again")
		return out, false, usable
	}
	why, err := s.ledger.LaterOfTarget(ctx, t.mutation)
	switch {
	case err != nil:
		return s.observe(ctx, t, sighting{reason: "the ledger could not say what was changed since"}), false, true
	case why != "":
		out, usable = t.pass("%s", why)
		return out, false, usable
	}
	return outcome{}, true, true
}

// stillNatural is asked immediately before byte one. The record is the one from before this
// resend, as its own sending has no end yet.
func (s resend) stillNatural(ctx context.Context, t *try) error {
	if !ledger.NaturalOpen(t.mutation, s.now(), s.ledger.Process()) {
		return errors.New("it is too late to set the state again")
	}
	why, err := s.ledger.LaterOfTarget(ctx, t.mutation)
	if err != nil {
		return fmt.Errorf("the ledger could not say what was changed since: %w", err)
	}
	if why != "" {
		return errors.New(why)
	}
	return nil
}

// asksOtherwise reports whether there is a way to ask without sending.
func asksOtherwise(list []rules.Strategy) bool {
	return slices.ContainsFunc(list, func(s rules.Strategy) bool {
		return s.Kind == rules.StrategyProbe || s.Kind == rules.StrategyExec
	})
}
