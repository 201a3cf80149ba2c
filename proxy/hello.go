package proxy

import (
	"context"
	"net"
	"net/http"

	"keep-proxy/internal/hello"
)

// admitBlind refuses a blind tunnel to a stopped scope, and to a run that may read only and wasn't told otherwise.
func (p *Proxy) admitBlind(x *exchange) *refusal {
	f := p.gate(x)
	if f == nil && p.readsOnly(x.caller) && !p.standing(x.caller).Run.Passthrough {
		f = refuse(problemReadOnlyRun, "This run may read only, and nobody sees what a tunnel to "+x.tunnel.target+" carries; nothing was sent. "+
			"Open the run with passthrough (run --passthrough) if that only reads.")
	}
	return f
}

// carryNamed carries what a client says in its blind tunnel. It refuses TLS for another host than the tunnel's.
func (p *Proxy) carryNamed(x *exchange, r *http.Request, client, there net.Conn, breakOff func()) (*refusal, error) {
	first := &hello.Hello{Conn: client}
	name, err := first.ServerName(context.WithoutCancel(r.Context()))
	if f := p.misnamed(x, r, name, err); f != nil {
		breakOff()
		return f, net.ErrClosed
	}
	x.received, err = carryBlind(first.Said, client, there, breakOff)
	return nil, err
}

// misnamed refuses another host than the tunnel's. It is noted as a CONNECT to that host: only a tunnel to it does what
// the run wanted.
func (p *Proxy) misnamed(x *exchange, r *http.Request, name string, unread error) *refusal {
	_, port, _ := net.SplitHostPort(x.tunnel.target)
	meant, invalid := normalTarget(net.JoinHostPort(name, port))
	detail := "The client's TLS in its tunnel to " + x.tunnel.target
	switch {
	case unread != nil:
		detail += " can't be read, so it was cut: " + unread.Error() + "."
	case name == "" || meant == x.tunnel.target:
		return nil
	default:
		detail += " is for " + quoted(name) + ", so it was cut. Send CONNECT for that host instead."
		if invalid == nil {
			r = r.Clone(r.Context())
			r.Host, r.URL.Host = meant, meant
		}
	}
	f := refuse(problemMisdirected, detail)
	x.problem = f.problem
	_ = p.refusing(x, r, f).Body.Close()
	return f
}
