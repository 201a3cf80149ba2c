package reconcilers

import (
	"context"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// Verify asks once, by the rule's first probe or program, whether the effect of an applied mutation
// is still there. It changes nothing. It disagrees only on proof. That is several objects of a
// strong tie, or an absence that the rule takes as proof. The absence counts once settle of every
// sending is over. Whatever else is seen, or goes wrong, says nothing.
//
// Of several objects it plans the undoing of the newer ones. Key, run and mode are left to the caller.
func (r *Reconciler) Verify(ctx context.Context, m *ledger.Mutation) (v ledger.Verified) {
	t := &try{mutation: m, at: r.now(), verifies: true}
	v.Said = ledger.SaidNothing
	defer func() {
		if p := recover(); p != nil {
			v = ledger.Verified{Said: ledger.SaidNothing, Reason: t.broken(p)}
		}
		r.report(t, outcome{seen: string(v.Said), reason: v.Reason, moved: ledger.Moved{Mutation: m}})
	}()
	s, err := r.prepare(ctx, t)
	if err == nil {
		s = r.askOnce(ctx, t)
	}
	switch {
	case s.seen == ledger.SeenApplied, s.seen == ledger.SeenDuplicate && !s.strong:
		v.Said = ledger.SaidAgrees
	case s.seen == ledger.SeenDuplicate:
		v.Said, v.Owed, v.Objects = ledger.SaidDisagrees, t.owed(&s), s.objects
	case s.seen == ledger.SeenAbsent && s.proof && r.settled(t):
		v.Said = ledger.SaidDisagrees
	}
	v.Reason, v.Evidence = shorten(t.secrets.Text(s.reason)), t.secrets.Text(s.evidence)
	return v
}

// settled reports whether no sending could take effect any more when the asking began. Both the
// recorded policy and the settings of now must say so.
func (r *Reconciler) settled(t *try) bool {
	m := *t.mutation
	m.Policy = m.Policy.Heeding(cautionOf(t.operation))
	return ledger.Settled(&m, t.at, r.ledger.Process())
}

// askOnce asks by the first strategy that only reads.
func (r *Reconciler) askOnce(ctx context.Context, t *try) sighting {
	for _, s := range t.operation.Strategies {
		if t.strategy = s; s.Blind(t.told()) {
			continue
		}
		switch s.Kind {
		case rules.StrategyProbe:
			return probe{r}.ask(ctx, t)
		case rules.StrategyExec:
			return program{r}.ask(ctx, t)
		case rules.StrategyResend, rules.StrategyNone:
		}
	}
	return sighting{reason: "the rule has no way to ask without sending"}
}
