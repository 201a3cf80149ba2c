package reconcilers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/dispatch"
	"keep-proxy/internal/background"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// Credentials gives what the operator configured for reconciling.
type Credentials interface {
	// For returns the header field that authorises requests to a connector; an
	// empty header means that none is needed. It is called anew for each request,
	// since tokens don't live through the night. Its error must not hold the value; it is
	// [ErrElsewhere] where the credential isn't for that host.
	For(connector, scheme, authority string) (header, value string, err error)
}

// ErrElsewhere is of a credential that is for other hosts than the one that was to get it.
var ErrElsewhere = errors.New("the configured credential is for other hosts")

// Config is what a Reconciler needs. Ledger, Sender, Credentials, Pinned, Clock and NewID
// are required.
type Config struct {
	Ledger      Ledger
	Sender      dispatch.Sender
	Credentials Credentials
	Clock       clock.Clock
	// NewID makes dispatch ids; they must be unguessable.
	NewID func() string
	// Settings bound the work; see there for the defaults.
	Settings Settings
	// Pinned gives a stored version of a connector by the hash of its file, under the user's settings
	// of now. It is asked at each try, so it should remember what it loaded. Its error is shown to
	// people, and must not hold a value of the file.
	Pinned func(ctx context.Context, hash string) (*rules.Connector, error)
	// Random returns numbers in [0, 1) that spread the waits. Default
	// math/rand/v2.
	Random func() float64
	// Halted says that an operator keeps all sending back: the runner rests, and no inline
	// try is made. Nil for never.
	Halted func() bool
	Log    zerolog.Logger
	// Metrics may be nil.
	Metrics Metrics
}

// Reconciler finds out what became of mutations whose outcome is unknown. Make it
// with [New]; its methods may be called concurrently.
type Reconciler struct {
	ledger      Ledger
	wire        wire
	credentials Credentials
	clock       clock.Clock
	newID       func() string
	random      func() float64
	settings    Settings
	pinned      *pinned
	limits      *limits
	busy        *busy
	strategies  map[rules.StrategyKind]strategy
	accounts    accounts
	log         zerolog.Logger
	metrics     Metrics
	halted      func() bool
	unrecorded  *ledger.Unrecorded
	dispatcher  *dispatch.Dispatcher
	recorder    *dispatch.Recorder
	// working counts the runner's tries that are under way.
	working atomic.Int64

	kick chan struct{}
	// life ends what outlasts its caller: outcomes that are still to be recorded.
	life       context.Context
	end        context.CancelFunc
	background background.Group
}

