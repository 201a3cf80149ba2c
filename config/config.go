package config

import (
	"path/filepath"
	"strings"
	"time"
)

// Config is the whole configuration. A Config returned by [Load] is complete:
// every path in it is absolute and every default is filled in.
type Config struct {
	Proxy      Proxy      `key:"proxy"`
	Admin      Admin      `key:"admin"`
	Ledger     Ledger     `key:"ledger"`
	Connectors Connectors `key:"connectors"`
	Reconcile  Reconcile  `key:"reconcile"`
	Runs       Runs       `key:"runs"`
	Isolate    Isolate    `key:"isolate"`
	Notify     Notify     `key:"notify"`
	// VerifyOnReplay is what happens before a stored result is replayed. It is for operations that say nothing
	// themselves and can be asked about. Default off.
	VerifyOnReplay Verify `key:"verify_on_replay"`
	Log            Log    `key:"log"`

	// places say where each key was given.
	places map[string]Place
}

// Isolate configures keep-proxy run --isolate, whose command reaches nothing but the proxy.
type Isolate struct {
	// Reach lists exceptions, each host:port and no connector's host. What goes there isn't seen. Default none.
	Reach []string `key:"reach" read:"target"`
	// Required refuses a run without --isolate. Default false.
	Required bool `key:"required"`
}

// Notify says who is called when a person is asked, and when that has ended. Names are
// required, and differ in both lists.
type Notify struct {
	// Exec are commands that get each message as JSON on standard input. Default none.
	Exec []NotifyExec `key:"exec"`
	// Webhooks get each message by POST, signed as Standard Webhooks says. Default none.
	Webhooks []NotifyWebhook `key:"webhooks"`
	// StandingAfter is how long work stands still before that is told, while the API is asked in vain. 0 for never.
	// Default 2m.
	StandingAfter time.Duration `key:"standing_after"`
}

// NotifyExec is a command that is called.
type NotifyExec struct {
	Name string `key:"name"`
	// Command is the program and its arguments; no shell is between.
	Command []string `key:"command"`
}

// NotifyWebhook is an address that is called.
type NotifyWebhook struct {
	Name string `key:"name"`
	// URL is a secret, since its path often is one.
	URL Secret `key:"url"`
	// Secret is the signing key in the form whsec_ and base64; nil for unsigned messages.
	Secret *Secret `key:"secret"`
}

// Proxy configures the front door: what listens, what is let through, and the
// bounds of one request.
type Proxy struct {
	// Listen holds the addresses scripts connect to, each host:port or
	// unix:/absolute/path. Port 0 takes a free one. At least one. Default
	// 127.0.0.1:8080.
	Listen []string `key:"listen" read:"listen"`
	// Advertise is the host:port under which sandboxes reach the proxy; it goes
	// into proxy_url. Empty: the first TCP listener's own address.
	Advertise string `key:"advertise" read:"advertise"`
	// RunListen is where a run that asks for a listener of its own gets it: host:port.
	// Who reaches it acts for that run, without credentials. Default 127.0.0.1:0.
	RunListen string `key:"run_listen" read:"run_listen"`
	// CA is the certificate authority that signs leaf certificates.
	CA CA `key:"ca"`
	// Unmanaged is the scope of requests that carry no run token. Its zero
	// value refuses them.
	Unmanaged Unmanaged `key:"unmanaged"`
	// Unmatched is what happens to a mutation on a host that no connector covers. Default deny.
	Unmatched Unmatched `key:"unmatched.mutation"`
	// Expected lists hosts that are refused on purpose, such as a browser's telemetry. A run may be done all the same.
	// Each is host or *.suffix, and :port for one port only. Default none.
	Expected []string `key:"unmatched.expected" read:"host"`
	// ObserveBodies lists hosts of which observed requests are kept with their bodies, as Expected does. Default none.
	ObserveBodies []string `key:"observe.bodies" read:"host"`
	// BlockScope is what an unresolved mutation stops, unless its operation,
	// connector or run says otherwise. Default workflow.
	BlockScope BlockScope `key:"block_scope"`
	// Hold is how long requests of a stopped scope wait, after the inline try, before they are refused. At most 1h.
	// Default 0.
	Hold time.Duration `key:"hold"`
	// MaxBody bounds a mutation's request body and the answer that is kept. A larger request gets 413 and nothing is
	// sent; for a larger answer the result is too_large. At least 1 B, at most 1 GiB. Default 10 MiB.
	MaxBody Size `key:"max_body"`
	// MaxHead bounds the head of a request; beyond it 431. 1 KiB to 1 MiB.
	// Default 64 KiB.
	MaxHead Size `key:"max_head"`
	// MaxConnections bounds the client connections of all listeners together;
	// beyond it 503. 1 to 1,000,000. Default 20,000.
	MaxConnections int `key:"max_connections"`
	// Timeouts bounds the content of a request, and one dispatch.
	Timeouts Timeouts `key:"timeouts"`
	// Passthrough lists hosts that are tunnelled blind, each host or *.suffix,
	// and :port for one port only. Mutations there are not seen. A tunnel whose TLS
	// names another host is cut. Default none.
	Passthrough []string `key:"passthrough" read:"host"`
	// Egress is checked after DNS, for every connection to an upstream.
	Egress Egress `key:"egress"`
	// UpstreamCA is a PEM file of what is trusted for upstreams in addition to the system's roots: authorities, and
	// certificates of single servers. Empty: the system's roots alone.
	UpstreamCA string `key:"upstream_ca" read:"path"`
	// UpstreamProxy is what everything goes out through. Default none.
	UpstreamProxy UpstreamProxy `key:"upstream_proxy"`
	// ClientCerts are certificates for upstreams that ask for one. Default none.
	ClientCerts []ClientCert `key:"client_certs"`
	// Via adds a Via field (RFC 9110 §7.6.3) to what is forwarded, both ways. Default false.
	Via bool `key:"via"`
}

