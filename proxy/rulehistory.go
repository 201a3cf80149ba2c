package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// keyOf is the mutation key of what an operation derived from a request. The identity is as the
// ledger keeps it.
func keyOf(scope ledger.Scope, op *rules.Operation, d *rules.Derived, identity map[string]string) (ledger.Key, error) {
	return ledger.MutationKey(ledger.KeyParts{
		Workflow: scope.Workflow, Item: scope.Item, Attempt: scope.Attempt,
		Connector: op.Connector.Name, Operation: op.Name, Account: d.Account,
		HostGroup: d.HostGroup, HostVars: d.HostVars, Identity: identity, Subkey: d.Subkey,
	})
}

// identityOf is the identity as the ledger keeps it.
func identityOf(d *rules.Derived) map[string]string {
	identity := make(map[string]string, len(d.Identity))
	for name, value := range d.Identity {
		// Not a part of the body, which would stay in memory with it.
		identity[name] = strings.Clone(string(value))
	}
	return identity
}

// AccountOf asks the API of a connector whose data a request changes.
type AccountOf func(ctx context.Context, c *rules.Connector, req *rules.Request) (string, error)

// elsewhere tells which versions are in force beside the connector now: no path of a host is of two connectors.
func elsewhere(set *rules.Set, now *rules.Connector) func(ledger.ItemRule) bool {
	return func(r ledger.ItemRule) bool {
		c := set.Head(r.Connector)
		return c != nil && c.Name != now.Name && c.Hash == r.Hash && c.HostsInForce == r.Hosts
	}
}

// Past computes what requests were under stored versions of rules.
type Past struct {
	Pinned   Pinned
	Accounts AccountOf
	// Rules are those in force.
	Rules *rules.Set
}

// Keys computes the keys that a request of the operation now has under stored versions. A version that can't be read
// is an error: a record may be under it.
func (p Past) Keys(ctx context.Context, scope ledger.Scope, req *rules.Request, now *rules.Operation, of []ledger.ItemRule) ([]ledger.RuleKey, error) {
	var out []ledger.RuleKey
	for _, r := range of {
		key, err := p.key(ctx, scope, req, now, r)
		if err != nil {
			return nil, fmt.Errorf("version %.12s of the rule for %s.%s: %w", r.Hash, r.Connector, r.Operation, err)
		}
		out = append(out, key)
	}
	return out, nil
}

// key is the key under one version.
func (p Past) key(ctx context.Context, scope ledger.Scope, req *rules.Request, now *rules.Operation, r ledger.ItemRule) (ledger.RuleKey, error) {
	out := ledger.RuleKey{Rule: r}
	concerned, connector, err := p.concerned(ctx, req, now.Connector, r)
	if err != nil {
		return out, err
	}
	op := connector.Operation(r.Operation)
	if op == nil {
		return out, nil
	}
	if concerned {
		if req, err = underVersion(ctx, p.Accounts, connector, req); err != nil {
			return out, err
		}
	}
	was, err := now.Under(op, r.Hosts, req, p.Rules.Head(r.Connector) == nil)
	if out.Unsure = was.Unsure; err == nil && was.Derived != nil {
		out.Key, err = keyOf(scope, op, was.Derived, identityOf(was.Derived))
	}
	return out, err
}

// concerned loads a version, and reports whether the request may be one of it.
func (p Past) concerned(ctx context.Context, req *rules.Request, now *rules.Connector, r ledger.ItemRule) (bool, *rules.Connector, error) {
	c, err := p.Pinned(ctx, r.Hash)
	if err != nil {
		return false, nil, err
	}
	concerned, err := c.Concerns(now, req, r.Hosts)
	return concerned, c, err
}

// askedAhead asks for each stored version whose data the request changes, if the version asks the
// API for it. That waits for the network, and nobody who holds content may.
func (p Past) askedAhead(ctx context.Context, req *rules.Request, now *rules.Connector, of []ledger.ItemRule) AccountOf {
	type told struct {
		account string
		err     error
	}
	known := map[string]told{}
	for _, r := range of {
		concerned, c, err := p.concerned(ctx, req, now, r)
		if err != nil || !concerned || c.AccountRead == nil || c.Operation(r.Operation) == nil {
			continue // Keys says what is wrong with it.
		}
		if _, asked := known[c.Hash]; !asked {
			account, err := p.Accounts(ctx, c, req)
			known[c.Hash] = told{account, err}
		}
	}
	return func(_ context.Context, c *rules.Connector, _ *rules.Request) (string, error) {
		t, asked := known[c.Hash]
		if !asked {
			return "", errors.New("it was not asked for")
		}
		return t.account, t.err
	}
}

