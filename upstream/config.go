package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"time"

	"keep-proxy/internal/clock"
)

// Defaults of [Config], and fixed limits.
const (
	// DefaultDialTimeout bounds looking up, connecting and the TLS handshake.
	DefaultDialTimeout = 10 * time.Second
	// DefaultResponseTimeout bounds the wait for an answer's complete head.
	DefaultResponseTimeout = 100 * time.Second
	// DefaultTotal bounds a dispatch from its start to the end of its answer.
	DefaultTotal = 10 * time.Minute
	// DefaultFreshFor is how long an idle connection may still carry a mutation.
	DefaultFreshFor = 2 * time.Second
	// DefaultMaxHead bounds an answer's head, interim responses included, in bytes.
	DefaultMaxHead = 1 << 20
	// MaxInterim is how many 1xx responses of one answer are shown to
	// Request.Interim; the others are dropped. MaxHead bounds them all.
	MaxInterim = 8
)

// Config says how to reach upstreams. The zero value of each field is a safe
// default, so Config{} works.
type Config struct {
	// Roots verify upstream certificates. Nil means those of the system.
	Roots *x509.CertPool

	// Named are certificates that are trusted as an upstream's own; see [Trust].
	Named []*x509.Certificate

	// Dial connects to addr, which is "host:port". Nil means the system's
	// resolver and dialer. It must not apply TLS. An *Error that it returns is kept
	// as it is: one that goes through a proxy says so with ErrorProxy.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Egress is asked for every address before it is dialled, after DNS. An error refuses the address.
	// If no other address answers, nothing is sent and the error class is ErrorEgress. With a Dial of
	// one's own Egress gets the connection's remote address, before a byte is sent on it. Nil allows
	// every address. Its error text goes into the evidence.
	Egress func(netip.AddrPort) error

	// Certificate returns the certificate to show if the upstream at addr ("host:port") asks for one;
	// nil for none. An error ends the handshake. Nil means none for every upstream.
	Certificate func(addr string) (*tls.Certificate, error)

	// HTTP1 is what is known of upstreams that ask for HTTP/1.1; a Sender and a Passthrough may
	// share it. Nil means one of its own.
	HTTP1 *HTTP1

	// Clock tells the time. Nil means clock.System().
	Clock clock.Clock

	// DialTimeout bounds looking up, connecting and the TLS handshake together.
	// Zero means DefaultDialTimeout.
	DialTimeout time.Duration

	// ResponseTimeout bounds a Sender's wait for a complete head, from the moment when
	// the request was written whole. Zero means DefaultResponseTimeout.
	ResponseTimeout time.Duration

	// FreshFor is the age from which an idle connection isn't used for a dispatch: upstreams close
	// idle connections without notice. Zero means DefaultFreshFor; negative means that every dispatch
	// gets a new connection.
	FreshFor time.Duration

	// MaxHead bounds, in bytes, the head of an answer with all its interim
	// responses; beyond it the outcome is uncertain. Zero means DefaultMaxHead.
	MaxHead int64

	// LookEvery is how often a waiting dispatch looks at the boot-time clock. After the machine slept,
	// a deadline takes effect that late. Zero means 1s.
	LookEvery time.Duration
}

// withDefaults returns a copy in which every field is set, but for Roots, Dial
// and Egress.
func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.System()
	}
	setDefault(&c.DialTimeout, DefaultDialTimeout)
	setDefault(&c.ResponseTimeout, DefaultResponseTimeout)
	setDefault(&c.LookEvery, time.Second)
	if c.FreshFor == 0 {
		c.FreshFor = DefaultFreshFor
	}
	if c.HTTP1 == nil {
		c.HTTP1 = &HTTP1{}
	}
	if c.MaxHead <= 0 {
		c.MaxHead = DefaultMaxHead
	}
	return c
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}
