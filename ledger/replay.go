package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/verdict"
)

// byRecord decides by what the ledger says about the mutation.
func (c *claiming) byRecord() (*Claimed, error) {
	if len(c.matches) > 1 {
		return c.ambiguous()
	}
	if c.m == nil && c.doubted != nil {
		return c.inDoubt()
	}
	if c.m == nil {
		refusal, note, err := c.drift()
		if err != nil || refusal != nil {
			return refusal, err
		}
		c.drifted = note
		return c.dispatch()
	}
	if c.m.Workflow != c.q.Workflow || c.m.Item != c.q.Item || c.m.Attempt != c.q.Attempt {
		return nil, invalid("mutation %s belongs to another scope", c.m.ID)
	}
	switch c.m.State {
	case Applied:
		return c.ofApplied()
	case Failed:
		return c.ofFailed()
	case InFlight:
		return c.ofInFlight()
	case Skipped:
		return c.ofSkipped()
	case NeedsReconcile:
		if c.m.Watching && c.m.Result != nil {
			return c.ofApplied()
		}
	default:
		// Indeterminate, and what this version doesn't know, are blocked.
	}
	return c.blocked([]Blocker{blockerOf(c.m)})
}

// blockerOf is the record as the gate sees it.
func blockerOf(m *Mutation) Blocker {
	return Blocker{
		Key: m.Key, ID: m.ID, Workflow: m.Workflow, Item: m.Item, Run: m.Run,
		Scope: m.Policy.BlockScope, State: m.State,
	}
}

// repeated reports whether this run asks a second time for what it was answered, or is being answered. It doesn't
// with the same client Idempotency-Key, or by a rule with repeat: replay. It doesn't if the earlier caller has gone
// or was another run's.
func (c *claiming) repeated() (bool, error) {
	if c.run == nil || c.q.RepeatReplay {
		return false, nil
	}
	d, err := found(c.Delivery(c.run.ID, c.m.Key))
	if err != nil {
		return false, err
	}
	if d != nil && d.answers(c.m) {
		return c.q.ClientKey == "" || c.q.ClientKey != d.ClientKey, nil
	}
	current := c.m.Current()
	if c.q.Redelivery || current == nil || current.Run != c.run.ID {
		return false, nil
	}
	return c.q.ClientKey == "" || c.q.ClientKey != current.ClientKey, nil
}

// refuseRepeat answers a second intent; the run goes on.
func (c *claiming) refuseRepeat() *Claimed {
	out := refused("repeated", "This run already made mutation %s (%s). If a second one is meant, tell the two apart by a subkey.",
		c.m.ID, c.m.Target)
	out.Decision = DecideRepeated
	return out
}

// ofApplied replays, or refuses what the stored result doesn't answer.
func (c *claiming) ofApplied() (*Claimed, error) {
	again, err := c.repeated()
	if err != nil {
		return nil, err
	}
	switch {
	case again:
		return c.refuseRepeat(), nil
	case !c.m.Forgotten.IsZero():
		return c.forgotten()
	case c.m.undecidedBy(c.q):
		return &Claimed{Decision: DecideStale}, nil
	case !c.covered():
		return c.mismatch("it was applied with another payload")
	case c.m.Result == nil || !c.m.Watching && c.m.ResultState != ResultKnown:
		return c.withoutResult()
	}
	return &Claimed{Decision: DecideReplay}, c.useRun(false)
}

// covered reports whether the stored result answers the claim's payload.
func (c *claiming) covered() bool {
	return c.m.Covers(c.q.Record.PayloadDigest, c.q.Record.SignificantDigest) || c.q.Compared.with(c.m) && c.q.Compared.Covers
}

// withoutResult refuses what happened but can't be answered; a person is asked once.
func (c *claiming) withoutResult() (*Claimed, error) {
	if c.q.OnNoResult {
		return &Claimed{Decision: DecideStandIn}, c.useRun(false)
	}
	out := refused("no-result", "Mutation %s happened, but its answer is not known (%s), so it can't be replayed.",
		c.m.ID, c.m.ResultState)
	if c.m.Escalated() || c.m.Escalation != nil && c.m.Escalation.Kind == EscalationNoResult {
		return out, c.useRun(false)
	}
	mv := c.at(ActorProxy, out.Detail)
	c.m.escalate(EscalationNoResult, mv)
	if err := c.store(c.m, c.m.State, "no_result", mv, "", ""); err != nil {
		return nil, err
	}
	return out, c.useRun(false)
}

