package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// Config is what a [Server] needs.
type Config struct {
	// Ledger is required.
	Ledger Ledger
	// OperatorToken is the operator's own token, in clear; required, and at
	// least 32 bytes long. See [OperatorToken] for the file it comes from.
	OperatorToken string
	// Tokens are further ones.
	Tokens []Token
	// Hosts are names, besides localhost and loopback addresses, that a Host
	// field may hold on TCP.
	Hosts []string
	// TLS is how listeners are served; nil for in clear, which is refused on listeners
	// that others can reach. With it a Host field may hold any address, and Named says
	// of which names the certificate is; nil for none.
	TLS   *tls.Config
	Named func(host string) bool
	// RunTTL ends a run that asks for no time limit of its own and sends no
	// heartbeat for so long (default 1 h).
	RunTTL time.Duration
	// MaxBody is the longest answer body that a person may give, in bytes, before
	// any encoding (default 10 MiB). Other requests are limited to 1 MiB.
	MaxBody int64

	// Environment is where scripts find the proxy; required.
	Environment Environment
	// Explainer answers in the words of the rules; required.
	Explainer Explainer
	// Now is required.
	Now func() ledger.Stamp
	// Random makes run tokens; required (crypto/rand.Reader).
	Random io.Reader
	// After is the clock that GET /v1/events polls by (default time.After).
	After func(time.Duration) <-chan time.Time

	// Metrics serves /metrics; nil answers 404.
	Metrics http.Handler
	// Ready says, beyond the ledger's health, why the program isn't ready to
	// serve; nil is always ready.
	Ready func() error
	// Verify checks the whole ledger and reports its progress, one call at a
	// time; nil is refused.
	Verify func(ctx context.Context, progress func(wire.Progress)) (wire.VerifyReport, error)
	// Backup writes a consistent copy of the ledger, a tar archive; nil is
	// refused.
	Backup func(ctx context.Context, w io.Writer) error
	// Reload reads the connectors again, all or nothing; nil is refused. LastReload
	// tells how the latest one ended, nil before any.
	Reload     func(ctx context.Context, actor string) (wire.Reloaded, error)
	LastReload func() *wire.LastReload
	// Modes pauses, drains and resumes; nil is refused.
	Modes Modes
	// PlanUndo is the obligation to take back an object that the mutation made, as its
	// rule says; nil is refused.
	PlanUndo func(ctx context.Context, m *ledger.Mutation, object string) (ledger.Owed, error)
	// Destinations tells how notifications stand; nil without any.
	Destinations func() []wire.Destination
	// Requests calls each for every request of the proxy that wants takes, until ctx
	// ends; begun first, when nothing is missed any more. Nil is refused.
	Requests func(ctx context.Context, wants func(*wire.Served) bool, begun func() error, each func(wire.Served) error) error
	// Log gets the causes of internal errors, which callers are not shown.
	Log zerolog.Logger
}

// Environment is where scripts find the proxy and its CA.
type Environment interface {
	// ProxyAddr is the proxy's host:port as sandboxes see it.
	ProxyAddr() string
	// OpenListener opens a listener on which requests count as those of the run with
	// this token digest, and returns its host:port as sandboxes see it. Asked again,
	// it returns the same one. It ends with the run.
	OpenListener(ctx context.Context, digest string) (string, error)
	// CloseListener closes it; without one it does nothing.
	CloseListener(digest string)
	// CAPEM is the certificate of the proxy's CA, PEM.
	CAPEM() []byte
	// CAFile is the path of a file with CAPEM alone, for clients that add it to
	// their roots.
	CAFile() string
	// BundleFile is the path of a file with the system's roots and CAPEM, for
	// clients whose roots it replaces.
	BundleFile() string
}

// Explainer answers in the words of the rules.
type Explainer interface {
	// ManualCheck says how a person finds out whether m happened.
	ManualCheck(ctx context.Context, m *ledger.Mutation) (ManualCheck, error)
	// Explain says what would happen to a request, which isn't sent. A request
	// that can't be explained answers an error made by [BadRequest].
	Explain(ctx context.Context, e wire.Explain) (wire.Explanation, error)
}

// ManualCheck is a rule's advice to a person, values filled in.
type ManualCheck struct {
	// Text says where to look and for what; empty if the rule gives none.
	Text string
	// CannotVerify says why the API can't be asked; empty if it can.
	CannotVerify string
}

// Defaults of Config.
const (
	defaultRunTTL  = time.Hour
	defaultMaxBody = 10 << 20
)

// minToken is the least length of the operator's token, in bytes.
const minToken = 32

// withDefaults fills in what may be absent.
func (c Config) withDefaults() Config {
	if c.RunTTL == 0 {
		c.RunTTL = defaultRunTTL
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.After == nil {
		c.After = time.After
	}
	return c
}

// validate reports every fault of c at once.
func (c Config) validate() error {
	var errs []error
	for name, missing := range map[string]bool{
		"Ledger":      c.Ledger == nil,
		"Environment": c.Environment == nil,
		"Explainer":   c.Explainer == nil,
		"Now":         c.Now == nil,
		"Random":      c.Random == nil,
	} {
		if missing {
			errs = append(errs, fmt.Errorf("admin: %s is missing", name))
		}
	}
	if len(c.OperatorToken) < minToken {
		errs = append(errs, fmt.Errorf("admin: the operator's token is shorter than %d bytes", minToken))
	}
	for _, t := range c.Tokens {
		errs = append(errs, t.validate())
	}
	return errors.Join(append(errs, c.distinctTokens())...)
}
