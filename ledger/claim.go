package ledger

import (
	"context"
	"errors"
	"fmt"
)

// Claim decides, in one transaction with the gate, whether a mutation may be
// sent, and if so records the dispatch durably before it returns. Its order:
//
//  0. the record: looked for under every version of its rule under which the item
//     has mutations; the claim has no key for one of them → stale;
//  1. the run: over, or its time limit or grace is over → run-aborted;
//  2. the item: done or skipped → item-done, waiting for a person →
//     item-attention; the attempt isn't the current one → attempt;
//  3. the run's mutations: none → read-only-run; one, and this is another →
//     one-mutation; failing, and this is not the mutation and payload that
//     failed → run-aborted;
//  4. the scope: stopped by an unresolved mutation → blocked, and a managed run
//     is over by that unless the request is held;
//  5. the record: two fit → ambiguous-record; none → drift, or sent; else as
//     docs/semantics.md §2 (repeats) and §7 (replays) say.
//
// What only rules can tell was computed before, from what Ahead read. If that has changed
// where it matters, the answer is stale: nothing is decided.
//
// A refusal is no error. Errors are ErrInvalid for a claim that is wrong in
// itself, ErrNotFound for an unknown run, and those of the Store: whatever the
// error, nothing may be sent.
func (l *Ledger) Claim(ctx context.Context, q Claim) (Claimed, error) {
	return l.claiming(ctx, &q, (*claiming).decide)
}

// claiming evaluates a claim as one command.
func (l *Ledger) claiming(ctx context.Context, q *Claim, decide func(*claiming) (*Claimed, error)) (Claimed, error) {
	if err := q.check(); err != nil {
		return Claimed{}, err
	}
	var turn Claimed
	out, err := evaluate(ctx, l, func(c *command) (Claimed, error) {
		cl := &claiming{command: c, q: q}
		out, err := decide(cl)
		if err != nil {
			return Claimed{}, err
		}
		out.Mutation, out.Run = cl.m, cl.run
		if out.Decision == DecideTurn {
			turn, err = *out, errTurn
		}
		return *out, err
	})
	if errors.Is(err, errTurn) {
		return turn, nil
	}
	return out, err
}

// errTurn drops what a claim changed that waits for its turn: it may never be made, and whoever
// comes meanwhile would find the item taken for nothing.
var errTurn = errors.New("it waits for its turn")

// check reports what is wrong with the claim itself.
func (q *Claim) check() error {
	switch {
	case q.Key == (Key{}):
		return invalid("a claim needs a mutation key")
	case q.DispatchID == "":
		return invalid("a claim needs a dispatch id")
	case q.Workflow == "" || q.Item == "":
		return invalid("a claim needs a workflow and an item")
	case q.Attempt < 1:
		return invalid("attempt %d: attempts count from 1", q.Attempt)
	case q.Record.PayloadDigest == "":
		return invalid("a claim needs a payload digest")
	}
	return nil
}

// claiming is one claim at work.
type claiming struct {
	*command
	q    *Claim
	run  *Run
	item *Item
	m    *Mutation
	// matches are the records that fit under any version of the rule.
	matches []*Mutation
	// drifted is what to note of a dispatch; steadied says that the run notes that the
	// operation needs no further look.
	drifted  string
	steadied bool
}

// decide takes the steps of Claim in order.
func (c *claiming) decide() (*Claimed, error) {
	if refusal, err := c.refusedBy(c.checkRun, c.checkItem, c.checkAllowance, c.checkScope, c.takeItem); err != nil || refusal != nil {
		return refusal, err
	}
	return c.byRecord()
}

// refusedBy reads what the claim is about and takes steps in order, each of which returns a
// refusal or nothing.
func (c *claiming) refusedBy(steps ...func() (*Claimed, error)) (*Claimed, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	for _, step := range append([]func() (*Claimed, error){c.findRecord}, steps...) {
		if refusal, err := step(); err != nil || refusal != nil {
			return refusal, err
		}
	}
	return nil, nil //nolint:nilnil // nothing refuses
}

// load reads run and item.
func (c *claiming) load() (err error) {
	if c.q.Run != "" {
		if c.run, err = c.Run(c.q.Run); err != nil {
			return fmt.Errorf("claim for run %s: %w", c.q.Run, err)
		}
		if c.run.Workflow != c.q.Workflow || c.run.Item != c.q.Item && !c.run.Many() {
			return invalid("the claim's scope is not that of run %s", c.run.ID)
		}
	}
	c.item, err = found(c.Item(c.q.Workflow, c.q.Item))
	return err
}

// refused is a refusal that leaves everything as it is.
func refused(problem, format string, args ...any) *Claimed {
	return &Claimed{Problem: problem, Detail: fmt.Sprintf(format, args...)}
}

// checkRun refuses for a run that is over.
func (c *claiming) checkRun() (*Claimed, error) {
	if c.run == nil {
		return nil, nil
	}
	ended := false
	if c.overdue(c.run) || c.run.State == RunFailing && c.graceOver(c.run) {
		if err := c.expire(c.run); err != nil {
			return nil, err
		}
		ended = true
		if err := c.takeAgain(); err != nil {
			return nil, err
		}
	}
	if c.run.Closing != "" && !c.run.State.Ended() {
		return refused("run-aborted", "This run is being finished; nothing was sent."), nil
	}
	if !c.run.State.Ended() {
		return nil, nil
	}
	out := refused("run-aborted", "This run is over (%s): %s", c.run.State, c.run.Reason)
	out.RunRefused = ended
	return out, nil
}

