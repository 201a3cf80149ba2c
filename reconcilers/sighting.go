package reconcilers

import (
	"context"
	"errors"
	"strings"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// sighting is what a try saw, before the ledger judges it. The zero value is a
// retry that could not reach the API.
type sighting struct {
	seen     ledger.Seen
	reason   string
	evidence string
	objects  []string
	strong   bool
	proof    bool
	result   *rules.Response
	// reached says that the API answered, so that the try counts.
	reached bool
	// notBefore is when the API wants to be asked again; zero if it did not say.
	notBefore time.Time
}

// observe gives a sighting to the ledger.
func (r *Reconciler) observe(ctx context.Context, t *try, s sighting) outcome {
	if s.seen == "" {
		s.seen = ledger.SeenRetry
	}
	if s.seen == ledger.SeenRetry && !t.inline && ctx.Err() != nil {
		// The runner is being stopped: that says nothing about the API.
		return outcome{seen: "stopped", moved: ledger.Moved{Mutation: t.mutation}}
	}
	owed := t.owed(&s)
	out := outcome{seen: string(s.seen), reason: shorten(t.secrets.Text(s.reason))}
	// What was seen is recorded even if the caller has gone.
	ctx = context.WithoutCancel(ctx)
	command := ledger.Observe{
		Key: t.mutation.Key, Version: t.mutation.Version, AbsenceIsProof: s.proof, Reached: s.reached, Inline: t.inline,
		NextTryAt: r.after(t.mutation, t.at, s), RetryAfter: s.notBefore, Ran: ran(t.mutation, t.at, r.ledger.Process()),
		Owed: owed,
		Observation: ledger.Observation{
			At: t.at, Strategy: t.name(), Seen: s.seen, Reason: out.reason, Evidence: t.secrets.Text(s.evidence),
			Objects: s.objects, Strong: s.strong,
		},
	}
	if op := t.operation; op != nil {
		command.Caution = cautionOf(op)
	}
	if s.result != nil {
		shown := dispatch.InMemory(s.result.Body)
		command.Result, command.Body, out.err = r.dispatcher.Keep(ctx, t.operation, t.secrets, s.result, shown, "observation")
		if out.err != nil {
			return r.lost(out)
		}
	}
	beforeObserve.Pass()
	out.moved, out.err = r.ledger.Observe(ctx, command)
	if len(command.Owed) > 0 {
		// What is owed is due at once.
		r.Kick()
	}
	if errors.Is(out.err, ledger.ErrEvidence) {
		return r.observe(ctx, t, sighting{reached: s.reached, reason: "the object is evidence for another mutation", evidence: s.evidence})
	}
	return r.lost(out)
}

// cautionOf is what the settings of now ask for.
func cautionOf(op *rules.Operation) ledger.Caution {
	return ledger.Caution{Settle: op.Settle, Confirmations: op.Confirmations, Spacing: op.Spacing, OnAbsent: ledger.OnAbsent(op.OnAbsent)}
}

// maxReason is the longest reason that is kept, in bytes.
const maxReason = 1 << 10

// shorten cuts text to maxReason at a character's border.
func shorten(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// exhaust ends the record's tries: there is no way to ask, for the reasons in
// try.passed.
func (r *Reconciler) exhaust(ctx context.Context, t *try) (out outcome) {
	reason := "no strategy is left; " + strings.Join(t.passed, "; ")
	out.seen, out.reason = "exhausted", reason
	if t.inline {
		// The proxy parks the record, and the runner gives it to a person.
		out.moved.Mutation = t.mutation
		return out
	}
	out.moved, out.err = r.ledger.Exhaust(context.WithoutCancel(ctx), t.mutation.Key, t.mutation.Version, reason)
	return r.lost(out)
}

// lost names what became of a try whose record moved, or whose ledger failed.
func (r *Reconciler) lost(out outcome) outcome {
	switch {
	case out.err == nil:
	case errors.Is(out.err, ledger.ErrVersion):
		out.seen = "dropped"
	default:
		out.seen = "error"
	}
	return out
}
