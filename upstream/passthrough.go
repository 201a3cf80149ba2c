package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Passthrough carries what is not a mutation: reads and ignored requests. It is an
// http.RoundTripper that streams both ways. It shares roots, dialer and egress check with [Sender],
// but has its own connections.
//
// Requests to upstreams that speak HTTP/1.1 go over this package's own connections. Those are reads
// without content (GET, HEAD, OPTIONS), short content, sent with its head, and content that is
// streamed. To upstreams that speak HTTP/2, and where connections can't be looked at, net/http's
// transport carries them.
//
// A request with an Upgrade field asks the upstream to change protocols (RFC 9110 §7.8), over
// HTTP/1.1. A 101 counts as an answer only if it changes to one of those; its Body is then a
// [*Switched]. Any other request gets a 101 without its body.
//
// Unlike Sender it may send a request again. It repeats a read without content if its kept
// connection ended without a byte of an answer. Over HTTP/2 net/http may repeat requests. Use it
// only for requests whose repetition does no harm. A URL's Opaque may be the request-target, which is
// sent as it is. It reads no proxy environment, does not
// decompress, and follows no redirect. A field TE goes to upstreams that speak HTTP/2 alone.
type Passthrough struct {
	cfg       Config
	dialer    *dialer
	pool      *pool
	transport *http.Transport

	mu sync.RWMutex
	// others are the upstreams that net/http's transport serves. The value is true for HTTP/2, false
	// where connections can't be looked at.
	others map[endpoint]bool
}

// These bound the idle connections of a Passthrough: how many net/http's transport keeps for one
// upstream, and for how long. This package's own are kept for less time. Their end is noticed only
// right before the next use.
const (
	idlePerHost = 256
	idleFor     = 90 * time.Second
	ownIdleFor  = 30 * time.Second
)

// expectTimeout is how long content waits for an upstream's 100 (Continue), where the
// client asked for one (RFC 9110 §10.1.1).
const expectTimeout = time.Second

// mostOthers bounds the upstreams that are remembered not to be read from here.
const mostOthers = 4096

// NewPassthrough returns a Passthrough. Of cfg it uses Roots, Named, Dial, Egress, DialTimeout and
// MaxHead. Nothing but the request's context bounds the wait for an answer.
func NewPassthrough(cfg Config) *Passthrough {
	cfg = cfg.withDefaults()
	d := newDialer(cfg)
	begun := time.Now()
	kept := newPool(func() time.Duration { return time.Since(begun) }, ownIdleFor)
	transport := &http.Transport{
		DialContext:            d.passPlain,
		DialTLSContext:         d.passTLS,
		ExpectContinueTimeout:  expectTimeout,
		MaxResponseHeaderBytes: cfg.MaxHead,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleFor,
	}
	if err := useH2(transport); err != nil {
		// It fails on a transport that speaks HTTP/2 already. Without it, this one
		// would speak HTTP/1.1 with those who chose HTTP/2, which nobody understands.
		panic(err)
	}
	return &Passthrough{cfg: cfg, dialer: d, pool: kept, others: map[endpoint]bool{}, transport: transport}
}

// passPlain dials within the dial timeout; its error is an *Error.
func (d *dialer) passPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	if c := handedIn(ctx); c != nil {
		return &headed{Conn: c}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.DialTimeout)
	defer cancel()
	c, err := d.dialTCP(ctx, network, addr)
	if err != nil {
		return nil, dialError(err)
	}
	return &headed{Conn: c}, nil
}

// DialTLS dials for an http.Transport of another package.
func DialTLS(cfg Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return newDialer(cfg.withDefaults()).passTLS
}

// passTLS dials and shakes hands within the dial timeout; its error is an *Error.
// The connection is a *tls.Conn where HTTP/2 was negotiated, so that net/http sees that.
func (d *dialer) passTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	if c := handedIn(ctx); c != nil {
		return unlessH2(c), nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.DialTimeout)
	defer cancel()
	c, err := d.dialTCP(ctx, network, addr)
	if err != nil {
		return nil, dialError(err)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		_ = c.Close()
		return nil, dialError(err)
	}
	cfg := d.tlsFor(host, addr)
	cfg.NextProtos = d.cfg.HTTP1.protocols(addr)
	session := tls.Client(c, cfg)
	if err := session.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, tlsError(err)
	}
	return unlessH2(session), nil
}

// unlessH2 keeps an eye on what is HTTP/1.
func unlessH2(c net.Conn) net.Conn {
	if speaksH2(c) {
		return c
	}
	return &headed{Conn: c}
}

// RoundTrip sends the request. Its error is an *Error whose text holds no content. If the request's
// context has ended, it is the context's error.
func (p *Passthrough) RoundTrip(r *http.Request) (*http.Response, error) {
	var resp *http.Response
	var err error
	switch {
	case len(r.Header["Upgrade"]) > 0:
		resp, err = p.upgrade(r)
	case readable(r):
		resp, err = p.own(r, nil)
	case short(r):
		resp, err = p.passShort(r)
	case uploads(r):
		resp, err = p.passLong(r)
	default:
		resp, err = p.carried(r)
	}
	if err == nil {
		return resp, nil
	}
	if ctxErr := context.Cause(r.Context()); ctxErr != nil {
		return nil, ctxErr
	}
	return nil, passError(err)
}

