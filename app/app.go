package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin"
	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
	"keep-proxy/notify"
	"keep-proxy/proxy"
	"keep-proxy/reconcilers"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// expireEvery is how often runs are held against their time limits.
const expireEvery = time.Second

// Options are what New needs. Config is required and must come from config.Load.
type Options struct {
	Config config.Config
	Log    zerolog.Logger
	// SetLevel changes the log's level at a reload; nil keeps it.
	SetLevel func(zerolog.Level)
	// Clock defaults to the system's.
	Clock clock.Clock
	// Version is the program's, for the ledger and the metrics.
	Version string
	// Load reads the configuration again for a reload; nil reads the connector files
	// alone again.
	Load func() (config.Config, error)
	// Watch reloads when ConfigFile, which may be empty, or a connector file changes.
	Watch      bool
	ConfigFile string
	// Flags are those by which other commands find this program's ledger.
	Flags string
	// Trace sends spans to a collector, if the standard variables of OpenTelemetry name one.
	Trace bool
	// Note is called with what an operator should know at start. Examples are a count of recovered records and a
	// warning about a connector. Default: the log.
	Note func(string)
	// Restored is the moment of which the ledger is a copy that was put back, zero for
	// none; Operator says who did.
	Restored time.Time
	Operator string
	// Passing says whether another process that has the ledger will soon leave it, as a command that only looks does.
	// It is waited for up to 10 s then. Default: never.
	Passing func() bool

	// Trial, if not nil, has connectors tried against a fake.
	Trial *Trial

	// descriptors is highestDescriptors, but in tests.
	descriptors func() (clients, others int)
}

