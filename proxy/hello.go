package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// hello reads ahead what a client says first in a blind tunnel: its ClientHello, if it speaks TLS.
type hello struct {
	net.Conn
	// said is what was read.
	said []byte
	// failed is why no more was, beside a hello.
	failed error
}

var (
	errNoTLS = errors.New("no TLS")
	errHeard = errors.New("the hello was heard")
)

// Read implements io.Reader. It ends with the first bytes that don't begin a record of TLS (RFC 8446 §5.1).
func (h *hello) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.said = append(h.said, b[:n]...)
	if err == nil && !beginsTLS(h.said) {
		err = errNoTLS
	}
	h.failed = err
	return n, err
}

// beginsTLS reports whether what was said so far may begin a record of TLS: a type of content, and version 3.
func beginsTLS(said []byte) bool {
	return len(said) == 0 || said[0] >= 20 && said[0] <= 24 && (len(said) == 1 || said[1] == 3)
}

// Write drops what is written: an alert. The upstream alone answers the client.
func (*hello) Write(b []byte) (int, error) { return len(b), nil }

// serverName waits for the hello, and is the name in it. It is empty where there is no name, or no hello. The error
// says why a hello can't be read: a server may read a name there.
func (h *hello) serverName(ctx context.Context) (name string, err error) {
	heard := func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, errHeard
	}
	err = tls.Server(h, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: heard}).HandshakeContext(ctx)
	if errors.Is(err, errHeard) || h.failed != nil {
		err = nil
	}
	return name, err
}

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
	first := &hello{Conn: client}
	name, err := first.serverName(context.WithoutCancel(r.Context()))
	if f := p.misnamed(x, r, name, err); f != nil {
		breakOff()
		return f, net.ErrClosed
	}
	x.received, err = carryBlind(first.said, client, there, breakOff)
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
