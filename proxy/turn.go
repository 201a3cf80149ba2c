package proxy

import "context"

// awaitTurn waits until the connector's rate admits the request, which is then claimed:
// what waits is nowhere recorded. It ends with the caller, or with shutting down.
func (p *Proxy) awaitTurn(client context.Context, w *work) *refusal {
	ctx, stop := context.WithCancel(client)
	defer stop()
	defer context.AfterFunc(p.admitting, stop)() //nolint:contextcheck // Shutting down ends it too.
	err := p.config.Turns.Turn(ctx, w.match.Connector)
	switch {
	case err == nil:
		return nil
	case client.Err() != nil:
		return refuse(problemIncomplete, "The caller went away before its turn; nothing was sent.")
	case p.admitting.Err() != nil:
		return draining()
	}
	return refuse(problemInternal, "The rate of connector "+w.match.Connector.Name+" can't be waited for; nothing was sent: "+err.Error()+".")
}
