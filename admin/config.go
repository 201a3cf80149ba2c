package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/verdict"
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
	// TLS is how listeners are served; nil for in clear, which is refused on listeners that others can
	// reach. With it a Host field may hold any address. Named says of which names the certificate is
	// (default of none).
	TLS   *tls.Config
	Named func(host string) bool
	// RunTTL ends a run that sends no heartbeat for so long (default 1 h). A run may ask for a time
	// limit of its own.
	RunTTL time.Duration
	// MaxBody is the longest answer body that a person may give, in bytes, before
	// any encoding (default 10 MiB). Other requests are limited to 1 MiB.
	MaxBody int64
	// After is the clock that GET /v1/events polls by (default time.After).
	After func(time.Duration) <-chan time.Time
	// Log gets the causes of internal errors, which callers are not shown.
	Log zerolog.Logger

	// All of the following is required.

	// Environment is where scripts find the proxy.
	Environment Environment
	// Explainer answers in the words of the rules.
	Explainer Explainer
	// Rules are those in force.
	Rules func() Rules
	Now   func() ledger.Stamp
	// Random makes run tokens (crypto/rand.Reader).
	Random io.Reader
	// Metrics serves /metrics.
	Metrics http.Handler
	// Ready says, beyond the ledger's health, why the program isn't ready to serve.
	Ready func() error
	// Verify checks the whole ledger and reports its progress, one call at a time.
	Verify func(ctx context.Context, progress func(wire.Progress)) (wire.VerifyReport, error)
	// Backup writes a consistent copy of the ledger, a tar archive.
	Backup func(ctx context.Context, w io.Writer) error
	// Reload reads the connectors again, all or nothing. LastReload tells how the latest one
	// ended, nil before any.
	Reload     func(ctx context.Context, actor string) (wire.Reloaded, error)
	LastReload func() *wire.LastReload
	// Modes pauses, drains and resumes.
	Modes Modes
	// PlanUndo is the obligation to take back an object that the mutation made, as its
	// rule says.
	PlanUndo func(ctx context.Context, m *ledger.Mutation, object string) (ledger.Owed, error)
	// Destinations tells how notifications stand; nil without any.
	Destinations func() []wire.Destination
	// Requests calls each for every request of the proxy that wants takes, until ctx ends. It calls
	// begun first, when nothing is missed any more.
	Requests func(ctx context.Context, wants func(*wire.Served) bool, begun func() error, each func(wire.Served) error) error
}

// Ledger is what the API needs of a ledger; *[ledger.Ledger] has it all.
type Ledger interface {
	// ID says which ledger this is, Healthy whether it takes records.
	ID() string
	Healthy() error

	OpenRun(ctx context.Context, r ledger.OpenRun) (*ledger.Run, error)
	Heartbeat(ctx context.Context, id string, ttl time.Duration) (*ledger.Run, error)
	FinishRun(ctx context.Context, id, outcome string, keepOpen bool) (*ledger.Run, error)
	EndRun(ctx context.Context, id string, class verdict.Class, reason, actor string) (*ledger.Run, error)

	DecideItem(ctx context.Context, d ledger.DecideItem) (*ledger.Item, error)
	Resolve(ctx context.Context, r ledger.Resolve) (ledger.Moved, error)
	Actions(m *ledger.Mutation, now ledger.Stamp) []ledger.Action
	RunObligation(ctx context.Context, q ledger.RunObligation) (*ledger.Mutation, error)
	ConfirmGaps(ctx context.Context, q ledger.ConfirmGap) (items int, err error)

	Mutations(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Mutation], error)
	Runs(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Run], error)
	Items(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Item], error)
	// MutationByID takes what people type.
	MutationByID(ctx context.Context, id string) (*ledger.Mutation, error)
	View(ctx context.Context, fn func(ledger.View) error) error
	Events(ctx context.Context, mutation string, after uint64, limit int) ([]ledger.Event, error)

	WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error)
	Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error)
}

// Environment is where scripts find the proxy and its CA.
type Environment interface {
	// ProxyAddr is the proxy's host:port as sandboxes see it.
	ProxyAddr() string
	// OpenListener opens a listener of the run with this token digest, whose requests count as the
	// run's. It returns its host:port as sandboxes see it. Asked again, it returns the same one. It
	// ends with the run.
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

// Rules say which hosts are the connectors'; *rules.Set does.
type Rules interface {
	// ConnectorHost reports whether a connector declares the host:port, under http or https.
	ConnectorHost(authority string) bool
	// Ports are the TCP ports of all connectors' hosts, in order.
	Ports() []uint16
}

// ManualCheck is a rule's advice to a person, values filled in.
type ManualCheck struct {
	// Text says where to look and for what; empty if the rule gives none.
	Text string
	// CannotVerify says why the API can't be asked; empty if it can.
	CannotVerify string
}

// minToken is the least length of the operator's token, in bytes.
const minToken = 32

// withDefaults fills in what may be absent.
func (c Config) withDefaults() Config {
	c.RunTTL, c.MaxBody = cmp.Or(c.RunTTL, time.Hour), cmp.Or(c.MaxBody, 10<<20)
	if c.Named == nil {
		c.Named = func(string) bool { return false }
	}
	if c.After == nil {
		c.After = time.After
	}
	return c
}

// validate reports every fault of c at once.
func (c Config) validate() error {
	var errs []error
	for i, v := range reflect.ValueOf(c).Fields() {
		if (v.Kind() == reflect.Func || v.Kind() == reflect.Interface) && v.IsNil() {
			errs = append(errs, fmt.Errorf("admin: %s is missing", i.Name))
		}
	}
	if len(c.OperatorToken) < minToken {
		errs = append(errs, fmt.Errorf("admin: the operator's token is shorter than %d bytes", minToken))
	}
	return errors.Join(errs...)
}
