package proxy

import (
	"context"
	"errors"
	"fmt"

	"keep-proxy/rules"
)

// credential is the operator's own for a connector; its name is empty for none.
type credential struct{ name, value string }

// withAccount makes known whose data a request changes, where the connector says that the
// API must be asked. Without an answer nothing is derived, and nothing is sent. as is the
// credential that was asked with, nil if nobody was asked: the request must go out with
// the same one, whatever is configured by then, as its key says whose data it is about.
func (p *Proxy) withAccount(x *exchange, req *rules.Request, c *rules.Connector) (told *rules.Request, as *credential, f *refusal) {
	if c == nil || c.AccountRead == nil {
		return req, nil, nil
	}
	as, err := p.credentialOf(c.Name, req)
	account := ""
	if err == nil {
		account, err = p.accountAs(x.client, as, c, req)
	}
	if err != nil {
		return nil, nil, refuse(problemAccount, "Whose data this request changes could not be asked of "+req.Authority()+
			", so nothing was sent: "+err.Error()+".")
	}
	return req.WithAccount(c, account), as, nil
}

// credentialOf is what is configured for a connector's requests to that host now.
func (p *Proxy) credentialOf(connector string, to *rules.Request) (*credential, error) {
	name, value, ok, err := p.credentials(connector, to)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the configured credentials can't be had: %w", err)
	case !ok:
		return &credential{}, nil
	}
	return &credential{name, value}, nil
}

// accountsFor asks whose data a request changes with the credential that it will be sent
// with: where nobody was asked before, that is the one that is asked with now.
func (p *Proxy) accountsFor(w *work) AccountOf {
	return func(ctx context.Context, c *rules.Connector, req *rules.Request) (string, error) {
		if w.as == nil {
			as, err := p.credentialOf(c.Name, req)
			if err != nil {
				return "", err
			}
			w.as = as
		}
		return p.accountAs(ctx, w.as, c, req)
	}
}

// accountAs asks with this credential, and with the request's own where it is none.
func (p *Proxy) accountAs(ctx context.Context, as *credential, c *rules.Connector, req *rules.Request) (string, error) {
	if p.config.Accounts == nil {
		return "", errors.New("nobody can be asked for it here")
	}
	if as.name != "" {
		header := req.Header.Clone()
		header.Set(as.name, as.value)
		bare, refusal := rules.Rebuild(req.Method, req.URL(), header, nil)
		if refusal != nil {
			return "", errors.New("the configured credential is no valid header field")
		}
		req = bare
	}
	return p.config.Accounts(ctx, c, req)
}
