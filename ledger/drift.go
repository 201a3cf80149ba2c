package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"keep-proxy/internal/verdict"
)

// Drift says what follows if a re-run drifts. It drifts if it claims a new identity of an operation before it asked
// for an earlier run's mutations. The zero value is read as DriftWarn.
type Drift string

const (
	// DriftWarn sends, and notes it.
	DriftWarn Drift = "warn"
	// DriftRefuse sends nothing, and asks a person.
	DriftRefuse Drift = "refuse"
	// DriftAllow doesn't look.
	DriftAllow Drift = "allow"
)

// drift refuses a new mutation that drifts, or returns what to note of it.
func (c *claiming) drift() (*Claimed, string, error) {
	operation := c.q.Record.Connector + "/" + c.q.Record.Operation
	if c.run == nil || c.item == nil || c.q.Drift == DriftAllow ||
		slices.Contains(c.run.Steady, operation) || c.driftAccepted() {
		return nil, "", nil
	}
	unasked, complete, err := c.unasked()
	if err != nil {
		return nil, "", err
	}
	if len(unasked) == 0 {
		if complete {
			c.steady(operation)
		}
		return nil, "", nil
	}
	old := c.nearest(unasked)
	words := fmt.Sprintf("An earlier run of this item made mutation %s (%s), which this run has not asked for again; instead it asks for %s: %s.",
		old.ID, old.Target, c.q.Record.Target, c.turned(old))
	if c.q.Drift != DriftRefuse {
		// Said once for each run.
		c.steady(operation)
		return nil, words, nil
	}
	refusal, err := c.refuseDrift(old, words)
	return refusal, "", err
}

// driftAccepted reports whether a person accepted drifts of the operation, under any of its names.
func (c *claiming) driftAccepted() bool {
	return slices.ContainsFunc(c.item.Drifts, func(accepted string) bool {
		connector, operation, _ := strings.Cut(accepted, "/")
		return c.names(connector, operation)
	})
}

// names reports whether the claim's operation has, or had, these names. It had those by which a stored version reads
// the claim's request.
func (c *claiming) names(connector, operation string) bool {
	if connector == c.q.Record.Connector && (operation == c.q.Record.Operation || slices.Contains(c.q.Was, operation)) {
		return true
	}
	return slices.ContainsFunc(c.q.EarlierKeys, func(k RuleKey) bool {
		return k.Key != Key{} && k.Rule.Connector == connector && k.Rule.Operation == operation
	})
}

// steady notes that the run is looked at no more; a run of many items is looked at each time.
func (c *claiming) steady(operation string) {
	if !c.run.Many() {
		c.run.Steady = append(c.run.Steady, operation)
		c.steadied = true
	}
}

// unasked lists the operation's mutations that an earlier run applied and this run has not asked for. If complete,
// their number can't grow.
func (c *claiming) unasked() (list []*Mutation, complete bool, err error) {
	if c.item.noMutations() {
		return nil, true, nil
	}
	all, err := mutationsOf(c, c.q.Workflow, c.q.Item)
	if err != nil {
		return nil, false, err
	}
	complete = true
	for _, m := range all {
		if !c.names(m.Connector, m.Operation) || m.Attempt != c.q.Attempt || m.Run == c.run.ID {
			continue
		}
		if c.mayApply(m) {
			complete = false
		}
		if m.State != Applied {
			continue
		}
		asked, err := c.askedFor(m)
		if err != nil {
			return nil, false, err
		}
		if !asked {
			list = append(list, m)
		}
	}
	return list, complete, nil
}

// mayApply reports whether m may become applied without any run asking for it.
func (c *command) mayApply(m *Mutation) bool {
	return m.State == InFlight || m.Unresolved() || m.Queued() || m.Watching || c.sending(m, 0)
}

// askedFor reports whether the run was answered with m, or is being.
func (c *claiming) askedFor(m *Mutation) (bool, error) {
	if c.answering(c.run.ID, m.Key) {
		return true, nil
	}
	d, err := found(c.Delivery(c.run.ID, m.Key))
	return d != nil, err
}

// nearest is the mutation whose identity has most in common with the claim's, the oldest first.
func (c *claiming) nearest(list []*Mutation) *Mutation {
	best, most := list[0], -1
	for _, m := range list {
		same := 0
		for name, value := range c.q.Record.Identity {
			if m.Identity[name] == value {
				same++
			}
		}
		if same > most {
			best, most = m, same
		}
	}
	return best
}

// turned says what changed between the identity of m and that of the claim.
func (c *claiming) turned(m *Mutation) string {
	var out []string
	differs := func(what, was, is string) {
		switch {
		case was == is:
		case was == "":
			out = append(out, what+" was not there, is "+is)
		case is == "":
			out = append(out, what+" was "+was+", is gone")
		default:
			out = append(out, what+" was "+was+", is "+is)
		}
	}
	names := map[string]string{}
	maps.Copy(names, m.Identity)
	maps.Copy(names, c.q.Record.Identity)
	for name := range names {
		differs("identity."+name, m.Identity[name], c.q.Record.Identity[name])
	}
	differs("subkey", m.Subkey, c.q.Record.Subkey)
	differs("account", m.Account, c.q.Record.Account)
	if len(out) == 0 {
		return "the host differs"
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// refuseDrift sends nothing: the item waits for a person, and the run is paused.
func (c *claiming) refuseDrift(old *Mutation, words string) (*Claimed, error) {
	out := refused("drift", "%s Nothing was sent; a person has to decide.", words)
	mv := c.at(ActorProxy, out.Detail)
	old.escalate(EscalationDrift, mv)
	if err := c.store(old, old.State, "drift", mv, "", ""); err != nil {
		return nil, err
	}
	c.m = old
	if _, err := c.endWith(out, RunPausedAttention, verdict.Logic); err != nil {
		return nil, err
	}
	return out, c.needAttention(old, out.Detail)
}

// acceptDrift lets the item's runs ask for other identities of the operation. It is about the attempt of m.
func (c *command) acceptDrift(m *Mutation) error {
	item, err := c.Item(m.Workflow, m.Item)
	if err != nil || item.Attempt != m.Attempt {
		return err
	}
	if operation := m.Connector + "/" + m.Operation; !slices.Contains(item.Drifts, operation) {
		item.Drifts = append(item.Drifts, operation)
		if err := c.putItem(item); err != nil {
			return err
		}
	}
	return c.attended(m)
}

// answer is a mutation with which a run is being answered.
type answer struct {
	run string
	key Key
}

// Answering notes, until Deliver, that the run is being answered with another run's mutation. What the run asks for
// next comes after that.
func (l *Ledger) Answering(run string, key Key) {
	l.answers.Store(answer{run, key}, true)
}

// Undelivered notes, without waiting, that such an answer didn't arrive whole; it was asked for.
func (l *Ledger) Undelivered(run string, key Key) {
	l.note(func(tx Tx, at time.Time) error {
		defer l.answers.Delete(answer{run, key})
		d, err := found(tx.Delivery(run, key))
		if err != nil || d != nil {
			return err
		}
		return tx.PutDelivery(run, key, Delivery{At: at, Begun: true})
	})
}

// answering reports whether the run is being answered with the mutation.
func (c *command) answering(run string, key Key) bool {
	_, ok := c.ledger.answers.Load(answer{run, key})
	return ok
}