// underVersion makes known whose data the request changes, if this version of the rule
// asks the API for it.
func underVersion(ctx context.Context, accounts AccountOf, c *rules.Connector, req *rules.Request) (*rules.Request, error) {
	if c.AccountRead == nil {
		return req, nil
	}
	account, err := accounts(ctx, c, req)
	if err != nil {
		return nil, fmt.Errorf("whose data it changes: %w", err)
	}
	return req.WithAccount(c, account), nil
}

// outdated refuses what waited and was read by a rule that is no longer in force. By the new rule
// another caller may have sent the same, and the old rule can't know.
func (p *Proxy) outdated(w *work) *refusal {
	was := w.match.Connector
	if now := p.config.Rules().Head(was.Name); now != nil && now.Hash == was.Hash && now.HostsInForce == was.HostsInForce {
		return nil
	}
	f := refuse(problemDraining, "The rules of connector "+was.Name+" were changed while this request waited; nothing was sent. Send it again.")
	f.retryAfter = drainRetryAfter
	return f
}

// Pinned gives a stored version of a connector by the hash of its file, as records
// name it.
type Pinned func(ctx context.Context, hash string) (*rules.Connector, error)

// ComparePayload compares a request with the one that is stored in m, of which op is the rule now.
// There is no difference where the rule of that time says so. Otherwise the rule of now decides: a
// corrected rule frees what it held up. What can't be read covers nothing.
func ComparePayload(ctx context.Context, l dispatch.StoredBodies, pinned Pinned, op *rules.Operation, req *rules.Request, m *ledger.Mutation) ledger.Compared {
	out := *ledger.ComparedWith(m)
	if (m.ConnectorHash != op.Connector.Hash || m.ConnectorHosts != op.Connector.HostsInForce) && coveredThen(ctx, pinned, op, req, m) {
		out.Covers = true
		return out
	}
	stored, err := storedAgain(ctx, l, m)
	if err != nil {
		out.Diff.Why = "The stored request can't be compared with: " + err.Error()
		return out
	}
	c := op.Compare(stored, req)
	out.Covers = c.Likeness == rules.Equivalent || c.Likeness == rules.Minor
	out.Diff = ledger.Diff{Why: c.Why, More: c.More}
	for _, change := range c.Changes {
		out.Diff.Changes = append(out.Diff.Changes, ledger.Change{
			Place: change.Place, Kind: string(change.Kind), Stored: change.Stored, Asked: change.Asked, Weight: change.Likeness.String(),
		})
	}
	return out
}

// coveredThen reports whether the rule under which m was made would replay it.
func coveredThen(ctx context.Context, pinned Pinned, now *rules.Operation, req *rules.Request, m *ledger.Mutation) bool {
	connector, err := pinned(ctx, m.ConnectorHash)
	if err != nil {
		return false
	}
	op := connector.Operation(m.Operation)
	if op == nil {
		return false
	}
	d, err := now.Under(op, m.ConnectorHosts, req, false)
	return err == nil && d.Derived != nil && (d.PayloadDigest == m.PayloadDigest || d.SignificantDigest != "" && d.SignificantDigest == m.SignificantDigest)
}

// storedAgain is the request of a record as it was stored.
func storedAgain(ctx context.Context, l dispatch.StoredBodies, m *ledger.Mutation) (*rules.Request, error) {
	body, err := dispatch.StoredBody(ctx, l, m.Request.Body)
	if err != nil {
		return nil, fmt.Errorf("its body: %w", err)
	}
	req, refusal := rules.Rebuild(m.Request.Method, m.Request.URL, http.Header(m.Request.Header), body)
	if refusal != nil {
		return nil, refusal
	}
	return req, nil
}