// CA names the files of the proxy's own certificate authority. CertFile and
// KeyFile are set together; by default both are in the data folder and are made
// at first start.
type CA struct {
	// CertFile is the CA certificate, PEM. Behind it may be those that vouch for it, up to
	// the root.
	CertFile string `key:"cert_file" read:"path"`
	// KeyFile is the CA's private key, PEM, readable by the owner alone.
	KeyFile string `key:"key_file" read:"path"`
	// BundleOut is where the system's roots and the CA are written together,
	// for clients whose CA variable replaces their roots. Java's is beside it.
	BundleOut string `key:"bundle_out" read:"path"`
}

// Unmanaged is the scope of requests without a run token. Either both fields
// are set or neither is; the zero value refuses such requests.
type Unmanaged struct {
	Workflow string `key:"workflow"`
	Item     string `key:"item"`
}

// Enabled reports whether requests without a run token are allowed.
func (u Unmanaged) Enabled() bool { return u.Workflow != "" && u.Item != "" }

// Timeouts bounds the content of a request, and one dispatch. Each is at least 1ms.
type Timeouts struct {
	// Request bounds the arrival of a mutation's content; of streamed content it bounds the wait for more. Beyond it
	// 408. At most 24h. Default 5m.
	Request time.Duration `key:"request"`
	// Dial bounds DNS, connecting and the TLS handshake together. At most
	// Total. Default 10s.
	Dial time.Duration `key:"dial"`
	// Response bounds the wait for the answer's head once the request is
	// written, but for reads. At most Total. Default 100s.
	Response time.Duration `key:"response"`
	// Idle bounds the wait for more of a read's answer, once its head is there. Default 5m.
	Idle time.Duration `key:"idle"`
	// Total bounds the whole dispatch, on the boot-time clock. At most 24h.
	// Default 10m.
	Total time.Duration `key:"total"`
}

// Egress decides which addresses the proxy may connect to. Its own listeners are refused whatever it says. An entry is
// an address prefix (10.0.0.0/8), an address, a host name or *.suffix. All but a prefix may end in :port. Deny wins
// over Allow, and Allow over DenyPrivate.
type Egress struct {
	// DenyPrivate refuses loopback, link-local, private and other addresses
	// that are not public. Default true.
	DenyPrivate bool `key:"deny_private"`
	// Allow lists exceptions to DenyPrivate. Default none.
	Allow []string `key:"allow" read:"egress"`
	// Deny lists what is always refused. Default none.
	Deny []string `key:"deny" read:"egress"`
}