// mismatch refuses another payload of the same identity: item and run wait for a person.
func (c *claiming) mismatch(why string) (*Claimed, error) {
	diff := c.diff()
	detail := func(words string) string {
		if words != "" {
			words = " " + strings.TrimSuffix(words, ".") + "."
		}
		return fmt.Sprintf("Mutation %s (%s): %s.%s It is not sent; a person has to decide.", c.m.ID, c.m.Target, why, words)
	}
	out := &Claimed{Decision: DecideMismatch, Problem: "payload-mismatch", Detail: detail(diff.String())}
	// Run and item are shown to those who may not see contents.
	mv := c.at(ActorProxy, detail(diff.Places()))
	c.m.Disputed, c.m.Diff = c.q.Record.PayloadDigest, diff
	c.m.escalate(EscalationMismatch, mv)
	if err := c.store(c.m, c.m.State, "payload_mismatch", mv, "", diff.String()); err != nil {
		return nil, err
	}
	if c.run != nil {
		out.RunRefused = true
		if err := c.end(c.run, ending{RunPausedAttention, verdict.Logic, mv.why, c.m.ID, ActorProxy, false}); err != nil {
			return nil, err
		}
	}
	return out, c.needAttention(c.m, mv.why)
}

// ofFailed claims again, but never with a second payload under one vendor key.
func (c *claiming) ofFailed() (*Claimed, error) {
	if c.m.carriesOther(c.q.Record.PayloadDigest) {
		if c.m.undecidedBy(c.q) {
			return &Claimed{Decision: DecideStale}, nil
		}
		return c.mismatch("its vendor key was used with another payload by a sending that may still be remembered")
	}
	return c.dispatch()
}

// ofInFlight joins the sending of this process; one of another process blocks.
func (c *claiming) ofInFlight() (*Claimed, error) {
	again, err := c.repeated()
	if err != nil {
		return nil, err
	}
	current := c.m.Current()
	switch {
	case again:
		return c.refuseRepeat(), nil
	case current == nil || !c.owns(current):
		return c.blocked([]Blocker{blockerOf(c.m)})
	}
	other := !c.m.Covers(c.q.Record.PayloadDigest, c.q.Record.SignificantDigest)
	return &Claimed{Decision: DecideJoin, Again: other}, c.useRun(false)
}

// ofSkipped refuses what a person decided to leave out.
func (c *claiming) ofSkipped() (*Claimed, error) {
	again, err := c.repeated()
	if err != nil {
		return nil, err
	}
	if again {
		return c.refuseRepeat(), nil
	}
	if c.q.OnSkip {
		return &Claimed{Decision: DecideStandIn}, c.useRun(false)
	}
	return refused("skipped", "A person decided to go on without mutation %s (%s).", c.m.ID, c.m.Target), c.useRun(false)
}

// dispatch records that the mutation is about to be sent.
func (c *claiming) dispatch() (*Claimed, error) {
	gap, err := c.gapOf(c.q.Workflow, c.q.Item, c.m, c.item)
	if err != nil {
		return nil, err
	}
	if gap != nil {
		return c.inGap(gap)
	}
	if c.q.AwaitsTurn {
		return &Claimed{Decision: DecideTurn}, nil
	}
	if err := c.repin(); err != nil {
		return nil, err
	}
	from, err := c.prepare()
	if err != nil {
		return nil, err
	}
	mv := c.at(ActorProxy, "")
	if err := c.move(c.m, OnClaim, c.facts(c.m, nil, 0), mv); err != nil {
		return nil, err
	}
	gaps, err := c.Gaps()
	if err != nil {
		return nil, err
	}
	c.m.SentTo = c.q.SentTo
	c.m.addDispatch(Dispatch{
		ID: c.q.DispatchID, Owner: c.Process().ID, Run: c.q.Run, Generation: c.m.Generation, Gaps: len(gaps),
		PayloadDigest: c.q.Record.PayloadDigest, ClientKey: c.q.ClientKey, Started: c.now,
		Prepares: c.q.Record.Policy.Prepares,
	})
	if err := c.keepContent(); err != nil {
		return nil, err
	}
	if err := c.store(c.m, from, OnClaim, mv, c.q.DispatchID, ""); err != nil {
		return nil, err
	}
	if c.drifted != "" {
		c.tell("drift", c.at(ActorProxy, c.drifted), c.m.event())
	}
	d := *c.m.Current()
	return &Claimed{Decision: DecideDispatch, Dispatch: &d, Drift: c.drifted}, c.useRun(true)
}

// repin lets a failed record take the rule that it is sent by now. That rule knows its key, its marker and its
// answers. No earlier sending is open that would need the rule of before.
func (c *claiming) repin() error {
	r := &c.q.Record
	if c.m == nil {
		return nil
	}
	if c.m.rule() == r.rule() {
		// What the settings say of the rule may have changed.
		c.m.Policy = r.Policy
		return nil
	}
	// The record's key stays that of the rule of its first claim, which the item must go on knowing.
	if err := c.item.knowRules(c); err != nil {
		return err
	}
	c.m.Connector, c.m.ConnectorVersion, c.m.ConnectorHash, c.m.ConnectorHosts = r.Connector, r.ConnectorVersion, r.ConnectorHash, r.ConnectorHosts
	c.m.KeyKnown = max(c.m.KeyKnown, c.m.Policy.KeyWindow)
	c.m.Operation, c.m.Policy = r.Operation, r.Policy
	c.m.Account, c.m.HostGroup, c.m.Identity, c.m.Subkey = r.Account, r.HostGroup, r.Identity, r.Subkey
	if c.item != nil && c.item.note(c.m) {
		return c.putItem(c.item)
	}
	return nil
}

