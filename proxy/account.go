package proxy

import (
	"context"
	"errors"

	"keep-proxy/rules"
)

// withAccount makes known whose data a request changes, where the connector says that the
// API must be asked. Without an answer nothing is derived, and nothing is sent.
func (p *Proxy) withAccount(x *exchange, req *rules.Request, c *rules.Connector) (*rules.Request, *refusal) {
	if c == nil || c.AccountRead == nil {
		return req, nil
	}
	account, err := p.accountOf(x.client, c, req)
	if err != nil {
		return nil, refuse(problemAccount, "Whose data this request changes could not be asked of "+req.Authority()+
			", so nothing was sent: "+err.Error()+".")
	}
	return req.WithAccount(c, account), nil
}

// accountOf asks with the credentials that the request will be sent with.
func (p *Proxy) accountOf(ctx context.Context, c *rules.Connector, req *rules.Request) (string, error) {
	if p.config.Accounts == nil {
		return "", errors.New("nobody can be asked for it here")
	}
	name, value, ok, err := p.credentials(c.Name)
	if err != nil {
		return "", errors.New("the configured credentials can't be had")
	}
	if ok {
		header := req.Header.Clone()
		header.Set(name, value)
		bare, refusal := rules.Rebuild(req.Method, req.URL(), header, nil)
		if refusal != nil {
			return "", errors.New("the configured credential is no valid header field")
		}
		req = bare
	}
	return p.config.Accounts(ctx, c, req)
}
