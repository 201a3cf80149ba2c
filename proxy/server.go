package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/dispatch"
	"keep-proxy/internal/background"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/proxy/h1"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// Limits of client connections.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// Inliner tries once, right after a dispatch with an unknown end, to find out
// what happened. It returns the record as it is afterwards.
type Inliner interface {
	Inline(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error)
	// NextTry says when the runner shall look at a record whose outcome stayed
	// unknown.
	NextTry(m *ledger.Mutation) time.Time
	// Verify asks whether the effect of an applied mutation is still there.
	Verify(ctx context.Context, m *ledger.Mutation) ledger.Verified
	// Kick wakes the runner.
	Kick()
}

// Credentials adds what the operator configured for a connector.
type Credentials interface {
	// Always returns the header field that is set on each of the connector's requests to this host.
	// Without one ok is false. It is an error where the connector doesn't cover the host any more.
	Always(connector, scheme, authority string) (name, value string, ok bool, err error)
}

// Turns admits dispatches at the rate of a connector's rule.
type Turns interface {
	// Turn blocks until one dispatch is admitted, or ctx ends, which is an error.
	Turn(ctx context.Context, c *rules.Connector) error
}

// Policy is what happens to a mutation-like request that no rule declares. The
// zero value denies.
type Policy string

const (
	// PolicyDeny refuses it.
	PolicyDeny Policy = "deny"
	// PolicyObserve passes it, notes it, and says so in the answer.
	PolicyObserve Policy = "observe"
	// PolicyAllow passes it.
	PolicyAllow Policy = "allow"
)

// Unmanaged is the scope of requests without credentials. Unless both are set
// there is none, and such requests are refused.
type Unmanaged struct{ Workflow, Item string }

// Config is what a Proxy needs. All interfaces and functions are required.
type Config struct {
	Ledger *ledger.Ledger
	// Rules returns the rules in force.
	Rules func() *rules.Set
	// Pinned gives the stored versions of connectors.
	Pinned Pinned
	Sender dispatch.Sender
	// Reads sends what is streamed: reads and ignored requests.
	Reads http.RoundTripper
	// Dial connects blind tunnels; it checks egress.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds that. Default [upstream.DefaultDialTimeout].
	DialTimeout time.Duration
	Inliner     Inliner
	Turns       Turns
	Credentials Credentials
	// Accounts asks APIs whose data a request changes. Nil: such requests are refused.
	Accounts AccountOf
	CA       *CA
	Clock    clock.Clock
	NewID    func() string
	Log      zerolog.Logger
	Metrics  Metrics
	// Halted says what an operator keeps back now; it is called on the way of each
	// request. Nil for nothing.
	Halted func() Halt
	// Observer follows requests; nil for nobody.
	Observer Observer

	Unmanaged Unmanaged
	// Unmatched is the policy for mutation-like requests to hosts of no connector.
	Unmatched Policy
	// Expected lists hosts of no connector that are refused on purpose, as in Passthrough.
	Expected []string
	// ObserveBodies lists hosts of which observed requests are noted with their bodies, as in Passthrough.
	ObserveBodies []string
	// Passthrough lists hosts that are tunnelled blind: host, host:port, *.suffix or *.suffix:port.
	Passthrough []string
	// BlockScope applies where neither the rule nor the run says one. Default
	// ledger.BlockWorkflow.
	BlockScope ledger.BlockScope
	// Hold is how long requests of a stopped scope wait after the inline try.
	Hold time.Duration
	// Inline bounds the inline try. Default 10 s.
	Inline time.Duration
	// MaxBody bounds, in bytes, a body that must be read before it is known which rule
	// applies. Default 10 MiB.
	MaxBody int64
	// MaxHead bounds a request's head, in bytes. Default 64 KiB.
	MaxHead int
	// MaxConnections bounds the client connections. Default 20,000.
	MaxConnections int
	// MaxDescriptor is the highest descriptor that a client's connection may have. It leaves some to
	// the ledger and to upstreams. 0 for any.
	MaxDescriptor int
	// IdleTimeout bounds the wait for more of an answer that is streamed. Default 5 min.
	IdleTimeout time.Duration
	// RequestTimeout bounds the arrival of a mutation's content, and the wait for more
	// of streamed content. Default 5 min.
	RequestTimeout time.Duration
	// Via adds a Via field to what is forwarded, both ways.
	Via bool
	// Help is the address of the page, for refusals. Optional.
	Help string

	// lookEvery is as the constant of that name, but in tests.
	lookEvery time.Duration
}

// Proxy is the front door. Make it with New, start it with Serve, end it with
// Shutdown.
type Proxy struct {
	config  Config
	ledger  *ledger.Ledger
	goproxy http.Handler
	leaves  *leaves
	tls     *tls.Config
	// outer serves what arrives at the listeners, loop HTTP/1 inside tunnels, and inner HTTP/2
	// there.
	outer      *h1.Server
	loop       *h1.Server
	inner      *http.Server
	tunnels    *handover
	calls      *calls
	following  following
	open       *open
	stops      *stops
	inline     *waits
	limit      *connectionLimit
	contents   *dispatch.Contents
	dispatcher *dispatch.Dispatcher
	recorder   *dispatch.Recorder

	draining atomic.Bool
	// admitting ends when shutting down begins.
	admitting context.Context
	drain     context.CancelFunc
	// unrecorded stops what the ledger couldn't be told to stop.
	unrecorded *ledger.Unrecorded
	noted      noted
	under      under
	// working counts the mutations that are claimed, sent and recorded. In HTTP/2 no server counts
	// them once their client has gone.
	working background.Group
	// background counts work that outlives its request: outcomes that are still
	// to be recorded.
	background background.Group
	// switched are the exchanges that changed protocols: no server counts them.
	switched background.Group
	ctx      context.Context
	cancel   context.CancelFunc
}

