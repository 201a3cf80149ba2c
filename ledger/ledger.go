package ledger

import (
	"sync"
	"time"
)

// Ledger binds the commands to a Store.
type Ledger struct {
	Store
	Standings
	config Config
	// answers are those of which Answering was told; see there.
	answers    sync.Map
	unrecorded Unrecorded
}

// Config holds what commands need beyond their arguments.
type Config struct {
	// RetryGrace is how long a run stays failing (default 60 s; negative for not at all).
	RetryGrace time.Duration
	// RetryGraceTries is how often the same mutation may be tried in it (default 5; negative
	// for never).
	RetryGraceTries int
	// Reconcile bounds the runner's work on one record.
	Reconcile ReconcileLimits
	// Now stamps commands; required.
	Now func() Stamp
	// Wall is the wall clock of Now alone, which costs less where the others aren't asked for;
	// Now's by default.
	Wall func() time.Time
	// NewID makes run and dispatch ids: unguessable, [a-z0-9]; required.
	NewID func() string
}

// ReconcileLimits bound the runner's work on one record; see docs/semantics.md, "When".
type ReconcileLimits struct {
	// MaxAttempts is the number of tries after settle is over (default 8).
	MaxAttempts int
	// MaxAge is the longest running time (default 24 h).
	MaxAge time.Duration
}

// Unrecorded are the outcomes that the ledger hasn't taken, of all who send for it.
func (l *Ledger) Unrecorded() *Unrecorded { return &l.unrecorded }

// New returns a Ledger over s. Zero values of c get their defaults.
func New(s Store, c Config) *Ledger {
	if c.Wall == nil {
		c.Wall = func() time.Time { return c.Now().Wall }
	}
	if c.RetryGrace == 0 {
		c.RetryGrace = 60 * time.Second
	}
	if c.RetryGraceTries == 0 {
		c.RetryGraceTries = 5
	}
	if c.Reconcile.MaxAttempts == 0 {
		c.Reconcile.MaxAttempts = 8
	}
	if c.Reconcile.MaxAge == 0 {
		c.Reconcile.MaxAge = 24 * time.Hour
	}
	return &Ledger{Store: s, Standings: newStanding(s, c.Wall), config: c}
}