// UpstreamProxy is a proxy through which everything goes out. The zero value is none.
type UpstreamProxy struct {
	// URL is http://host:port or https://host:port. Default none.
	URL string `key:"url" read:"proxy_url"`
	// User and Password are credentials for it (RFC 7617). Default none.
	User     string `key:"user"`
	Password Secret `key:"password" read:"secret_or_none"`
	// NoProxy lists what is connected to directly: address prefixes, addresses,
	// hosts or *.suffix, all but prefixes with an optional :port. Default none.
	NoProxy []string `key:"no_proxy" read:"egress"`
}

// ClientCert is what is shown to an upstream that asks for a certificate.
type ClientCert struct {
	// Host is a host, host:port or *.suffix.
	Host string `key:"host" read:"host"`
	// CertFile and KeyFile are PEM. They are read at each handshake.
	CertFile string `key:"cert_file" read:"path"`
	KeyFile  string `key:"key_file"  read:"path"`
}

// Admin configures the operator's API.
type Admin struct {
	// Listen is host:port or unix:/absolute/path; without TLS the host is a loopback
	// one. Default 127.0.0.1:8081.
	Listen string `key:"listen" read:"listen"`
	// HealthListen is where /healthz and /readyz alone are served, in clear and without
	// tokens: host:port or unix:/absolute/path. Empty: nowhere besides Listen.
	HealthListen string `key:"health_listen" read:"listen_or_none"`
	// PublicURL is how people reach the API. Links in notifications begin with it, and requests may name its host. It
	// is http or https, without a slash at its end. Empty: no links.
	PublicURL string `key:"public_url" read:"public_url"`
	// TLS, when set, is how Listen is served.
	TLS AdminTLS `key:"tls"`
	// TokenFile holds the operator's token, in clear, mode 0600, made at first
	// start when it is missing. By default it is in the data folder.
	TokenFile string `key:"token_file" read:"path"`
	// Tokens are further ones. Default none.
	Tokens []AdminToken `key:"tokens"`
}

// AdminToken is a bearer token beside the operator's own, known by its digest alone.
type AdminToken struct {
	// Name is who holds it; it is recorded with what its holder decides. At most 256
	// bytes, and not "operator", which is the holder of TokenFile.
	Name string `key:"name"`
	// Role is what the holder may do.
	Role TokenRole `key:"role"`
	// SHA256 is the token's digest, 64 hex digits in lower case.
	SHA256 string `key:"sha256" read:"digest"`
}

// AdminTLS names the files of the admin API's certificate, both or neither. They are read
// again when they change.
type AdminTLS struct {
	// CertFile is the certificate with its chain, PEM.
	CertFile string `key:"cert_file" read:"path"`
	// KeyFile is its private key, PEM.
	KeyFile string `key:"key_file" read:"path"`
}

// Enabled reports whether the admin API is served over TLS.
func (t AdminTLS) Enabled() bool { return t.CertFile != "" && t.KeyFile != "" }

// Ledger configures the durable record of mutations.
type Ledger struct {
	// Engine is badger, the embedded engine.
	Engine Engine `key:"engine"`
	// Dir is the data folder, mode 0700. By default
	// $XDG_STATE_HOME/keep-proxy, else ~/.local/state/keep-proxy.
	Dir string `key:"dir" read:"path"`
	// ID, when set, is the id the ledger must have: a missing or another ledger
	// then refuses to start. At most 128 letters, digits and .-_: characters.
	ID string `key:"id"`
	// HighWaterFile is kept outside Dir, so that a restored copy of Dir is
	// found out. Empty: inside the ledger, where a whole older copy is not. It takes 4 MiB, and
	// holds content of requests.
	HighWaterFile string `key:"high_water_file" read:"path"`
	// MinFree is the free space below which new mutations are refused before
	// they are claimed. At least 1 MiB. Default 256 MiB.
	MinFree Size `key:"min_free"`
	// Retention says when contents are dropped.
	Retention Retention `key:"retention"`
}

// Retention says how long what is resolved is kept whole.
type Retention struct {
	// Keep is how long a resolved mutation keeps the contents of its request and answer, after its last change. Zero is
	// for ever, else at least 24 h. Default 720 h.
	Keep time.Duration `key:"keep"`
	// After says what becomes of a request whose mutation was forgotten. Default refuse.
	After After `key:"after"`
}

// After is what becomes of a request whose mutation was forgotten.
type After string

const (
	// AfterRefuse keeps the key, so that the request is refused.
	AfterRefuse After = "refuse"
	// AfterForget removes the record too, after as long again: the request is sent.
	AfterForget After = "forget"
)

