package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/masking"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// strategy is one way to find out. It reports false if the record can't be asked about in this way
// any more. Then it has only noted why in try.passed, and the next strategy is asked.
type strategy interface {
	try(ctx context.Context, t *try) (outcome, bool)
}

// try is one try at one record.
type try struct {
	mutation *ledger.Mutation
	// at is when the asking started: absence counts from there.
	at     ledger.Stamp
	inline bool
	// verifies says that it asks about a mutation that is applied.
	verifies bool
	// sends says that it sends the mutation again instead of asking.
	sends bool

	match     rules.Match
	connector *rules.Connector
	operation *rules.Operation
	// owner is the operation of the stored request. An obligation's owner is the operation whose
	// effect it takes back.
	owner *rules.Operation
	// undone is the mutation whose effect an obligation takes back, and undo what its rule says; nil
	// for other mutations. What is sent is then outgoing.
	undone   *ledger.Mutation
	undo     *rules.Undo
	outgoing *rules.Request
	strategy rules.Strategy
	// request is the stored one, with the credentials of now, and bare without them.
	request    *rules.Request
	bare       *rules.Request
	credential credential
	// account holds the header fields that tell whose data the request changes, once they
	// were asked for.
	account http.Header
	// missing are the header fields and query values that were not stored and are not configured.
	missing []string
	// unauthorised are the script's header fields and secret query values for which nothing is
	// configured. Who asks is then somebody else, or nobody.
	unauthorised []string
	// passed says why strategies before this one were passed over.
	passed []string
	// stack is where the program panicked, nil if it did not.
	stack []byte
	// secrets must not get into what is stored.
	secrets masking.Secrets
}

// work does what a queued record waits for.
func (r *Reconciler) work(ctx context.Context, m *ledger.Mutation) outcome {
	switch {
	case m.State == ledger.Failed:
		return r.redispatch(ctx, m)
	case m.Watching:
		return r.watch(ctx, m)
	}
	return r.run(ctx, m, false)
}

// credential is the header field that the operator configured; its name is empty where
// none is needed.
type credential struct{ name, value string }

// env is what a rule may read.
func (t *try) env() rules.Env {
	return rules.Env{Request: t.request, Mutation: t.told(), Account: t.mutation.Account, Verifies: t.verifies}
}

// told is the record that a rule's words are about. For an obligation it is the mutation that is
// undone, with the object.
func (t *try) told() rules.Mutation {
	if t.undone == nil {
		return t.known()
	}
	m := dispatch.RuleMutation(t.undone)
	m.Object = t.mutation.Undo.Object
	return m
}

// known is what a rule may know of the record.
func (t *try) known() rules.Mutation { return dispatch.RuleMutation(t.mutation) }

// outcome is what a try came to: the record as the ledger has it now, or why the ledger failed.
type outcome struct {
	seen   string
	reason string
	moved  ledger.Moved
	err    error
}

// run makes one try at m, which the caller has taken. It always comes to an
// outcome; what panics is a retry.
func (r *Reconciler) run(ctx context.Context, m *ledger.Mutation, inline bool) outcome {
	t := &try{mutation: m, at: r.now(), inline: inline}
	return r.attempt(ctx, t, func() outcome {
		if s, err := r.prepare(ctx, t); err != nil {
			return r.observe(ctx, t, s)
		}
		for _, s := range order(t.operation.Strategies, m) {
			t.strategy = s
			if s.Blind(t.told()) {
				t.pass("it looks for the marker, which had no room in the request and was left out")
				continue
			}
			if out, usable := r.strategies[s.Kind].try(ctx, t); usable {
				return out
			}
		}
		return r.exhaust(ctx, t)
	})
}

// attempt makes a try and reports it. What panics is a retry, and of a redispatch, of which nothing
// was recorded yet, one that is put off.
func (r *Reconciler) attempt(ctx context.Context, t *try, ask func() outcome) (out outcome) {
	defer func() { r.report(t, out) }()
	defer func() {
		// The ledger itself is broken: the record stays as it is.
		if v := recover(); v != nil {
			out = outcome{seen: "error", err: errors.New(t.broken(v))}
		}
	}()
	broke := t.guarded(func() { out = ask() })
	switch {
	case broke == "":
		return out
	case t.sends:
		return r.callOff(ctx, t, false, errors.New(broke))
	}
	return r.observe(ctx, t, sighting{reached: true, reason: broke})
}

