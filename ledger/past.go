package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// ItemRule is a version of a rule under which an item has a mutation.
type ItemRule struct {
	Connector string `json:"connector"`
	Operation string `json:"operation"`
	// Hash names the content of the rule file (Tx.Connector).
	Hash string `json:"hash"`
	// Hosts are those that were in force; see Mutation.ConnectorHosts.
	Hosts string `json:"hosts,omitempty"`
}

// rule is the version of a rule under which m is claimed.
func (m *Mutation) rule() ItemRule {
	return ItemRule{Connector: m.Connector, Operation: m.Operation, Hash: m.ConnectorHash, Hosts: m.ConnectorHosts}
}

// Past is the key that a claim's request has under a stored version of its rule.
type Past struct {
	Rule ItemRule
	// Key is zero where that version reads no such mutation in the request: then no
	// record of it can be of this one.
	Key Key
}

// PastRules lists the versions of the rules under which the item may have the
// mutation that is claimed under now; was are the operation's earlier names. Under another
// version it may be what that calls by another name: not everybody who renames an
// operation, or divides one, says what it was.
func (i *Item) PastRules(now ItemRule, was []string) []ItemRule {
	if i == nil {
		return nil
	}
	var out []ItemRule
	for _, r := range i.Rules {
		named := r.Operation == now.Operation || slices.Contains(was, r.Operation)
		same := r.Hash == now.Hash && r.Hosts == now.Hosts
		if r.Connector == now.Connector && r != now && (named || !same) {
			out = append(out, r)
		}
	}
	return out
}

// meet looks for the record of the claim under every version of its rule under which
// the item has mutations. A version that the caller hasn't computed a key for yet
// is asked for: DecideRules.
func (c *claiming) meet() (*Claimed, error) {
	if c.m != nil {
		c.met = []*Mutation{c.m}
	}
	if err := c.knowRules(); err != nil {
		return nil, err
	}
	var missing []ItemRule
	for _, r := range c.item.PastRules(c.q.Record.rule(), c.q.Was) {
		i := slices.IndexFunc(c.q.Past, func(p Past) bool { return p.Rule == r })
		if i < 0 {
			missing = append(missing, r)
			continue
		}
		if key := c.q.Past[i].Key; key != (Key{}) && key != c.q.Key {
			if err := c.meetUnder(key); err != nil {
				return nil, err
			}
		}
	}
	if len(missing) > 0 && c.q.CanDerive {
		return &Claimed{Decision: DecideRules, Rules: missing}, nil
	}
	if len(c.met) == 1 {
		c.m = c.met[0]
		c.q.Key = c.m.Key
	}
	return nil, nil
}

// meetUnder adds the record under a key, if there is one, to those that fit.
func (c *claiming) meetUnder(key Key) error {
	m, err := found(c.Mutation(key))
	if err != nil || m == nil || slices.ContainsFunc(c.met, func(other *Mutation) bool { return other.Key == key }) {
		return err
	}
	c.met = append(c.met, m)
	return nil
}

// knowRules fills the item's rules from its mutations, if they aren't known.
func (c *claiming) knowRules() error {
	if c.item == nil || c.item.Rules != nil {
		return nil
	}
	keys, err := c.ItemMutations(c.q.Workflow, c.q.Item)
	if err != nil {
		return err
	}
	c.item.Rules = []ItemRule{}
	for _, key := range keys {
		m, err := c.Mutation(key)
		if err != nil {
			return err
		}
		c.item.note(m)
	}
	return nil
}

// noMutations reports whether it is known that the item has none.
func (i *Item) noMutations() bool { return i.Rules != nil && len(i.Rules) == 0 }

// note adds the rule of m and reports whether it is new.
func (i *Item) note(m *Mutation) bool {
	r := m.rule()
	if slices.Contains(i.Rules, r) {
		return false
	}
	i.Rules = append(i.Rules, r)
	return true
}

// ambiguous refuses a claim that two records fit: one of them may have been done
// instead of the other, so that neither is sent nor replayed.
func (c *claiming) ambiguous() (Claimed, error) {
	var ids []string
	for _, m := range c.met {
		ids = append(ids, fmt.Sprintf("%s (%s, %s of version %d, %s)", m.ID, m.Target, m.Operation, m.ConnectorVersion, m.State))
	}
	out := refused("ambiguous-record", "The rule was changed, and now two records fit this request: %s. It is not sent; a person has to decide.",
		strings.Join(ids, " and "))
	c.m = c.met[0]
	// Nobody is asked about a skipped one.
	first := c.met[max(0, slices.IndexFunc(c.met, func(m *Mutation) bool { return m.State != Skipped }))]
	mv := c.at(ActorProxy, out.Detail)
	if first.asked() != EscalationAmbiguous && first.State != Skipped {
		first.escalate(EscalationAmbiguous, mv)
		if err := c.store(first, first.State, "ambiguous_record", mv, "", ""); err != nil {
			return Claimed{}, err
		}
	}
	refusal, err := c.endByLogic(out)
	if err != nil {
		return Claimed{}, err
	}
	return *refusal, nil
}
