package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// Passthrough carries what is not a mutation: reads and ignored requests. It is an
// http.RoundTripper that streams both ways, over the same roots, dialer and egress
// check as [Sender], but over connections of its own.
//
// Unlike Sender it may send a request again where net/http does: use it only for
// requests whose repetition does no harm. It reads no proxy environment, does not
// decompress, and follows no redirect.
type Passthrough struct {
	transport *http.Transport
}

// idlePerHost is how many idle connections a Passthrough keeps to one upstream.
const idlePerHost = 256

// NewPassthrough returns a Passthrough. Of cfg it uses Roots, Dial, Egress,
// DialTimeout, ResponseTimeout and MaxHead.
func NewPassthrough(cfg Config) *Passthrough {
	cfg = cfg.withDefaults()
	d := newDialer(cfg)
	return &Passthrough{&http.Transport{
		DialContext:            d.passPlain,
		DialTLSContext:         d.passTLS,
		ResponseHeaderTimeout:  cfg.ResponseTimeout,
		MaxResponseHeaderBytes: cfg.MaxHead,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        90 * time.Second,
	}}
}

// passPlain dials within the dial timeout; its error is an *Error.
func (d *dialer) passPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.DialTimeout)
	defer cancel()
	c, err := d.dialTCP(ctx, network, addr)
	if err != nil {
		return nil, dialError(err)
	}
	return c, nil
}

// passTLS dials and shakes hands within the dial timeout; its error is an *Error.
// The connection is a *tls.Conn, so that net/http sees which protocol was
// negotiated.
func (d *dialer) passTLS(ctx context.Context, network, addr string) (net.Conn, error) {
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
	session := tls.Client(c, d.tlsFor(host))
	if err := session.HandshakeContext(ctx); err != nil {
		_ = c.Close()
		return nil, tlsError(err)
	}
	return session, nil
}

// RoundTrip sends the request. Its error is an *Error whose text holds no content;
// the error of a request whose context has ended is that of the context.
func (p *Passthrough) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.transport.RoundTrip(r)
	if err == nil {
		return resp, nil
	}
	if ctxErr := context.Cause(r.Context()); ctxErr != nil {
		return nil, ctxErr
	}
	return nil, passError(err)
}

// CloseIdle closes the connections that carry no request.
func (p *Passthrough) CloseIdle() { p.transport.CloseIdleConnections() }

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
