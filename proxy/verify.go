package proxy

import (
	"context"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// verifyTime bounds the asking before a replay where no inline try is configured.
const verifyTime = 10 * time.Second

// verified asks the world whether it still agrees with a stored result before that is
// given, where the rule wants it; a refusal if it may not be given.
func (p *Proxy) verified(ctx context.Context, x *exchange, w *work, c ledger.Claimed) *reply {
	mode := verifyMode(w.op.Verify)
	m := c.Mutation
	if mode == ledger.VerifyOff || m.State != ledger.Applied || m.Verification != nil && m.Verification.Acknowledged {
		return nil
	}
	limit := p.config.Inline
	if limit <= 0 {
		limit = verifyTime
	}
	asking, cancel := context.WithTimeout(ctx, limit)
	said, reason, evidence := p.config.Inliner.Verify(asking, m)
	cancel()
	if said == ledger.SaidAgrees {
		return nil
	}
	replay, now, err := p.ledger.Verified(ctx, ledger.Verified{
		Key: m.Key, Run: x.caller.run, Mode: mode, Said: said, Reason: reason, Evidence: evidence,
	})
	switch {
	case err != nil:
		return &reply{refusal: ledgerRefusal(err)}
	case replay:
		return nil
	}
	p.cutStopped()
	return &reply{refusal: unverified(now, said, reason, x.caller), mutation: now, decision: ledger.DecideRefused, runRefused: x.caller.managed()}
}

// unverified says why the stored result isn't given.
func unverified(m *ledger.Mutation, said ledger.Said, reason string, c caller) *refusal {
	f := refuse(problemVerifyFailed, quoted(m.Target)+" was applied before, but the API no longer shows it ("+reason+
		"); nothing was sent, and the stored answer is not given. Look at keep-proxy mutations show "+m.ID+".")
	if said != ledger.SaidDisagrees {
		f.class = ledger.ClassTransient
		again := "Ask again"
		if c.managed() {
			again = "Start the run again"
		}
		f.detail = "Whether " + quoted(m.Target) + ", which was applied before, is still there can't be told (" + reason +
			"); nothing was sent, and the stored answer is not given. " + again + " later."
	}
	if m.Escalated() {
		f.actions = []string{"keep-proxy resolve " + m.ID}
	}
	return f
}

// verifyMode speaks the rule's mode in the ledger's words; an unknown one is strict.
func verifyMode(v rules.Verify) ledger.VerifyMode {
	switch v {
	case rules.VerifyOff, "":
		return ledger.VerifyOff
	case rules.VerifyWarn:
		return ledger.VerifyWarn
	case rules.VerifyHuman:
		return ledger.VerifyHuman
	case rules.VerifyStrict:
	}
	return ledger.VerifyStrict
}
