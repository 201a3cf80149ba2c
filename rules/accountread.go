package rules

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// maxAccount bounds the name of an account, in bytes.
const maxAccount = 1 << 10

// AccountRead asks the API itself whose data its requests change, where no request says
// so. What it gives is part of every key, so that it must be known before anything is
// derived: see [Request.WithAccount].
type AccountRead struct {
	// Cache is how long an answer holds for the same credentials.
	Cache time.Duration

	path  *text
	value *expr
}

// perRequest are header fields that tell requests apart and not callers.
var perRequest = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Baggage", "Cache-Control", "Date", "Priority", "Referer", "Traceparent", "Tracestate",
	"X-Amzn-Trace-Id", "X-B3-Parentspanid", "X-B3-Sampled", "X-B3-Spanid", "X-B3-Traceid", "X-Client-Request-Id", "X-Correlation-Id", "X-Request-Id",
}

// Ask is the request that tells the account of req: on its host, with its header fields,
// but those about its content and those that differ from request to request. The answer
// holds for every request for which Ask is the same.
func (a *AccountRead) Ask(req *Request) (*Ask, error) {
	s := &scope{req: req}
	target, err := a.path.path(s)
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	header := carried(req.Header)
	maps.DeleteFunc(header, func(name string, _ []string) bool {
		return slices.Contains(perRequest, name) || name == http.CanonicalHeaderKey(SubkeyField) || name == "Keep-Item"
	})
	header.Set("Accept", "application/json")
	return &Ask{Method: http.MethodGet, Scheme: req.Scheme, Authority: req.Authority(), Target: target, Header: header}, nil
}

// Account is what an answer to Ask says. Anything but a whole answer 200 that gives a
// text or a number is an error.
func (a *AccountRead) Account(req *Request, resp *Response) (string, error) {
	switch {
	case resp == nil || !resp.Complete:
		return "", errors.New("there was no whole answer")
	case resp.Status != http.StatusOK:
		return "", fmt.Errorf("it was answered %d instead of 200", resp.Status)
	}
	v, err := required(a.value, &scope{req: req, resp: newAnswer(resp)})
	if err != nil {
		return "", errors.New("the answer doesn't tell it by " + a.value.source)
	}
	if v.kind != jsonString && v.kind != jsonNumber || v.text == "" || len(v.text) > maxAccount {
		return "", fmt.Errorf("%s is no name: a text of 1 to %d bytes, or a number", a.value.source, maxAccount)
	}
	return scalarText(&v), nil
}

// WithAccount is the request of which it is known whose data c's API changes by it.
func (r *Request) WithAccount(c *Connector, account string) *Request {
	next := r.copy()
	next.accounts = maps.Clone(r.accounts)
	if next.accounts == nil {
		next.accounts = map[string]string{}
	}
	next.accounts[c.Hash] = account
	return next
}

// accountKnown is what WithAccount said for a connector that asks.
func (op *Operation) accountKnown(req *Request) (string, *Refusal) {
	account, known := req.accounts[op.Connector.Hash]
	if !known {
		return "", refuse(ProblemAccount, "whose data this request changes must be asked of the API, and was not")
	}
	return account, nil
}
