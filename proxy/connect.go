package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/rules"
)

// tlsHandshake is the first byte of a TLS record that opens a connection
// (RFC 8446 §5.1).
const tlsHandshake = 0x16

// firstByteTimeout bounds the wait for a client to say what it speaks inside its
// tunnel.
const firstByteTimeout = 30 * time.Second

// connect answers a CONNECT request: who asks, for which host, and then a
// tunnel that ends in this proxy. Nothing is dialled yet.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	c, f := p.admitConnect(w, r)
	if f == nil && c == nil {
		return
	}
	if f != nil {
		p.turnAway(w, r, caller{}, f)
		return
	}
	target, err := normalTarget(r.Host)
	if err != nil {
		p.turnAway(w, r, *c, refuse(problemAmbiguous, "CONNECT needs host:port: "+err.Error()+"."))
		return
	}
	t := &tunnel{target: target, remote: r.RemoteAddr, caller: *c}
	if p.blind(target) {
		p.tunnelBlind(w, r, t)
		return
	}
	p.goproxy.ServeHTTP(hijackKeeper{w}, r.WithContext(withTunnel(r.Context(), t)))
}

// admitConnect authenticates a CONNECT. Both results are nil when it has answered
// with a challenge.
func (p *Proxy) admitConnect(w http.ResponseWriter, r *http.Request) (*caller, *refusal) {
	c, err := p.who(r)
	if err == nil {
		return &c, nil
	}
	if errors.Is(err, errCredentials) {
		p.challenge(w, r)
		return nil, nil
	}
	return nil, ledgerRefusal(err)
}

// enterTunnel takes over a hijacked connection: TLS ends here with a leaf of our
// CA, plaintext is served as it is, since some clients CONNECT to port 80.
func (p *Proxy) enterTunnel(r *http.Request, client net.Conn) {
	t := tunnelOf(r.Context())
	if t == nil {
		_ = client.Close()
		return
	}
	// No server has the connection before it is known what is spoken on it.
	disown := context.AfterFunc(p.ctx, func() { _ = client.Close() }) //nolint:contextcheck // It ends with the proxy, not with the request.
	defer disown()
	_, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	first := make([]byte, 1)
	if err == nil {
		_ = client.SetReadDeadline(time.Now().Add(min(firstByteTimeout, p.config.RequestTimeout)))
		_, err = io.ReadFull(client, first)
		_ = client.SetReadDeadline(time.Time{})
	}
	if err != nil {
		p.noteUnused(t, err)
		_ = client.Close()
		return
	}
	t.Conn, t.first = client, strings.NewReader(string(first))
	if first[0] != tlsHandshake {
		go p.loop.Serve(p.guard(t, t)) //nolint:contextcheck // A tunnel outlives the request that opened it.
		return
	}
	p.enterTLS(t) //nolint:contextcheck // A tunnel outlives the request that opened it.
}

// noteUnused writes the log line of a tunnel into which nothing was said.
func (p *Proxy) noteUnused(t *tunnel, err error) {
	level, name, detail := zerolog.InfoLevel, "", "the client ended its tunnel before it said anything"
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		level, name, detail = zerolog.WarnLevel, string(problemRequestTimeout), "the client says nothing in its tunnel"
	case p.ctx.Err() != nil:
		detail = "keep-proxy ended before the client said anything in its tunnel"
	}
	p.config.Log.WithLevel(level).Str("problem", name).Str("method", http.MethodConnect).Str("host", t.target).Int("status", http.StatusOK).
		Str("client", t.remote).Str("workflow", t.caller.workflow).Str("item", t.caller.item).Str("run", t.caller.run).Str("detail", detail).Msg("request")
}

// enterTLS shakes hands with the client. What is spoken then decides who reads it:
// HTTP/1 is guarded, and HTTP/2 has frames that net/http holds to the letter itself.
func (p *Proxy) enterTLS(t *tunnel) {
	session := tls.Server(t, p.tls)
	ctx, cancel := context.WithTimeout(p.ctx, readHeaderTimeout)
	defer cancel()
	if err := session.HandshakeContext(ctx); err != nil {
		p.config.Log.Warn().Str("client", t.remote).Str("host", t.target).Str("workflow", t.caller.workflow).
			Str("item", t.caller.item).Str("run", t.caller.run).Str("problem", "tls").Str("detail", err.Error()).
			Msg("the client and the proxy agree on no TLS session; does the client trust the proxy's CA?")
		_ = session.Close()
		return
	}
	t.secure = true
	state := session.ConnectionState()
	if state.NegotiatedProtocol == "h2" {
		p.tunnels.push(session)
		return
	}
	go p.loop.Serve(guardedTLS{p.guard(session, t), state})
}

// tlsConfig is that of all tunnels: its keys for session tickets (RFC 8446 §2.2) are made
// and renewed by itself, and with one for each tunnel no client could resume a session. A
// client is shown the name that it asked for, else its tunnel's.
func (p *Proxy) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName != "" {
				return p.leaves.get(strings.ToLower(hello.ServerName))
			}
			t, ok := hello.Conn.(*tunnel)
			if !ok {
				return nil, errors.New("TLS outside a tunnel")
			}
			host, _, err := net.SplitHostPort(t.target)
			if err != nil {
				return nil, err
			}
			return p.leaves.get(host)
		},
	}
}

// normalTarget brings the authority of a CONNECT into the form host:port that
// the requests inside are compared with.
func normalTarget(authority string) (string, error) {
	_, port, err := net.SplitHostPort(authority)
	if err != nil {
		return "", err
	}
	req, f := rules.Normalize(rules.Raw{Method: http.MethodGet, Scheme: "https", Authority: authority, Target: "/", Header: http.Header{}})
	if f != nil {
		return "", f
	}
	return net.JoinHostPort(req.Host, port), nil
}

// blind reports whether a host is tunnelled without being looked into. The
// mutations of a connector's host are never passed by blindly.
func (p *Proxy) blind(target string) bool {
	host, _, err := net.SplitHostPort(target)
	if err != nil || !slices.ContainsFunc(p.config.Passthrough, func(entry string) bool { return covers(entry, host, target) }) {
		return false
	}
	return !p.config.Rules().ConnectorHost(target)
}

// covers reports whether an entry of Config.Passthrough names the target.
func covers(entry, host, target string) bool {
	if suffix, ok := strings.CutPrefix(entry, "*"); ok {
		return strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix)
	}
	return strings.EqualFold(entry, host) || strings.EqualFold(entry, target)
}

// tunnelBlind joins a client to an upstream without looking inside. Only the
// gate at CONNECT and later cuts apply to it.
func (p *Proxy) tunnelBlind(w http.ResponseWriter, r *http.Request, t *tunnel) {
	x := &exchange{caller: t.caller, client: r.Context()}
	if f := p.gate(x); f != nil { //nolint:contextcheck // The exchange holds the client's context.
		p.turnAway(w, r, t.caller, f)
		return
	}
	upstream, err := p.config.Dial(r.Context(), "tcp", t.target)
	if err != nil {
		p.turnAway(w, r, t.caller, refuse(problemNotSent, "No connection to "+t.target+": "+err.Error()+"."))
		return
	}
	defer func() { _ = upstream.Close() }()
	client, _, err := hijackKeeper{w}.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	open := p.register(context.WithoutCancel(r.Context()), t.caller, false)
	defer open.end()
	open.AfterFunc(func() { _, _ = client.Close(), upstream.Close() })
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(upstream, client)
		closeWrite(upstream)
	}()
	_, _ = io.Copy(client, upstream)
	closeWrite(client)
	<-done
}

// closeWrite ends one direction of a connection.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
