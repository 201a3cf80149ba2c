package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// observe notes a request of no connector in the history before it is sent. Of the hosts that the operator named it
// takes the body too, unless that is longer than what is kept.
func (p *Proxy) observe(x *exchange, r *http.Request, req *rules.Request) *refusal {
	var body bytes.Buffer
	if amongHosts(p.config.ObserveBodies, r) && r.Body != nil {
		rest := r.Body
		err := p.awaited(x, r, func() error {
			_, err := body.ReadFrom(io.LimitReader(rest, rules.MostObserved+1))
			return err
		})
		if err != nil {
			return p.unread(x, err, 0)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body.Bytes()), rest), rest}
	}
	err := p.ledger.Observed(context.WithoutCancel(r.Context()), ledger.Event{
		Why: req.Method + " to a host of no connector is let through; this event is all that is recorded of it",
		Run: x.caller.run, Workflow: x.caller.workflow, Item: x.caller.item, Evidence: rules.Observe(req, body.Bytes()).String(),
	})
	if err != nil {
		return ledgerRefusal(err)
	}
	return nil
}
