package app

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"keep-proxy/config"
	"keep-proxy/upstream"
)

// upstreamProxy connects through another proxy by CONNECT (RFC 9110 §9.3.6), whatever the scheme of the request. What
// is sent is then the same as without it.
//
// Names are looked up by that proxy. They are looked up here as well, and one with any address that egress forbids is
// refused. A name that can't be looked up here is judged by itself alone.
type upstreamProxy struct {
	egress  *egress
	url     *url.URL
	user    string
	pass    config.Secret
	sources config.Sources
	direct  []destination
	tls     *tls.Config
	dialer  net.Dialer
}

// newUpstreamProxy returns nil if none is configured.
func newUpstreamProxy(e *egress, c config.UpstreamProxy, sources config.Sources, trust *upstream.Trust) (*upstreamProxy, error) {
	if c.URL == "" {
		return nil, nil
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("proxy.upstream_proxy.url: %w", err)
	}
	return &upstreamProxy{
		egress: e, dialer: net.Dialer{Control: e.bound.control, Resolver: e.resolver},
		url: u, user: c.User, pass: c.Password, sources: sources, direct: destinations(c.NoProxy),
		tls: trust.Client(u.Hostname()),
	}, nil
}

// Dial connects to host:port. Its errors say which side failed.
func (p *upstreamProxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return p.dial(ctx, network, addr, p.egress.Dial, p.through)
}

// DialBlind is Dial for a tunnel that nobody looks into. There the upstream may speak first, which no HTTP server does.
// What it says can come together with the other proxy's answer.
func (p *upstreamProxy) DialBlind(ctx context.Context, network, addr string) (net.Conn, error) {
	return p.dial(ctx, network, addr, p.egress.Dial, func(ctx context.Context, addr string) (net.Conn, error) {
		c, early, err := p.open(ctx, addr)
		if err != nil || len(early) == 0 {
			return c, err
		}
		return &greeted{Conn: c, early: early}, nil
	})
}

// greeted is a tunnel in which the upstream spoke first.
type greeted struct {
	net.Conn
	early []byte
}

// Read returns first what came with the other proxy's answer.
func (g *greeted) Read(p []byte) (int, error) {
	if len(g.early) == 0 {
		return g.Conn.Read(p)
	}
	n := copy(p, g.early)
	g.early = g.early[n:]
	return n, nil
}

// NetConn returns the connection below.
func (g *greeted) NetConn() net.Conn { return g.Conn }

// CloseWrite ends the sending direction.
func (g *greeted) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return g.Close()
}

// DialRead is Dial for what may be sent twice.
func (p *upstreamProxy) DialRead(ctx context.Context, network, addr string) (net.Conn, error) {
	return p.dial(ctx, network, addr, p.egress.DialRead, p.through)
}

// DialNamed is Dial for what the operator named, such as a webhook. Egress doesn't judge it. What is on this machine
// isn't asked of another one.
func (p *upstreamProxy) DialNamed(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddr(host)
	if host = strings.ToLower(host); p.goesDirect(host, port) || host == "localhost" || err == nil && at.Unmap().IsLoopback() {
		return p.dialer.DialContext(ctx, network, addr)
	}
	return p.through(ctx, addr)
}

func (p *upstreamProxy) dial(
	ctx context.Context, network, addr string,
	direct func(ctx context.Context, network, addr string) (net.Conn, error), through func(ctx context.Context, addr string) (net.Conn, error),
) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if p.goesDirect(strings.ToLower(host), port) {
		return direct(ctx, network, addr)
	}
	if err := p.allowed(ctx, strings.ToLower(host), port); err != nil {
		return nil, err
	}
	return through(ctx, addr)
}

// through opens a tunnel to a server of HTTP.
func (p *upstreamProxy) through(ctx context.Context, addr string) (net.Conn, error) {
	c, early, err := p.open(ctx, addr)
	if err == nil && len(early) > 0 {
		_ = c.Close()
		return nil, noWayTo(addr, "it sent more than an answer")
	}
	return c, err
}

// open opens a tunnel. early is what came with the answer that says so.
func (p *upstreamProxy) open(ctx context.Context, addr string) (c net.Conn, early []byte, err error) {
	if c, err = p.reach(ctx); err != nil {
		class := upstream.ErrorProxy
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			class = upstream.ErrorCertificate
		}
		return nil, nil, &upstream.Error{Class: class, Text: "No connection to proxy.upstream_proxy: " + err.Error()}
	}
	if early, err = p.connect(ctx, c, addr); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, early, nil
}

