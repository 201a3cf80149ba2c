package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"keep-proxy/internal/verdict"
)

// Claim decides whether a mutation may be sent, and records the dispatch durably before it returns. It
// takes these steps in one transaction:
//
//  0. The record is looked for under each version of the rule that the item has. Without a key for one → stale.
//  1. The run is over, or its time limit or grace is → run-aborted.
//  2. The item is done or skipped → item-done. It waits for a person → item-attention. It has another attempt →
//     attempt.
//  3. The run makes no mutation → read-only-run. It has made its only one → one-mutation. It is failing, and this
//     isn't what failed → run-failing, which may wait.
//  4. An unresolved mutation stops the scope → blocked. A managed run that won't wait is over.
//  5. Two records fit → ambiguous-record. None fits, but one may → ambiguous-record. None → drift, or sent. One fits → as docs/semantics.md §2 (repeats)
//     and §7 (replays) say.
//
// A refusal is no error. After an error nothing may be sent: ErrInvalid for a wrong claim, ErrNotFound
// for an unknown run, or the Store's.
func (l *Ledger) Claim(ctx context.Context, q Claim) (Claimed, error) {
	return l.claiming(ctx, &q, (*claiming).decide)
}

// claiming evaluates a claim as one command.
func (l *Ledger) claiming(ctx context.Context, q *Claim, decide func(*claiming) (*Claimed, error)) (Claimed, error) {
	if err := q.check(); err != nil {
		return Claimed{}, err
	}
	var undecided Claimed
	out, err := evaluate(ctx, l, func(c *command) (Claimed, error) {
		cl := &claiming{command: c, q: q}
		out, err := decide(cl)
		if err != nil {
			return Claimed{}, err
		}
		out.Mutation, out.Run = cl.m, cl.run
		if out.Decision == DecideTurn || out.Decision == DecideStale {
			undecided, err = *out, errUndecided
		}
		return *out, err
	})
	if errors.Is(err, errUndecided) {
		return undecided, nil
	}
	return out, err
}

// errUndecided drops what a claim changed that is to be made again: it may never be.
var errUndecided = errors.New("the claim is undecided")

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
	// doubted may be the record where none fits; why says how to tell.
	doubted *Mutation
	why     string
	// drifted is what to note of a dispatch; steadied says that the run's Steady has changed.
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

// refusedBy reads what the claim is about, and takes steps until one refuses.
func (c *claiming) refusedBy(steps ...func() (*Claimed, error)) (*Claimed, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	for _, step := range append([]func() (*Claimed, error){c.findRecord}, steps...) {
		if refusal, err := step(); err != nil || refusal != nil {
			return refusal, err
		}
	}
	return nil, nil
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
	if c.overdue(c.run) {
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
			return c.endWith(out, RunPausedAttention, verdict.Logic)
		}
	}
	if c.q.Attempt != attempt {
		out := refused("attempt", "Item %q is at attempt %d, this request is of attempt %d.", c.q.Item, attempt, c.q.Attempt)
		return c.endByItem(out)
	}
	return nil, nil
}

// endByItem is endByLogic, but a run of many items goes on with the others.
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
	if AdmitMutation(r, c.q.Key, c.q.Record.PayloadDigest) {
		return nil, nil
	}
	out := refused("run-failing", "Mutation %s failed for the moment (%s): %s. Until it succeeds only the same request may be made again.",
		r.FailingKey.ID(), r.Class, r.Reason)
	all, _ := r.failing(c.q.Key) // By then each of them may have been tried again.
	out.Wait = max(0, all[len(all)-1].FailingUntil.Sub(c.now.Wall)-c.config.RetryGrace) + time.Second
	return out, nil
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
	out := refused("blocked", "Mutation %s of item %q has an unknown outcome (%s); nothing goes on until it is known.",
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

// endByLogic ends a managed run whose request no retry can make right, unless its host wants the answer.
func (c *claiming) endByLogic(out *Claimed) (*Claimed, error) {
	if c.run != nil && c.run.OnFailure == FailureReturn {
		return out, nil
	}
	return c.endWith(out, RunAborted, verdict.Logic)
}

// endWith ends a managed run with the refusal.
func (c *claiming) endWith(out *Claimed, state RunState, class verdict.Class) (*Claimed, error) {
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

// Join decides about a request that waited for somebody else's sending or replay of the mutation. It refuses what
// Claim refuses because of run, item or repeat. It uses the run and takes the item as Claim does. DecideJoin says
// that the request may have the answer. Nothing is ever dispatched. Errors are as for Claim.
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