// own sends a request over a kept connection, or else over a new one. One without content tries
// kept connections while any are left.
func (p *Passthrough) own(r *http.Request, content Bytes) (*http.Response, error) {
	asked := Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: r.Header, asIs: true}
	if content != nil {
		asked.Body = content
	}
	plan, err := makePlan(&asked)
	if err != nil {
		return nil, &Error{ErrorRequest, err.Error()}
	}
	return p.over(r, plan, content)
}

// over is own for a request with its plan.
func (p *Passthrough) over(r *http.Request, plan *plan, content Bytes) (*http.Response, error) {
	key := p.pool.keyFor(r.Context(), plan)
	for {
		// A kept connection would still take a request that has ended, such as one stopped while its
		// content comes.
		if ended := context.Cause(r.Context()); ended != nil {
			plan.giveUp()
			return nil, ended
		}
		c := p.pool.get(key, p.pool.now())
		if c == nil {
			return p.anew(r, plan, key, content)
		}
		resp, again, err := p.readOn(r.Context(), c, plan, r, content)
		if !again {
			return resp, err
		}
	}
}

// anew sends a request over a new connection. One that speaks HTTP/2, or that can't be
// looked at, is net/http's.
func (p *Passthrough) anew(r *http.Request, plan *plan, key endpoint, content Bytes) (*http.Response, error) {
	if content != nil {
		r = withContent(r, io.NopCloser(content.reader()))
	}
	at := plan.endpoint()
	// That the upstream chose HTTP/2 counts only until it asks for HTTP/1.1.
	if chose2, other := p.other(at); other && (!chose2 || !p.cfg.HTTP1.required(plan.addr)) {
		resp, err := p.carried(alone(r, plan.binds && !chose2))
		if err == nil && chose2 && resp.ProtoMajor != 2 {
			p.forget(at)
		}
		return p.overHTTP1(r, plan, content, resp, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.cfg.DialTimeout)
	c, h2, failure := p.dialer.open(ctx, plan, key)
	cancel()
	if failure != nil {
		plan.giveUp()
		return nil, failure
	}
	if !h2 && c.raw.sys != nil {
		resp, _, err := p.readOn(r.Context(), c.speakH1(), plan, r, content)
		return resp, err
	}
	p.remember(at, h2)
	made := &handed{conn: c.plain.Conn}
	defer made.drop()
	resp, err := p.carried(alone(r.WithContext(context.WithValue(r.Context(), handedKey{}, made)), plan.binds && !h2))
	return p.overHTTP1(r, plan, content, resp, err)
}

// overHTTP1 is what came of a request that net/http's transport carried. Where the upstream asks for
// HTTP/1.1 it gets that from now on, and a read without content again.
func (p *Passthrough) overHTTP1(r *http.Request, plan *plan, content Bytes, resp *http.Response, err error) (*http.Response, error) {
	if !wantsHTTP1(err) {
		return resp, err
	}
	p.cfg.HTTP1.require(plan.addr)
	p.transport.CloseIdleConnections()
	if content != nil || plan.upload != nil || plan.again {
		return nil, err
	}
	plan.again = true
	return p.over(r, plan, nil)
}

// alone is a request after which net/http's transport keeps its connection for nobody, if it must not
// be another's.
func alone(r *http.Request, must bool) *http.Request {
	if must {
		r = r.WithContext(r.Context())
		r.Close = true
	}
	return r
}

func (p *Passthrough) other(key endpoint) (h2, other bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	h2, other = p.others[key]
	return h2, other
}

func (p *Passthrough) remember(key endpoint, h2 bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.others) >= mostOthers {
		clear(p.others)
	}
	p.others[key] = h2
}

func (p *Passthrough) forget(key endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.others, key)
}

// handed is a connection that net/http's transport shall use instead of dialling.
type handed struct {
	mu   sync.Mutex
	conn net.Conn
}

type handedKey struct{}

// take gives the connection once, then nil.
func (h *handed) take() net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.conn
	h.conn = nil
	return c
}

// handedIn takes the connection that a dial of ctx shall use; nil for none.
func handedIn(ctx context.Context) net.Conn {
	if made, ok := ctx.Value(handedKey{}).(*handed); ok {
		return made.take()
	}
	return nil
}

// drop closes the connection unless it was taken.
func (h *handed) drop() {
	if c := h.take(); c != nil {
		_ = c.Close()
	}
}

// CloseIdle closes the connections that carry no request.
func (p *Passthrough) CloseIdle() {
	p.pool.drain(false)
	p.transport.CloseIdleConnections()
}

// passError classifies an error of net/http's transport.
func passError(err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return causeError(ErrorTimeout)
	}
	return exchangeError(err)
}