// noWayTo says why the other proxy opened no tunnel.
func noWayTo(addr, text string) error {
	return &upstream.Error{Class: upstream.ErrorProxy, Text: "proxy.upstream_proxy opened no tunnel to " + addr + ": " + text}
}

// goesDirect reports whether no_proxy names the host, or the address that it is.
func (p *upstreamProxy) goesDirect(host, port string) bool {
	at := netip.AddrPort{}
	if a, err := netip.ParseAddr(host); err == nil {
		at = netip.AddrPortFrom(a.Unmap(), portNumber(port))
	}
	for _, d := range p.direct {
		if d.port != "" && d.port != port {
			continue
		}
		d.port = ""
		if d.fits(host, at) {
			return true
		}
	}
	return false
}

// allowed asks egress about every address that the name has here.
func (p *upstreamProxy) allowed(ctx context.Context, host, port string) error {
	addresses, err := p.egress.resolver.LookupNetIP(ctx, "ip", host)
	switch {
	case p.egress.bound.refused(err): // It wasn't looked up, and may be a forbidden address.
		return errLedgers
	case err != nil:
		addresses = nil // Only the other proxy knows it.
	}
	for _, a := range addresses {
		if err := p.egress.check(host, netip.AddrPortFrom(a.Unmap(), portNumber(port))); err != nil {
			return &upstream.Error{Class: upstream.ErrorEgress, Text: located(host, a.Unmap()) + ": " + err.Error()}
		}
	}
	if len(addresses) > 0 {
		return nil
	}
	for _, d := range p.egress.deny {
		if d.name != "" && d.fits(host, netip.AddrPortFrom(netip.Addr{}, portNumber(port))) {
			return &upstream.Error{Class: upstream.ErrorEgress, Text: "proxy.egress.deny lists " + host}
		}
	}
	return nil
}

// reach connects to the other proxy itself, which the operator named. Egress doesn't judge it, but refuses this proxy.
// It would go out through itself without end.
func (p *upstreamProxy) reach(ctx context.Context) (net.Conn, error) {
	host := p.url.Host
	if p.url.Port() == "" {
		host = net.JoinHostPort(p.url.Hostname(), map[string]string{"http": "80", "https": "443"}[p.url.Scheme])
	}
	d := p.dialer
	d.Control = func(network, addr string, c syscall.RawConn) error {
		at, err := netip.ParseAddrPort(addr)
		switch {
		case err != nil:
			return err
		case p.egress.isOwn(netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())):
			return errOwn
		case p.dialer.Control == nil:
			return nil
		}
		return p.dialer.Control(network, addr, c)
	}
	c, err := d.DialContext(ctx, "tcp", host)
	if err != nil || p.url.Scheme == "http" {
		return c, err
	}
	secure := tls.Client(c, p.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return secure, nil
}

// maxConnectHead bounds the other proxy's answer to CONNECT.
const maxConnectHead = 64 << 10

// connect asks for a tunnel. Nothing of the request has been sent before it stands.
func (p *upstreamProxy) connect(ctx context.Context, c net.Conn, addr string) (early []byte, _ error) {
	failed := func(text string) ([]byte, error) { return nil, noWayTo(addr, text) }
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	r := &http.Request{Method: http.MethodConnect, Host: addr, URL: &url.URL{Host: addr}, Header: http.Header{}}
	if p.user != "" {
		password, err := p.pass.Resolve(p.sources)
		if err != nil {
			stop()
			return failed("proxy.upstream_proxy.password: " + err.Error())
		}
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(p.user+":"+password)))
	}
	err := r.Write(c)
	var answer *http.Response
	br := bufio.NewReader(io.LimitReader(c, maxConnectHead))
	if err == nil {
		answer, err = http.ReadResponse(br, r) //nolint:bodyclose // The body of a tunnel's answer is the tunnel itself.
	}
	switch {
	case !stop():
		return failed(context.Cause(ctx).Error())
	case err != nil:
		return failed(err.Error())
	case answer.StatusCode/100 != 2:
		return failed("it answered " + answer.Status)
	}
	early, _ = br.Peek(br.Buffered()) // It is all there.
	return early, nil
}

// portNumber is 0 for what is no number.
func portNumber(port string) uint16 {
	at, err := netip.ParseAddrPort("0.0.0.0:" + port)
	if err != nil {
		return 0
	}
	return at.Port()
}
