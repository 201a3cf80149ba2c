package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// masked is what a secret looks like in what is stored.
const masked = "<secret>"

// strategy is one way to find out. It reports false, having done nothing, if the
// record can't be asked about in this way any more; then the next one is asked.
type strategy interface {
	try(ctx context.Context, t *try) (outcome, bool)
}

// try is one try at one record.
type try struct {
	mutation *ledger.Mutation
	// at is when the asking started: absence counts from there.
	at     ledger.Stamp
	inline bool

	connector *rules.Connector
	operation *rules.Operation
	strategy  rules.Strategy
	// request is the stored one, with the credentials of now.
	request *rules.Request
	// secrets must not get into what is stored.
	secrets secrets
}

// env is what a rule may read.
func (t *try) env() rules.Env {
	return rules.Env{Request: t.request, Mutation: t.known(), Account: t.mutation.Account}
}

// known is what a rule may know of the record.
func (t *try) known() rules.Mutation {
	m := t.mutation
	return rules.Mutation{ID: m.ID, Marker: m.Marker, VendorKey: m.VendorKey, Generation: m.Generation, ClaimedAt: m.CreatedAt}
}

// outcome is what a try came to: the record as the ledger has it now, or why the
// ledger could not tell.
type outcome struct {
	seen     string
	reason   string
	finished ledger.Finished
	err      error
}

// run makes one try at m, which the caller has taken. It always comes to an
// outcome; what panics is a retry.
func (r *Reconciler) run(ctx context.Context, m *ledger.Mutation, inline bool) (out outcome) {
	t := &try{mutation: m, at: r.now(), inline: inline}
	defer func() { r.report(t, out) }()
	defer func() {
		if v := recover(); v != nil {
			// The value may hold what was being read; its type may not.
			out = r.observe(ctx, t, sighting{reached: true, reason: fmt.Sprintf("internal error: a panic of type %T", v)})
		}
	}()
	if s, err := r.prepare(ctx, t); err != nil {
		return r.observe(ctx, t, s)
	}
	for _, s := range order(t.operation.Strategies, m) {
		t.strategy = s
		if out, usable := r.strategies[s.Kind].try(ctx, t); usable {
			return out
		}
	}
	return r.exhaust(ctx, t, "no strategy is left")
}

// order puts resend first, since it answers at once and only while the API
// remembers the key; the others keep the rule's order, but that several probes take
// turns, since none of them is ever used up.
func order(list []rules.Strategy, m *ledger.Mutation) []rules.Strategy {
	var resends, probes, rest []rules.Strategy
	for _, s := range list {
		switch s.Kind {
		case rules.StrategyResend:
			resends = append(resends, s)
		case rules.StrategyProbe:
			probes = append(probes, s)
		case rules.StrategyNone:
			rest = append(rest, s)
		}
	}
	if len(probes) > 1 {
		turn := probed(m) % len(probes)
		probes = slices.Concat(probes[turn:], probes[:turn])
	}
	return slices.Concat(resends, probes, rest)
}

// probed counts the probes that the record lists.
func probed(m *ledger.Mutation) (n int) {
	for i := range m.Observations {
		if m.Observations[i].Strategy == string(rules.StrategyProbe) {
			n++
		}
	}
	return n
}

// prepare loads what the try is made from. With an error comes what to record.
// Only a credential that can't be had doesn't use up the try: the rest does not
// mend itself by waiting.
func (r *Reconciler) prepare(ctx context.Context, t *try) (sighting, error) {
	failed := func(reached bool, err error) (sighting, error) {
		return sighting{reached: reached, reason: err.Error()}, err
	}
	set, err := r.pinned.set(ctx, t.mutation)
	if err != nil {
		return failed(true, err)
	}
	request, err := stored(ctx, r.ledger, t.mutation)
	if err != nil {
		return failed(true, err)
	}
	name, value, err := r.credentials.For(t.mutation.Connector)
	if err != nil {
		return failed(false, fmt.Errorf("credentials: %w", err))
	}
	t.secrets = append(t.secrets, value)
	if t.request, err = authorised(request, name, value); err != nil {
		return failed(false, err)
	}
	match := set.Match(t.request)
	if match.Refusal != nil || match.Operation == nil || match.Operation.Name != t.mutation.Operation {
		return failed(true, errors.New("under the hosts configured now, the stored request is not one of this operation"))
	}
	t.connector, t.operation = match.Connector, match.Operation
	if err := sameAccount(t, match); err != nil {
		return failed(true, err)
	}
	return sighting{}, nil
}

// report logs and counts the try.
func (r *Reconciler) report(t *try, out outcome) {
	took := time.Duration(0)
	if d, ok := r.now().MonoSince(t.at); ok {
		took = d
	}
	r.metrics.Tried(t.mutation.Connector, t.mutation.Operation, t.name(), out.seen, took)
	r.logTry(t, out, took)
}

// name is the strategy's; before one was chosen it is "prepare".
func (t *try) name() string {
	if t.strategy.Kind == "" {
		return "prepare"
	}
	return string(t.strategy.Kind)
}