// Trial is what differs while connectors are tried against a fake. The fake has no rate that must be kept. Nothing is
// done by itself as time passes: who tries it calls Round.
type Trial struct {
	// Dial connects to the fake in place of every upstream. Neither egress nor another proxy is asked.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// App is the whole program. Make it with New.
type App struct {
	options  Options
	config   config.Config
	clock    clock.Clock
	store    *badgerstore.Store
	ledger   *ledger.Ledger
	rules    atomic.Pointer[rules.Set]
	reloads  reloads
	modes    modes
	versions *versions
	ca       *proxy.CA
	egress   *egress
	// dialBlind connects blind tunnels, one address after the other.
	dialBlind func(ctx context.Context, network, addr string) (net.Conn, error)
	// dialNamed is for what the operator named; nil for no other proxy.
	dialNamed   func(ctx context.Context, network, addr string) (net.Conn, error)
	sender      signing
	reads       *upstream.Passthrough
	reconciler  *reconcilers.Reconciler
	proxy       *proxy.Proxy
	admin       *admin.Server
	metrics     *metrics
	tail        *tail
	tracing     *tracing
	credentials *credentials
	token       string
	environ     *environment
	runDoors    *runListeners
	notifier    *notify.Notifier
	// notifying says that the notifier was started.
	notifying bool
	keeper    *keeper

	proxyListeners []net.Listener
	adminListener  net.Listener
	healthListener net.Listener

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	ended   chan error
	stop    sync.Once
}

// New opens everything but the listeners. An error has closed what was opened.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.descriptors == nil {
		o.descriptors = highestDescriptors
	}
	a := &App{options: o, config: o.Config, clock: o.Clock, ended: make(chan error, 4)}
	a.modes.app, a.reloads.connectors, a.reloads.log = a, o.Config.Connectors, o.Config.Log
	a.ctx, a.cancel = context.WithCancel(context.Background())
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.close()) //nolint:contextcheck // What was opened is closed, also when ctx has ended.
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	set, findings, err := LoadRules(a.config, true)
	if err != nil {
		return err
	}
	if set == nil {
		return fmt.Errorf("connectors: nothing was started\n%w", findings)
	}
	for _, f := range append(findings, SecretAdvice(a.config)...) {
		a.note(f.String())
	}
	a.rules.Store(set)
	a.warnOfMissingLedger()
	for _, step := range []func(context.Context) error{
		a.openLedger, a.openCA, a.openUpstream, a.openReconciler, a.openKeeper, a.openTracing, a.openProxy, a.openNotify, a.openAdmin,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// warnOfMissingLedger warns when the data folder was used before and holds no ledger. With neither ledger.id nor a
// high-water file elsewhere that is a first start. Whatever an earlier ledger knew would be sent again.
func (a *App) warnOfMissingLedger() {
	if a.knowsOfALedger() {
		return // Then it refuses to start, and says why: no new one is made.
	}
	_, ledgerErr := os.Stat(LedgerDir(a.config))
	_, tokenErr := os.Stat(a.config.Admin.TokenFile)
	if errors.Is(ledgerErr, fs.ErrNotExist) && tokenErr == nil {
		a.note("there is no ledger in " + a.config.Ledger.Dir + " although the folder was used before, so a new one is made. " +
			"If it was moved or is being restored, stop now: what it knew would be sent again. ledger.id or ledger.high_water_file make this refuse to start.")
	}
}

// knowsOfALedger reports whether anything beside the data folder says that there was a ledger.
func (a *App) knowsOfALedger() bool {
	if a.config.Ledger.ID != "" {
		return true
	}
	if a.config.Ledger.HighWaterFile == "" {
		return false
	}
	_, err := os.Stat(a.config.Ledger.HighWaterFile)
	return err == nil
}

func (a *App) note(text string) {
	if a.options.Note != nil {
		a.options.Note(text)
		return
	}
	a.options.Log.Warn().Msg(text)
}

// Round has the reconciler try what is due, and returns when that is done.
func (a *App) Round(ctx context.Context) { a.reconciler.RunOnce(ctx) }

func (a *App) now() ledger.Stamp { return ledger.Stamp(clock.Take(a.clock)) }

// NewID makes unguessable ids of 26 characters, a–z and 2–7 (130 bits).
func NewID() string { return strings.ToLower(rand.Text()) }

func (a *App) openLedger(ctx context.Context) error {
	c := a.config.Ledger
	storeConfig := StoreConfig(a.config, a.options.Version, a.options.Log, a.clock)
	storeConfig.Restored = !a.options.Restored.IsZero()
	var store *badgerstore.Store
	err := a.telling("opening the ledger", func() (err error) {
		store, err = a.openStore(ctx, storeConfig)
		return err
	})
	if err != nil {
		return fmt.Errorf("ledger in %s: %w", c.Dir, err)
	}
	a.store = store
	a.removeCopies()
	a.ledger = ledger.New(store, ledger.Config{
		RetryGrace: orNone(a.config.Runs.RetryGrace), RetryGraceMax: a.config.Runs.RetryGraceMax,
		RetryGraceTries: orNone(a.config.Runs.RetryGraceTries),
		Reconcile:       ledger.ReconcileLimits{MaxAttempts: a.config.Reconcile.MaxAttempts, MaxAge: a.config.Reconcile.MaxAge},
		Now:             a.now, Wall: a.clock.Now, NewID: NewID,
	})
	if err := a.markGaps(ctx); err != nil {
		return err
	}
	a.modes.open()
	a.versions = &versions{content: a.ledger.Connector, settings: RuleSettings(a.config.Connectors), defaults: RuleDefaults(a.config)}
	return nil
}

// orNone is a configured number, of which zero is none, for a package whose zero is the default.
func orNone[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// StoreConfig is how the configured ledger is opened.
func StoreConfig(c config.Config, version string, log zerolog.Logger, k clock.Clock) badgerstore.Config {
	return badgerstore.Config{
		Dir: LedgerDir(c), ID: c.Ledger.ID, HighWaterFile: c.Ledger.HighWaterFile, MinFree: int64(c.Ledger.MinFree),
		Version: version, Logger: log, NewID: NewID,
		Now: func() ledger.Stamp { return ledger.Stamp(clock.Take(k)) },
	}
}

// LedgerDir is the ledger's own folder inside the data folder, which holds the CA
// and the token as well.
func LedgerDir(c config.Config) string { return filepath.Join(c.Ledger.Dir, "ledger") }

func (a *App) openCA(context.Context) error {
	c := a.config.Proxy.CA
	ca, err := proxy.LoadCA(c.CertFile, c.KeyFile, a.clock.Now())
	if err != nil {
		return err
	}
	a.ca = ca
	a.runDoors = &runListeners{
		address: a.config.Proxy.RunListen, advertise: a.config.Proxy.Advertise,
		ledger: a.ledger, log: a.options.Log, open: make(map[string]net.Listener),
	}
	a.environ = &environment{runListeners: a.runDoors, pem: ca.PEM(), caFile: c.CertFile, bundle: c.BundleOut, address: a.ProxyAddr}
	return writeBundle(c.BundleOut, ca)
}

func (a *App) openUpstream(context.Context) error {
	trust, err := upstreamTrust(a.config.Proxy.UpstreamCA)
	if err != nil {
		return err
	}
	a.egress = newEgress(a.config.Proxy.Egress)
	through, err := newUpstreamProxy(a.egress, a.config.Proxy.UpstreamProxy, config.Sources{LookupEnv: os.LookupEnv, ReadFile: os.ReadFile}, trust)
	if err != nil {
		return err
	}
	dial, reads := a.egress.Dial, a.egress.DialRead
	a.dialBlind = dial
	if through != nil {
		dial, reads, a.dialBlind, a.dialNamed = through.Dial, through.DialRead, through.DialBlind, through.DialNamed
	}
	if trial := a.options.Trial; trial != nil {
		dial, reads, a.dialBlind = trial.Dial, trial.Dial, trial.Dial
	}
	c := upstream.Config{
		Roots: trust.Roots, Named: trust.Named,
		Dial: dial, HTTP1: &upstream.HTTP1{}, Clock: a.clock, Certificate: clientCertificates(a.config.Proxy.ClientCerts),
		DialTimeout: a.config.Proxy.Timeouts.Dial, ResponseTimeout: a.config.Proxy.Timeouts.Response,
	}
	a.sender.Sender = upstream.New(c)
	c.Dial = reads
	a.reads = upstream.NewPassthrough(c)
	return nil
}

func (a *App) openReconciler(context.Context) error {
	r := a.config.Reconcile
	settings := reconcilers.Settings{Inline: orNone(r.Inline), Base: r.Base, Factor: r.Factor, Cap: r.Cap, Jitter: r.Jitter, MaxAge: r.MaxAge}
	if a.options.Trial != nil {
		settings.Rate = math.Inf(1)
	}
	a.metrics, a.tail = newMetrics(a), newTail()
	a.credentials = newCredentials(a.config.Connectors, a.rules.Load(), a.clock)
	a.sender.credentials = a.credentials
	made, err := reconcilers.New(reconcilers.Config{
		Ledger: a.ledger, Sender: a.sender, Credentials: a.credentials, Clock: a.clock, NewID: NewID,
		Settings: settings, Pinned: a.versions.connector,
		Log: a.options.Log, Metrics: a.metrics, Halted: a.modes.halted,
	})
	a.reconciler = made
	return err
}

func (a *App) openProxy(context.Context) error {
	c := a.config.Proxy
	highest, others := a.options.descriptors()
	a.egress.bound.highest.Store(int64(others))
	a.noteDescriptors(highest)
	made, err := proxy.New(proxy.Config{
		Ledger: a.ledger, Rules: a.rules.Load, Pinned: a.versions.connector, Sender: a.sender, Reads: a.reads, Dial: a.dialBlind, DialTimeout: c.Timeouts.Dial,
		Inliner: a.reconciler, Turns: a.reconciler, Accounts: a.reconciler.Account, Credentials: a.credentials, CA: a.ca, Clock: a.clock, NewID: NewID,
		Log: a.options.Log, Metrics: a.metrics, Observer: a.observers(), Halted: a.modes.halt,
		Unmanaged: proxy.Unmanaged{Workflow: c.Unmanaged.Workflow, Item: c.Unmanaged.Item},
		Unmatched: proxy.Policy(c.Unmatched), Expected: c.Expected, ObserveBodies: c.ObserveBodies, Passthrough: c.Passthrough, Via: c.Via,
		BlockScope: ledger.BlockScope(c.BlockScope), Hold: c.Hold, Inline: a.config.Reconcile.Inline,
		MaxBody: int64(c.MaxBody), MaxHead: int(c.MaxHead),
		MaxConnections: c.MaxConnections, MaxDescriptor: highest, RequestTimeout: c.Timeouts.Request, IdleTimeout: c.Timeouts.Idle,
	})
	a.proxy = made
	a.runDoors.proxy, a.runDoors.egress = made, a.egress
	return err
}

func (a *App) openAdmin(context.Context) error {
	token, minted, err := admin.OperatorToken(a.config.Admin.TokenFile, rand.Reader)
	if err != nil {
		return fmt.Errorf("admin.token_file: %w", err)
	}
	if minted {
		a.options.Log.Info().Str("file", a.config.Admin.TokenFile).Msg("made the operator's token")
	}
	a.token = token
	cert, err := newAdminCertificate(a.config.Admin.TLS, a.options.Log)
	if err != nil {
		return err
	}
	c := admin.Config{
		Ledger: a.decisions(), OperatorToken: token, RunTTL: a.config.Runs.TTL, MaxBody: int64(a.config.Proxy.MaxBody),
		Environment: a.environ, Explainer: &explainer{app: a}, Rules: func() admin.Rules { return a.rules.Load() }, Now: a.now, Random: rand.Reader,
		Metrics: a.metrics.handler(), Ready: a.ready, Verify: a.verify, Requests: a.tail.follow, Backup: a.backup,
		Destinations: a.destinationsStanding, PlanUndo: a.reconciler.PlanUndo, Reload: a.Reload, LastReload: a.reloads.latest, Log: a.options.Log,
		Modes: &a.modes, Tokens: adminTokens(a.config.Admin.Tokens), Hosts: publicHosts(a.config.Admin.PublicURL),
	}
	if cert != nil {
		c.TLS, c.Named = cert.config(), cert.names
	}
	if a.admin, err = admin.New(c); err != nil {
		return err
	}
	a.metrics.open = newOpenMetrics(a) //nolint:contextcheck // It counts when it is asked, for as long as the program lives.
	a.metrics.registry.MustRegister(a.metrics.open)
	return nil
}

// deciding is the ledger as the admin API uses it. A person's decision wakes the runner. It would otherwise look at a
// record that is to be checked again only when something else is due.
type deciding struct {
	*ledger.Ledger
	kick func()
}

// decisions is the ledger that the admin API uses.
func (a *App) decisions() deciding { return deciding{Ledger: a.ledger, kick: a.reconciler.Kick} }

// RunObligation implements admin.Ledger.
func (d deciding) RunObligation(ctx context.Context, q ledger.RunObligation) (*ledger.Mutation, error) {
	m, err := d.Ledger.RunObligation(ctx, q)
	if err == nil {
		d.kick()
	}
	return m, err
}

// Resolve implements admin.Ledger.
func (d deciding) Resolve(ctx context.Context, r ledger.Resolve) (ledger.Moved, error) {
	finished, err := d.Ledger.Resolve(ctx, r)
	if err == nil {
		d.kick()
	}
	return finished, err
}
