package ledger

import (
	"context"
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

// RuleKey is the key that a claim's request has under an earlier version of its rule.
type RuleKey struct {
	Rule ItemRule
	// Key is zero where that version reads no such mutation in the request, or can't tell which.
	Key Key
	// Unsure says why a record under Key may be the request's; without a Key, any record of that version. It is empty
	// where the record under Key is.
	Unsure string
}

// EarlierRules lists the versions of the rules, except now, under which the item may have the claimed mutation. The
// operation's earlier names are was. Another version may name operation and connector otherwise: not everybody who
// renames them says so.
func (i *Item) EarlierRules(now ItemRule, was []string) []ItemRule {
	if i == nil {
		return nil
	}
	var out []ItemRule
	for _, r := range i.Rules {
		named := r.Operation == now.Operation || slices.Contains(was, r.Operation)
		same := r.Hash == now.Hash && r.Hosts == now.Hosts
		if r != now && (named || !same) {
			out = append(out, r)
		}
	}
	return out
}

// Ahead is what the caller of a claim computes before it.
type Ahead struct {
	// Rules are the versions of the rule under which the claim has no key yet.
	Rules []ItemRule
	// Records are those that fit under the keys that it has.
	Records []*Mutation
	// Doubted may be the claim's record where none fits; Why says how to tell.
	Doubted *Mutation
	Why     string
}

// Compare is the record with whose payload that of the claim is to be compared, nil for none.
func (a *Ahead) Compare(q *Claim) *Mutation {
	if len(a.Records) == 1 && a.Records[0].undecidedBy(q) {
		return a.Records[0]
	}
	return nil
}

// Ahead reads item and record for what a claim needs besides them.
func (l *Ledger) Ahead(ctx context.Context, q *Claim) (Ahead, error) {
	var a Ahead
	err := l.Read(ctx, func(v View) error {
		item, err := found(v.Item(q.Workflow, q.Item))
		if err == nil {
			a, err = readAhead(v, q, item)
		}
		return err
	})
	return a, err
}

// readAhead looks for records under every version of the rule that the item (or nil) has mutations of.
func readAhead(v View, q *Claim, item *Item) (a Ahead, err error) {
	if err := item.knowRules(v); err != nil {
		return a, err
	}
	keys := []Key{q.Key}
	for _, r := range item.EarlierRules(q.Record.rule(), q.Was) {
		if q.Elsewhere != nil && q.Elsewhere(r) {
			continue
		}
		i := slices.IndexFunc(q.EarlierKeys, func(k RuleKey) bool { return k.Rule == r })
		if i < 0 {
			a.Rules = append(a.Rules, r)
		} else if k := q.EarlierKeys[i]; k.Unsure == "" && k.Key != (Key{}) && !slices.Contains(keys, k.Key) {
			keys = append(keys, k.Key)
		}
	}
	for _, key := range keys {
		m, err := found(v.Mutation(key))
		if err != nil {
			return a, err
		}
		if m != nil {
			a.Records = append(a.Records, m)
		}
	}
	if len(a.Records) == 0 {
		a.Doubted, a.Why, err = doubted(v, q)
	}
	return a, err
}

// doubted finds a record that may be the claim's by a version that isn't sure. What failed may be sent again anyway.
func doubted(v View, q *Claim) (*Mutation, string, error) {
	for _, k := range q.EarlierKeys {
		if k.Unsure == "" {
			continue
		}
		all, err := mutationsOf(v, q.Workflow, q.Item)
		if err != nil {
			return nil, "", err
		}
		for _, m := range all {
			fits := m.Key == k.Key || k.Key == (Key{}) && m.rule() == k.Rule
			if fits && m.Attempt == q.Attempt && m.State != Failed {
				return m, k.Unsure, nil
			}
		}
	}
	return nil, "", nil
}

// findRecord looks for the record of the claim, which is stale without a key under some version.
func (c *claiming) findRecord() (*Claimed, error) {
	a, err := readAhead(c, c.q, c.item)
	if err != nil {
		return nil, err
	}
	if len(a.Rules) > 0 {
		return &Claimed{Decision: DecideStale}, nil
	}
	c.doubted, c.why = a.Doubted, a.Why
	if c.matches = a.Records; len(c.matches) > 0 {
		c.m = c.matches[0]
	}
	if len(c.matches) == 1 {
		c.q.Key = c.m.Key
	}
	return nil, nil
}

// knowRules fills the item's rules from its mutations, if they aren't known.
func (i *Item) knowRules(v View) error {
	if i == nil || i.Rules != nil {
		return nil
	}
	all, err := mutationsOf(v, i.Workflow, i.Item)
	if err != nil {
		return err
	}
	i.Rules = []ItemRule{}
	for _, m := range all {
		i.note(m)
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

// ambiguous refuses a claim that two records fit: either may have been done instead of the other.
func (c *claiming) ambiguous() (*Claimed, error) {
	var ids []string
	for _, m := range c.matches {
		ids = append(ids, fmt.Sprintf("%s (%s, %s of version %d, %s)", m.ID, m.Target, m.Operation, m.ConnectorVersion, m.State))
	}
	// Nobody is asked about a skipped one.
	first := c.matches[max(0, slices.IndexFunc(c.matches, func(m *Mutation) bool { return m.State != Skipped }))]
	c.m = c.matches[0]
	return c.askWhich(first, refused("ambiguous-record",
		"The rule was changed, and now two records fit this request: %s. It is not sent; a person has to decide.", strings.Join(ids, " and ")))
}

// inDoubt refuses a claim that may be about a record of another version: sent, it might be done twice.
func (c *claiming) inDoubt() (*Claimed, error) {
	c.m = c.doubted
	return c.askWhich(c.m, refused("ambiguous-record",
		"The rule was changed, and mutation %s (%s, %s.%s of version %d, %s) may be this one. %s Nothing was sent.",
		c.m.ID, c.m.Target, c.m.Connector, c.m.Operation, c.m.ConnectorVersion, c.m.State, c.why))
}

// askWhich asks a person which record is meant.
func (c *claiming) askWhich(first *Mutation, out *Claimed) (*Claimed, error) {
	mv := c.at(ActorProxy, out.Detail)
	if first.asked() != EscalationAmbiguous && first.State != Skipped {
		first.escalate(EscalationAmbiguous, mv)
		if err := c.store(first, first.State, "ambiguous_record", mv, "", ""); err != nil {
			return nil, err
		}
	}
	return c.endByLogic(out)
}