// checkItem refuses for an item or attempt that admits no mutation.
func (c *claiming) checkItem() (*Claimed, error) {
	attempt := 1
	if c.item != nil {
		attempt = c.item.Attempt
		switch c.item.State {
		case ItemOpen, ItemFailed:
		case ItemDone, ItemSkipped:
			return c.endByItem(refused("item-done", "Item %q is %s; it can't produce new effects.", c.item.Item, c.item.State))
		default:
			out := refused("item-attention", "Item %q needs a person's attention: %s", c.item.Item, c.item.Reason)
			if c.run != nil && c.run.Many() {
				return out, nil
			}
			return c.endWith(out, RunPausedAttention, ClassLogic)
		}
	}
	if c.q.Attempt != attempt {
		out := refused("attempt", "Item %q is at attempt %d, this request is of attempt %d.", c.q.Item, attempt, c.q.Attempt)
		return c.endByItem(out)
	}
	return nil, nil
}

// endByItem is endByLogic for what the item refuses: a run of many items goes on with
// the others.
func (c *claiming) endByItem(out *Claimed) (*Claimed, error) {
	if c.run != nil && c.run.Many() {
		return out, nil
	}
	return c.endByLogic(out)
}

// checkAllowance refuses what the run may not claim.
func (c *claiming) checkAllowance() (*Claimed, error) {
	r := c.run
	if r == nil {
		return nil, nil
	}
	switch r.Mutations {
	case MutationsMany:
	case MutationsOne:
		if r.Only != nil && *r.Only != c.q.Key {
			return c.endByLogic(refused("one-mutation",
				"This run may make one mutation, and %s is it; make the second one in a step of its own.", r.Only.ID()))
		}
	default:
		return c.endByLogic(refused("read-only-run", "This run may read only."))
	}
	if r.State != RunFailing || r.FailingKey == nil {
		return nil, nil
	}
	if *r.FailingKey != c.q.Key || r.FailingDigest != c.q.Record.PayloadDigest {
		return refused("run-aborted", "Mutation %s failed (%s): %s. Until it succeeds only the same request may be made again.",
			r.FailingKey.ID(), r.Class, r.Reason), nil
	}
	return nil, nil
}

// checkScope is the gate.
func (c *claiming) checkScope() (*Claimed, error) {
	all, err := c.blockers(c.q.Workflow)
	if err != nil {
		return nil, err
	}
	var stopping []Blocker
	for i := range all {
		if all[i].Key != c.q.Key && all[i].stops(c.q.Workflow, c.q.Item) {
			stopping = append(stopping, all[i])
		}
	}
	if len(stopping) == 0 {
		return nil, nil
	}
	return c.blocked(stopping)
}

// blocked refuses because of unresolved mutations, its own or others.
func (c *claiming) blocked(by []Blocker) (*Claimed, error) {
	first := by[0]
	out := refused("blocked", "Mutation %s of item %q has an unknown outcome (%s); nothing goes on until it is settled.",
		first.ID, first.Item, first.State)
	out.Decision, out.Blockers = DecideBlocked, by
	if c.run == nil || c.q.Hold {
		return out, nil
	}
	out.RunRefused = true
	if err := c.refuse(c.run, out.Detail, first.ID); err != nil {
		return nil, err
	}
	return out, c.takeAgain()
}

// takeAgain takes the record as it is after its run ended, which may ask a person about it.
func (c *claiming) takeAgain() (err error) {
	if c.m != nil {
		c.m, err = c.Mutation(c.m.Key)
	}
	return err
}

// endByLogic ends a managed run that asked for what no retry can make right,
// unless its host wants to be told instead.
func (c *claiming) endByLogic(out *Claimed) (*Claimed, error) {
	if c.run != nil && c.run.OnFailure == FailureReturn {
		return out, nil
	}
	return c.endWith(out, RunAborted, ClassLogic)
}

// endWith ends a managed run with the refusal.
func (c *claiming) endWith(out *Claimed, state RunState, class Class) (*Claimed, error) {
	if c.run == nil {
		return out, nil
	}
	out.RunRefused = true
	cause := c.run.Cause
	if c.m != nil {
		cause = c.m.ID
	}
	if err := c.end(c.run, ending{state, class, out.Detail, cause, ActorProxy, false}); err != nil {
		return nil, err
	}
	return out, c.takeAgain()
}

// Join decides about a request that waited for another run's, or an unmanaged
// scope's, sending or replay of the mutation, and would get its answer. What Claim
// refuses because of the run, the item or a repeat is refused here, too, the mutation
// counts as one of the run's, and one of many items takes the item. Nothing is ever dispatched: DecideJoin says
// that the request may have the answer. Errors are as for Claim.
func (l *Ledger) Join(ctx context.Context, q Claim) (Claimed, error) {
	return l.claiming(ctx, &q, (*claiming).join)
}

// join takes the steps of a claim that are about who asks.
func (c *claiming) join() (*Claimed, error) {
	refusal, err := c.refusedBy(c.checkRun, c.checkItem, c.checkAllowance, c.takeItem)
	if err != nil || refusal != nil {
		return refusal, err
	}
	if len(c.matches) > 1 {
		return c.ambiguous()
	}
	if c.m == nil {
		return nil, invalid("there is no mutation %s to wait for", c.q.Key.ID())
	}
	if c.m.State == Applied || c.m.State == Skipped || c.m.Watching {
		if again, err := c.repeated(); err != nil || again {
			return c.refuseRepeat(), err
		}
	}
	return &Claimed{Decision: DecideJoin}, c.useRun(false)
}