// order puts resend first: it answers at once, and only while the API remembers the key. The others
// keep the rule's order. Probes and programs take turns, since none is ever used up.
func order(list []rules.Strategy, m *ledger.Mutation) []rules.Strategy {
	var resends, probes, rest []rules.Strategy
	for _, s := range list {
		switch s.Kind {
		case rules.StrategyResend:
			resends = append(resends, s)
		case rules.StrategyProbe, rules.StrategyExec:
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

// probed counts the record's probes and programs, with those no longer listed. Otherwise a full
// list would give one of them every turn.
func probed(m *ledger.Mutation) (n int) {
	n = m.Dropped
	for i := range m.Observations {
		if k := rules.StrategyKind(m.Observations[i].Strategy); k == rules.StrategyProbe || k == rules.StrategyExec {
			n++
		}
	}
	return n
}

// prepare loads what the try is made from. With an error comes what to record. Only a missing
// credential, and an account that nobody could be asked about, don't use up the try. Waiting
// doesn't mend the others.
func (r *Reconciler) prepare(ctx context.Context, t *try) (sighting, error) {
	reached, err := r.understand(ctx, t)
	if err == nil {
		reached, err = r.sameAccount(ctx, t)
	}
	if err == nil && t.undo != nil {
		err = r.addressUndo(ctx, t)
		reached = !errors.Is(err, errUnreached)
	}
	if err != nil {
		return sighting{reached: reached, reason: err.Error()}, err
	}
	return sighting{}, nil
}

// understand reads the stored request by the rule to which the record is pinned. For an obligation
// it reads that of the mutation that is undone. An error that isn't about credentials doesn't mend
// itself.
func (r *Reconciler) understand(ctx context.Context, t *try) (forGood bool, err error) {
	set, err := r.pinned.set(ctx, t.mutation)
	if err != nil {
		return true, err
	}
	of := t.mutation
	if t.mutation.Undo != nil {
		if of, err = r.undone(ctx, t); err != nil {
			return true, err
		}
	}
	var left []string
	if t.bare, left, err = stored(ctx, r.ledger, of); err != nil {
		return true, err
	}
	name, value, err := r.credentials.For(t.mutation.Connector, t.bare.Scheme, t.bare.Authority())
	if err != nil {
		return errors.Is(err, ErrElsewhere), fmt.Errorf("credentials: %w", err)
	}
	t.secrets = append(t.secrets, value)
	t.credential = credential{name, value}
	left = append(left, maskedQuery(of.Request.URL)...)
	if name == "" {
		t.unauthorised = left
	}
	t.missing = slices.DeleteFunc(slices.Clone(left), func(field string) bool {
		return strings.EqualFold(field, name) || dispatch.Resigns(value, field)
	})
	if t.request, err = authorised(t.bare, name, value); err != nil {
		return false, err
	}
	t.match = set.Match(t.request)
	if t.match.Refusal != nil || t.match.Operation == nil || t.match.Operation.Name != of.Operation {
		return true, errors.New("under the hosts configured now, the stored request is not one of this operation")
	}
	t.connector, t.owner, t.operation = t.match.Connector, t.match.Operation, t.match.Operation
	if t.mutation.Undo == nil {
		return true, nil
	}
	if t.undo = t.owner.Undo; t.undo == nil {
		return true, errNoUndo
	}
	t.operation = t.undo.Operation
	return true, nil
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

// broken says that the program panicked, and keeps where. The value may hold what was
// being read; its type may not.
func (t *try) broken(v any) string {
	t.stack = debug.Stack()
	return fmt.Sprintf("internal error: a panic of type %T", v)
}

// guarded runs f, and says what panicked in it.
func (t *try) guarded(f func()) (broke string) {
	defer func() {
		if v := recover(); v != nil {
			broke = t.broken(v)
		}
	}()
	f()
	return ""
}

// pass notes why a strategy is passed over.
func (t *try) pass(format string, args ...any) (outcome, bool) {
	t.passed = append(t.passed, t.name()+": "+fmt.Sprintf(format, args...))
	return outcome{}, false
}

// name is the strategy's; before one was chosen it is "prepare".
func (t *try) name() string {
	switch {
	case t.verifies:
		return "verify"
	case t.sends:
		return "redispatch"
	case t.mutation.Watching:
		return "watch"
	case t.strategy.Kind == "":
		return "prepare"
	}
	return string(t.strategy.Kind)
}

// none is the strategy of an operation that can't be asked about. It leaves the question to a
// person, with the rule's reason.
type none struct{}

func (none) try(_ context.Context, t *try) (outcome, bool) { return t.pass("%s", t.strategy.Why) }
