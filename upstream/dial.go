package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// dialer makes connections that policy allows.
type dialer struct {
	cfg      Config
	trust    *Trust
	sessions tls.ClientSessionCache
	direct   net.Dialer
}

func newDialer(cfg Config) *dialer {
	d := &dialer{cfg: cfg, trust: &Trust{cfg.Roots, cfg.Named}, sessions: tls.NewLRUClientSessionCache(0)}
	d.direct = net.Dialer{KeepAlive: 30 * time.Second}
	if cfg.Egress != nil {
		d.direct.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return d.allow(address)
		}
	}
	return d
}

// egressError is a refusal by policy.
type egressError struct{ err error }

func (e *egressError) Error() string { return e.err.Error() }
func (e *egressError) Unwrap() error { return e.err }

// allow asks the policy about an address. One that can't be read is refused.
func (d *dialer) allow(address string) error {
	if d.cfg.Egress == nil {
		return nil
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &egressError{fmt.Errorf("the address %q is no IP address and port", address)}
	}
	if err := d.cfg.Egress(netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())); err != nil {
		return &egressError{err}
	}
	return nil
}

// dialTCP connects without TLS.
func (d *dialer) dialTCP(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.cfg.Dial == nil {
		return d.direct.DialContext(ctx, network, addr)
	}
	c, err := d.cfg.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if err := d.allow(c.RemoteAddr().String()); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// tlsFor returns the configuration for the upstream at addr, whose certificate must name host.
func (d *dialer) tlsFor(host, addr string) *tls.Config {
	cfg := d.trust.Client(host)
	cfg.ClientSessionCache = d.sessions
	if d.cfg.Certificate != nil {
		kept := &namelessSessions{cache: cfg.ClientSessionCache, addr: addr}
		cfg.ClientSessionCache = kept
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := d.cfg.Certificate(addr)
			if c == nil {
				c = &tls.Certificate{} // None, as crypto/tls takes it.
			}
			kept.named.Store(len(c.Certificate) > 0)
			if err != nil {
				err = &Error{ErrorTLS, "no certificate of ours: " + err.Error()}
			}
			return c, err
		}
	}
	return cfg
}

// namelessSessions keeps the sessions of one connection in which no certificate of ours was shown.
// A resumed session counts for the certificate that began it, even after that one was replaced or
// withdrawn. Its handshake asks for no certificate. They are kept by addr, as another port of the
// host may be shown another certificate.
type namelessSessions struct {
	cache tls.ClientSessionCache
	addr  string
	named atomic.Bool
}

// Get finds a session.
func (s *namelessSessions) Get(string) (*tls.ClientSessionState, bool) { return s.cache.Get(s.addr) }

// Put keeps a session, or forgets one.
func (s *namelessSessions) Put(_ string, session *tls.ClientSessionState) {
	if session == nil || !s.named.Load() {
		s.cache.Put(s.addr, session)
	}
}

// connect makes a connection for a first request, within the dial timeout and the dispatch's
// remaining time. Should the process be lost, nobody knows of a sending that goes on: it must end
// with its sender.
func (d *dialer) connect(ctx context.Context, p *plan, key endpoint, left time.Duration) (*conn, *Error) {
	ctx, cancel := context.WithTimeout(ctx, min(d.cfg.DialTimeout, left))
	defer cancel()
	c, h2, failure := d.open(ctx, p, key)
	if failure != nil {
		return nil, failure
	}
	c.raw.endsBroken(true)
	if h2 {
		return d.speakH2(ctx, c, p.addr)
	}
	return c.speakH1(), nil
}

// open makes a connection and shakes hands; h2 says that HTTP/2 was chosen.
func (d *dialer) open(ctx context.Context, p *plan, key endpoint) (c *conn, h2 bool, failure *Error) {
	tcp, err := d.dialTCP(ctx, "tcp", p.addr)
	if err != nil {
		return nil, false, dialError(err)
	}
	c = &conn{key: key, raw: newRawConn(tcp), secure: p.secure, link: Link{Protocol: "HTTP/1.1", Remote: tcp.RemoteAddr().String()}}
	if !p.secure {
		c.plain = &plainConn{Conn: c.raw}
		return c, false, nil
	}
	cfg := d.tlsFor(p.url.Hostname(), p.addr)
	cfg.NextProtos = d.cfg.HTTP1.protocols(p.addr)
	if len(p.upgrade) > 0 {
		cfg.NextProtos = []string{"http/1.1"}
	}
	session := tls.Client(c.raw, cfg)
	if err := session.HandshakeContext(ctx); err != nil {
		_ = c.raw.Close() // The alert that says why may be on its way.
		return nil, false, tlsError(err)
	}
	c.plain = &plainConn{Conn: session}
	return c, session.ConnectionState().NegotiatedProtocol == "h2", nil
}

func (c *conn) speakH1() *conn {
	c.plain.left.Store(-1)
	c.br = bufio.NewReaderSize(c.plain, bufferSize)
	c.bw = bufio.NewWriterSize(c.plain, bufferSize)
	return c
}

// speakH2 hands the connection to net/http. The transport gets prior knowledge of HTTP/2, since TLS
// is below its connection. Requests keep their real scheme.
func (d *dialer) speakH2(ctx context.Context, c *conn, addr string) (*conn, *Error) {
	c.plain.left.Store(-1)
	c.plain.frames = newFrameWatch()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return c.plain, nil },
		Protocols:              protocols,
		DisableCompression:     true,
		MaxResponseHeaderBytes: d.cfg.MaxHead,
	}
	if err := useH2(t); err != nil {
		c.kill()
		return nil, tlsError(err)
	}
	h2, err := t.NewClientConn(ctx, "http", addr)
	if err != nil {
		c.kill()
		return nil, tlsError(err)
	}
	c.h2, c.link.Protocol = h2, "HTTP/2.0"
	return c, nil
}