// Connectors says which rule files are loaded and how they are adjusted.
type Connectors struct {
	// Dirs are folders of connector files, read in this order. Default none.
	Dirs []string `key:"dirs" read:"path"`
	// Bundled selects bundled connectors. Default all.
	Bundled Bundled `key:"bundled"`
	// Settings adjusts connectors, at most one entry for each.
	Settings []ConnectorSettings `key:"settings"`
}

// ConnectorSettings adjusts one connector, bundled or not.
type ConnectorSettings struct {
	// Connector is the connector's name.
	Connector string `key:"connector"`
	// Hosts, when not empty, replaces the connector's own hosts.
	Hosts []string `key:"hosts" read:"connector_host"`
	// Parameters are values of the connector's own parameters, by name.
	Parameters map[string]Parameter `key:"parameters"`
	// Credentials are added by the proxy. Nil: none.
	Credentials *Credentials `key:"credentials"`
	// Overrides maps an operation's name to changed policies.
	Overrides map[string]Override `key:"overrides"`
}

// Override changes the policies of one operation. A zero field changes nothing. Below the defaults of [Reconcile],
// Settle, AbsentConfirmations and AbsentSpacing take effect only for a rule that declares bounds. Elsewhere the default
// holds.
type Override struct {
	// Settle is how long after a dispatch's end its absence is not believed.
	Settle time.Duration `key:"settle"`
	// AbsentConfirmations is how often absence must be seen, 1 to 100.
	AbsentConfirmations int `key:"absent_confirmations"`
	// AbsentSpacing is the least time between two such observations.
	AbsentSpacing time.Duration `key:"absent_spacing"`
	// OnAbsent is what a believed absence leads to.
	OnAbsent OnAbsent `key:"on_absent"`
	// Verify is what happens before a stored result is replayed.
	Verify Verify `key:"verify_on_replay"`
	// MaxDispatches bounds on_absent: redispatch; 1 to 10.
	MaxDispatches int `key:"max_dispatches"`
	// BlockScope is what an unresolved mutation of this operation stops.
	BlockScope BlockScope `key:"block_scope"`
	// Timeout is the deadline of one dispatch, at most Timeouts.Total.
	Timeout time.Duration `key:"timeout"`
	// MaxBody replaces Proxy.MaxBody, within the same bounds.
	MaxBody Size `key:"max_body"`
}

// Reconcile sets how unknown outcomes are asked about. Below their defaults, Settle, AbsentConfirmations and
// AbsentSpacing are accepted here, but work only for rules that declare bounds. Elsewhere the default holds.
type Reconcile struct {
	// Inline bounds the try made before the script is answered. 0 to 10m, 0
	// for none. Default 10s.
	Inline time.Duration `key:"inline"`
	// Base is the wait before the runner's first try. Default 10s.
	Base time.Duration `key:"base"`
	// Factor multiplies the wait after each try. 1 to 10. Default 2.
	Factor float64 `key:"factor"`
	// Cap bounds the wait. At least Base. Default 10m.
	Cap time.Duration `key:"cap"`
	// Jitter spreads each wait by this share of it, both ways. 0 to 1. Default
	// 0.2.
	Jitter float64 `key:"jitter"`
	// MaxAttempts is how many tries after settle is over end the work. 1 to
	// 1000. Default 8.
	MaxAttempts int `key:"max_attempts"`
	// MaxAge is the running time that ends the work. At least 1ms. Of rules for which it is over before their
	// settle + (absent_confirmations-1) × absent_spacing no absence is believed. Default 24h.
	MaxAge time.Duration `key:"max_age"`
	// Settle is how long after a dispatch's end its absence is not believed.
	// 1ms to 8760h. Default 5m.
	Settle time.Duration `key:"settle"`
	// AbsentConfirmations is how often absence must be seen. 1 to 100. Default
	// 2.
	AbsentConfirmations int `key:"absent_confirmations"`
	// AbsentSpacing is the least time between two such observations. 1ms to
	// 8760h. Default 10s.
	AbsentSpacing time.Duration `key:"absent_spacing"`
}

