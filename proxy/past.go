package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// keyOf is the mutation key of what an operation derived from a request, with the
// identity as the ledger keeps it.
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

// PastKeys computes the keys that a request of the operation now has under stored versions of
// its rule. A version that can't be read is an error: a record may be under it.
func PastKeys(
	ctx context.Context, pinned Pinned, accounts AccountOf, scope ledger.Scope, req *rules.Request, now *rules.Operation, of []ledger.ItemRule,
) ([]ledger.Past, error) {
	var out []ledger.Past
	for _, r := range of {
		key, err := pastKey(ctx, pinned, accounts, scope, req, now, r)
		if err != nil {
			return nil, fmt.Errorf("version %.12s of the rule for %s.%s: %w", r.Hash, r.Connector, r.Operation, err)
		}
		out = append(out, ledger.Past{Rule: r, Key: key})
	}
	return out, nil
}

// pastKey is the key under one version, zero where that reads no such mutation in the request.
func pastKey(
	ctx context.Context, pinned Pinned, accounts AccountOf, scope ledger.Scope, req *rules.Request, now *rules.Operation, r ledger.ItemRule,
) (ledger.Key, error) {
	connector, err := pinned(ctx, r.Hash)
	if err != nil {
		return ledger.Key{}, err
	}
	op := connector.Operation(r.Operation)
	if op == nil {
		return ledger.Key{}, nil
	}
	if req, err = underVersion(ctx, accounts, connector, req); err != nil {
		return ledger.Key{}, err
	}
	var d *rules.Derived
	if op.Name == now.Name || slices.Contains(now.Was, op.Name) {
		d, err = op.DeriveAlone(req, r.Hosts)
	} else {
		// What has another name is this mutation only if that version took the request for it.
		d, err = connector.DeriveAs(op.Name, req, r.Hosts)
	}
	if err != nil || d == nil {
		return ledger.Key{}, err
	}
	return keyOf(scope, op, d, identityOf(d))
}

// askedAhead asks for each stored version whose data the request changes, if the version asks the API for
// it: that waits for the network, which nobody may who holds content.
func askedAhead(ctx context.Context, pinned Pinned, accounts AccountOf, req *rules.Request, of []ledger.ItemRule) AccountOf {
	type told struct {
		account string
		err     error
	}
	known := map[string]told{}
	for _, r := range of {
		c, err := pinned(ctx, r.Hash)
		if err != nil || c.AccountRead == nil || c.Operation(r.Operation) == nil {
			continue // PastKeys says what is wrong with it.
		}
		if _, asked := known[c.Hash]; !asked {
			account, err := accounts(ctx, c, req)
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

// outdated refuses what was read by a rule that is in force no more, which waited meanwhile: what
// the new one calls it, another caller may have been sent, and the old one knows nothing of that.
func (p *Proxy) outdated(w *work) *refusal {
	was := w.match.Connector
	if now := p.config.Rules().Connector(was.Name); now != nil && now.Hash == was.Hash && now.HostsInForce == was.HostsInForce {
		return nil
	}
	f := refuse(problemDraining, "The rules of connector "+was.Name+" were changed while this request waited; nothing was sent. Send it again.")
	f.retryAfter = drainRetryAfter
	return f
}