// New returns a Reconciler. Close it before the ledger.
func New(c Config) (*Reconciler, error) {
	if c.Ledger == nil || c.Sender == nil || c.Credentials == nil || c.Pinned == nil || c.Clock == nil || c.NewID == nil {
		return nil, errors.New("reconcilers: incomplete configuration")
	}
	if c.Metrics == nil {
		c.Metrics = noMetrics{}
	}
	if c.Halted == nil {
		c.Halted = func() bool { return false }
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	s := c.Settings.filled()
	r := &Reconciler{
		ledger: c.Ledger, wire: wire{sender: c.Sender, clock: c.Clock}, credentials: c.Credentials,
		clock: c.Clock, newID: c.NewID, random: c.Random, settings: s,
		pinned: &pinned{load: c.Pinned}, limits: newLimits(s.Rate),
		accounts: accounts{clock: c.Clock},
		busy:     newBusy(s.Concurrency, s.PerConnector),
		log:      c.Log, metrics: c.Metrics, halted: c.Halted, unrecorded: c.Ledger.Unrecorded(), kick: make(chan struct{}, 1),
	}
	r.strategies = map[rules.StrategyKind]strategy{
		rules.StrategyResend: resend{r}, rules.StrategyProbe: probe{r}, rules.StrategyExec: program{r}, rules.StrategyNone: none{},
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.dispatcher = &dispatch.Dispatcher{
		Sender: c.Sender, Bodies: c.Ledger, Contents: dispatch.NewContents(c.Ledger, c.Log), Clock: c.Clock, Log: c.Log,
	}
	r.recorder = &dispatch.Recorder{Ledger: c.Ledger, Count: c.Metrics.Unrecorded, Log: c.Log, Life: r.life, Background: &r.background}
	return r, nil
}

// Close gives up on outcomes that the ledger did not take and waits for those offers
// to end. Call it after Run has returned; an Inline that still runs then offers an
// outcome once and no more. What was not recorded is found by the next process's
// recovery.
func (r *Reconciler) Close() {
	r.end()
	r.background.Wait()
}

// Kick wakes the runner: something may be due earlier than it knows. It never
// blocks.
func (r *Reconciler) Kick() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// Working counts the runner's tries that are under way. Once Config.Halted is true and this is 0,
// none will begin.
func (r *Reconciler) Working() int { return int(r.working.Load()) }

// Turn blocks until the rate of a connector's rule admits a dispatch. Without a rate it returns at
// once. If ctx ends first it returns ctx's error. Dispatches, resends and probes have one rate
// together.
func (r *Reconciler) Turn(ctx context.Context, c *rules.Connector) error {
	return r.limits.turn(ctx, c)
}

// NextTry is when the runner shall look at a record next. For a record that becomes unknown now it
// is after the first wait.
func (r *Reconciler) NextTry(m *ledger.Mutation) time.Time { return r.after(m, r.now(), sighting{}) }

func (r *Reconciler) now() ledger.Stamp { return ledger.Stamp(clock.Take(r.clock)) }

// after is when the next try of m is due, given what one that began at has seen.
func (r *Reconciler) after(m *ledger.Mutation, at ledger.Stamp, s sighting) time.Time {
	now := r.now()
	if m.Watching {
		return r.settings.nextLook(m, now.Wall, s.notBefore)
	}
	process := r.ledger.Process()
	o := outlook{now: now, elapsed: elapsed(m, now, process), notBefore: s.notBefore, random: r.random()}
	if m.RetryAfter.After(o.notBefore) {
		o.notBefore = m.RetryAfter
	}
	o.settle, o.settling = untilSettled(m, now, process)
	over, begun := untilSettled(m, at, process)
	if s.seen == ledger.SeenAbsent && s.proof && !m.Committed && begun && over <= 0 {
		o.confirm, o.confirming = untilConfirmed(m, at, now), true
	}
	return r.settings.next(o)
}

// Inline makes the one try after an uncertain dispatch, while m is still in flight. It returns the
// record as it is afterwards. That is applied if the effect was found or a resend succeeded. Else
// it is still in flight, and the proxy parks it. An absence hardly ever counts here. Settle would
// have to be over, which takes small bounds in the rule and a rate that delays the asking.
//
// It takes at most Settings.Inline, plus the time to record. It does nothing unless m is in flight
// with its dispatch judged. It also does nothing if the API asked to wait, or while sending is kept
// back. With an error the record is as it was, as far as is known.
func (r *Reconciler) Inline(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
	waits := m.RetryAfter.After(r.clock.Now())
	if r.settings.Inline < 0 || waits || r.halted() || m.State != ledger.InFlight || !m.Unresolved() || !r.busy.claim(m.Key) {
		return m, nil
	}
	defer r.busy.free(m.Key)
	ctx, cancel := context.WithTimeout(ctx, r.settings.Inline)
	defer cancel()
	out := r.run(ctx, m, true)
	if out.err != nil {
		return m, fmt.Errorf("inline try at %s: %w", m.ID, out.err)
	}
	if out.moved.Mutation == nil {
		return m, nil
	}
	return out.moved.Mutation, nil
}

// Recover moves on what a lost process left in flight; nothing is sent by that alone. Call it
// before the listener opens and before Run: with an error nothing may be sent. The runner looks at
// these records first. Each of them stops its scope and is likely to be found.
func (r *Reconciler) Recover(ctx context.Context) (ledger.RecoverCounts, error) {
	due := r.clock.Now()
	counts, err := r.ledger.Recover(ctx, func(*ledger.Mutation) time.Time { return due })
	if err != nil {
		return counts, fmt.Errorf("recover what was in flight: %w", err)
	}
	if counts != (ledger.RecoverCounts{}) {
		r.log.Warn().Int(string(ledger.NeedsReconcile), counts.NeedsReconcile).
			Int(string(ledger.Indeterminate), counts.Indeterminate).Int(string(ledger.Applied), counts.Applied).
			Int(string(ledger.Failed), counts.Failed).
			Msg("recovered mutations that a lost process left in flight")
	}
	r.Kick()
	return counts, nil
}

// Instants at which losing the process must do no harm.
var (
	beforeObserve  = fault.New("reconcilers.before_observe")
	resendRecorded = fault.New("reconcilers.resend_recorded")
	resendAnswered = fault.New("reconcilers.resend_answered")

	redispatchRecorded = fault.New("reconcilers.redispatch_recorded")
	redispatchAnswered = fault.New("reconcilers.redispatch_answered")
)