// Runs sets the defaults of managed runs.
type Runs struct {
	// TTL ends a run that sends no heartbeat for so long. 1s to 8760h. Default
	// 1h.
	TTL time.Duration `key:"ttl"`
	// RetryGrace is how long a failing run may repeat its failed mutation. 0 to
	// 1h, 0 for not at all. Default 60s.
	RetryGrace time.Duration `key:"retry_grace"`
	// RetryGraceMax bounds RetryGrace together with what an answer asks to wait. 1s to 24h. Default 10m.
	RetryGraceMax time.Duration `key:"retry_grace_max"`
	// RetryGraceTries is how often it may. 0 to 1000. Default 5.
	RetryGraceTries int `key:"retry_grace_tries"`
}

// Log configures the program's own log, on standard error.
type Log struct {
	// Level is the least level written. Default info.
	Level LogLevel `key:"level"`
	// Format is console, json, or auto: console on a terminal, json off it. Default auto.
	Format LogFormat `key:"format"`
}

// Default returns the configuration that an empty file stands for. Paths that
// default into the data folder are empty in it; [Load] fills them in.
func Default() Config {
	return Config{
		Proxy: Proxy{
			Listen:         []string{"127.0.0.1:8080"},
			RunListen:      "127.0.0.1:0",
			Unmatched:      UnmatchedDeny,
			BlockScope:     BlockWorkflow,
			MaxBody:        10 * MiB,
			MaxHead:        64 * KiB,
			MaxConnections: 20_000,
			Timeouts: Timeouts{
				Request:  5 * time.Minute,
				Dial:     10 * time.Second,
				Response: 100 * time.Second,
				Idle:     5 * time.Minute,
				Total:    10 * time.Minute,
			},
			Egress: Egress{DenyPrivate: true},
		},
		Admin:      Admin{Listen: "127.0.0.1:8081"},
		Ledger:     Ledger{Engine: EngineBadger, MinFree: 256 * MiB, Retention: Retention{Keep: 720 * time.Hour, After: AfterRefuse}},
		Connectors: Connectors{Bundled: Bundled{All: true}},
		Reconcile: Reconcile{
			Inline:              10 * time.Second,
			Base:                10 * time.Second,
			Factor:              2,
			Cap:                 10 * time.Minute,
			Jitter:              0.2,
			MaxAttempts:         8,
			MaxAge:              24 * time.Hour,
			Settle:              5 * time.Minute,
			AbsentConfirmations: 2,
			AbsentSpacing:       10 * time.Second,
		},
		Runs:           Runs{TTL: time.Hour, RetryGrace: time.Minute, RetryGraceMax: 10 * time.Minute, RetryGraceTries: 5},
		VerifyOnReplay: VerifyOff,
		Notify:         Notify{StandingAfter: 2 * time.Minute},
		Log:            Log{Level: LevelInfo, Format: FormatAuto},
	}
}

// Names of the files that are kept in the data folder unless the configuration
// says otherwise.
const (
	CACertFile   = "ca-cert.pem"
	CAKeyFile    = "ca-key.pem"
	CABundleFile = "ca-bundle.pem"
	TokenFile    = "operator.token"
)

// locate settles the data folder: ledger.dir, else $XDG_STATE_HOME/keep-proxy,
// else ~/.local/state/keep-proxy.
func locate(r *report, c *Config, environ []string) {
	if c.Ledger.Dir != "" {
		return
	}
	dir, ok := defaultDataDir(environ)
	if !ok {
		r.rejected(&fault{
			"there is no default folder, as neither XDG_STATE_HOME nor HOME is an absolute path",
			"set ledger.dir, or name a folder with --data-dir",
		}, "ledger.dir")
	}
	c.Ledger.Dir = dir
}

// defaultDataDir follows the XDG base directory specification, by which a
// relative path in a variable counts as unset.
func defaultDataDir(environ []string) (string, bool) {
	vars := map[string]string{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		vars[name] = value
	}
	if state := vars["XDG_STATE_HOME"]; filepath.IsAbs(state) {
		return filepath.Join(state, "keep-proxy"), true
	}
	if home := vars["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "keep-proxy"), true
	}
	return "", false
}

// complete fills in the paths that default into the data folder.
func complete(c *Config) {
	fill := func(path *string, name string) {
		if *path == "" {
			*path = filepath.Join(c.Ledger.Dir, name)
		}
	}
	fill(&c.Proxy.CA.CertFile, CACertFile)
	fill(&c.Proxy.CA.KeyFile, CAKeyFile)
	fill(&c.Proxy.CA.BundleOut, CABundleFile)
	fill(&c.Admin.TokenFile, TokenFile)
}