// prepare makes the record of a first claim. A failed record takes what this claim carries, except its rule (see
// repin). It returns the state that the record comes from.
func (c *claiming) prepare() (State, error) {
	if c.m == nil {
		c.m = newMutation(c.q, c.now)
		if err := c.mark(c.m); err != nil {
			return "", err
		}
		if err := c.noteRule(); err != nil {
			return "", err
		}
		return "", c.beginGeneration()
	}
	if c.m.Dispatch(c.q.DispatchID) != nil {
		return "", invalid("dispatch %s of %s exists already", c.q.DispatchID, c.m.ID)
	}
	from := c.m.State
	failed := c.m.generationFailed()
	if failed {
		c.m.Generation++
	}
	// The rules that it was sent by before may have known of no key.
	if failed || c.m.VendorKey == "" {
		if err := c.beginGeneration(); err != nil {
			return "", err
		}
	}
	record := &c.q.Record
	c.m.Scope, c.m.Request, c.m.Target = c.q.Scope, record.Request, record.Target
	c.m.PayloadDigest, c.m.SignificantDigest, c.m.Unmarked = record.PayloadDigest, record.SignificantDigest, record.Unmarked
	// What it stops is the say of the run that sends it now, under the same rule too.
	c.m.Policy.BlockScope = record.Policy.BlockScope
	c.m.Class, c.m.Reason, c.m.RetryAfter = "", "", time.Time{}
	c.m.ResendTries, c.m.ResendClosed = 0, false
	c.m.Forgotten = time.Time{}
	return from, nil
}

// noteRule stores the item if it is new, or doesn't know the rule of the new mutation.
func (c *claiming) noteRule() (err error) {
	if c.item == nil {
		if c.item, err = c.newItem(c.q.Workflow, c.q.Item); err != nil {
			return err
		}
	}
	if err := c.item.knowRules(c); err != nil {
		return err
	}
	if c.item.note(c.m) || c.item.Version == 0 {
		return c.putItem(c.item)
	}
	return nil
}

// beginGeneration sets the new generation's vendor key: the script's own where the rule keeps it.
func (c *claiming) beginGeneration() error {
	if own := c.q.Record.VendorKey; own != "" {
		c.m.VendorKey = own
		return nil
	}
	return c.m.deriveVendorKey()
}

// newMutation is the record of a first claim, as far as the claim says it.
func newMutation(q *Claim, now Stamp) *Mutation {
	r := &q.Record
	return &Mutation{
		CreatedAt: now.Wall,
		Intent: Intent{
			Key: q.Key, ID: q.Key.ID(), Scope: q.Scope, Generation: 1,
			Connector: r.Connector, ConnectorVersion: r.ConnectorVersion, ConnectorHash: r.ConnectorHash, ConnectorHosts: r.ConnectorHosts,
			Operation: r.Operation, Target: r.Target, Account: r.Account, HostGroup: r.HostGroup,
			Identity: r.Identity, Subkey: r.Subkey,
		},
		Payload: Payload{
			PayloadDigest: r.PayloadDigest, SignificantDigest: r.SignificantDigest,
			Policy: r.Policy, Request: r.Request, Unmarked: r.Unmarked,
		},
	}
}

// keepContent stores the request's body and the rule file with the record.
func (c *claiming) keepContent() error {
	if err := c.keepBody(&c.m.Request.Body, c.q.Body); err != nil {
		return err
	}
	if len(c.q.Connector) == 0 {
		return nil
	}
	return c.PutConnector(c.q.Record.ConnectorHash, c.q.Connector)
}

// useRun notes for the run its only mutation, a try in its grace, or that grace's end.
func (c *claiming) useRun(sent bool) error {
	r := c.run
	if r == nil {
		return nil
	}
	changed := c.steadied
	if r.Mutations == MutationsOne && r.Only == nil {
		key := c.m.Key
		r.Only, changed = &key, true
	}
	if all, i := r.failing(c.m.Key); i >= 0 && (sent || c.m.State == Applied) {
		all[i].FailingTries++
		if c.m.State == Applied {
			all = slices.Delete(all, i, i+1)
		}
		r.failBy(all)
		changed = true
	}
	if !changed {
		return nil
	}
	return c.putRun(r)
}