// New makes a Proxy.
func New(c Config) (*Proxy, error) {
	if !c.complete() {
		return nil, errors.New("proxy: incomplete configuration")
	}
	if c.Metrics == nil {
		c.Metrics = noMetrics{}
	}
	c.BlockScope = or(c.BlockScope, ledger.BlockWorkflow)
	c.Inline = or(c.Inline, 10*time.Second)
	c.MaxBody = or(c.MaxBody, 10<<20)
	c.MaxHead = or(c.MaxHead, 64<<10)
	c.MaxConnections = or(c.MaxConnections, 20_000)
	c.RequestTimeout = or(c.RequestTimeout, 5*time.Minute)
	c.IdleTimeout = or(c.IdleTimeout, 5*time.Minute)
	c.DialTimeout = or(c.DialTimeout, upstream.DefaultDialTimeout)
	c.lookEvery = or(c.lookEvery, lookEvery)
	made, err := newLeaves(c.CA, c.Clock.Now)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	stops := newStops()
	p := &Proxy{
		config: c, ledger: c.Ledger, leaves: made, stops: stops,
		tunnels: newHandover(), calls: newCalls(), open: newOpen(), inline: newWaits(stops.tell),
		unrecorded: c.Ledger.Unrecorded(), limit: newConnectionLimit(c.MaxConnections, c.MaxDescriptor),
		contents: dispatch.NewContents(c.Ledger, c.Log),
	}
	p.unrecorded.Watch(stops.tell)
	p.limit.over = p.overloaded
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.admitting, p.drain = context.WithCancel(p.ctx)
	p.dispatcher = &dispatch.Dispatcher{Sender: c.Sender, Bodies: c.Ledger, Contents: p.contents, Clock: c.Clock, Log: c.Log}
	p.recorder = &dispatch.Recorder{Ledger: c.Ledger, Count: c.Metrics.Unrecorded, Log: c.Log, Life: p.ctx, Background: &p.background}
	p.goproxy, p.tls = p.assemble(), p.tlsConfig()
	p.outer = p.newHTTP1(p.serveOuter, func(c net.Conn) context.Context { return withOwner(withClient(context.Background(), c), c) })
	p.loop = p.newHTTP1(p.serveInner, func(c net.Conn) context.Context {
		return withClient(context.Background(), guardOf(c).tunnel)
	})
	p.inner = p.newHTTP2(http.HandlerFunc(p.serveInner))
	p.inner.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		var t *tunnel
		if secure, ok := c.(*tls.Conn); ok {
			t, _ = secure.NetConn().(*tunnel)
		}
		return withClient(ctx, t)
	}
	return p, nil
}

// complete reports whether everything that has no default is there.
func (c *Config) complete() bool {
	return c.Ledger != nil && c.Rules != nil && c.Pinned != nil && c.Sender != nil && c.Reads != nil && c.Dial != nil &&
		c.Inliner != nil && c.Turns != nil && c.CA != nil && c.Clock != nil && c.NewID != nil && c.Credentials != nil
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func (p *Proxy) newHTTP1(h http.HandlerFunc, values func(net.Conn) context.Context) *h1.Server {
	return &h1.Server{
		Handler: h, HeadTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHead: p.config.MaxHead,
		ErrorLog: quietLog(p.config.Log), ConnState: follow, ConnContext: values, Refuse: refuseHead,
	}
}

func (p *Proxy) newHTTP2(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: p.config.MaxHead, Protocols: protocols, ErrorLog: quietLog(p.config.Log),
		ConnState: p.followHTTP2, DisableGeneralOptionsHandler: true,
	}
}

// Serve answers on the listeners until Shutdown; then it returns nil.
func (p *Proxy) Serve(listeners ...net.Listener) error {
	go p.watch(p.ledger.Watch(p.stops.changed))
	ended := make(chan error, len(listeners)+1)
	go func() { ended <- p.inner.Serve(p.tunnels) }()
	for _, l := range listeners {
		go func() { ended <- p.outer.ServeListener(guardedListener{p.limit.wrap(l), p}) }()
	}
	var problems []error
	for range len(listeners) + 1 {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			problems = append(problems, err)
			p.Close()
		}
	}
	return errors.Join(problems...)
}

// Shutdown refuses new requests, lets dispatches end and their outcomes be
// recorded, and closes what is left when ctx ends.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.draining.Store(true)
	p.drain()
	err := p.outer.Shutdown(ctx)
	tunnelled := make(chan error, 1)
	go func() { tunnelled <- p.loop.Shutdown(ctx) }()
	err = errors.Join(err, p.inner.Shutdown(ctx), <-tunnelled)
	recorded := make(chan struct{})
	go func() {
		p.working.Wait() // What they can't record is in the background after that.
		p.background.Wait()
		close(recorded)
	}()
	select {
	case <-recorded:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	p.Close()
	p.switched.Wait()
	return err
}

// Close ends everything at once. Dispatches under way are left to recovery.
func (p *Proxy) Close() {
	p.draining.Store(true)
	p.cancel()
	_ = p.tunnels.Close()
	_, _ = p.outer.Close(), p.inner.Close()
	_ = p.loop.Close()
	// Blind tunnels, and what changed protocols, belong to no server any more.
	p.open.sweep(func(_ caller, all streams) { all.cut() })
}
