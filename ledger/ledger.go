package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	// RetryGrace is how long a run stays failing, beyond what the answer asks to wait (default 60 s; negative for not at all).
	RetryGrace time.Duration
	// RetryGraceMax bounds both together where the answer asks to wait (default 10 min).
	RetryGraceMax time.Duration
	// RetryGraceTries is how often the same mutation may be tried in it (default 5; negative: never).
	RetryGraceTries int
	// Reconcile bounds the runner's work on one record.
	Reconcile ReconcileLimits
	// Now stamps commands; required.
	Now func() Stamp
	// Wall is the wall clock of Now alone, which costs less; Now's by default.
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
	c.RetryGrace, c.RetryGraceTries = cmp.Or(c.RetryGrace, 60*time.Second), cmp.Or(c.RetryGraceTries, 5)
	c.RetryGraceMax = cmp.Or(c.RetryGraceMax, 10*time.Minute)
	c.Reconcile.MaxAttempts, c.Reconcile.MaxAge = cmp.Or(c.Reconcile.MaxAttempts, 8), cmp.Or(c.Reconcile.MaxAge, 24*time.Hour)
	return &Ledger{Store: s, Standings: newStanding(s, c.Wall), config: c}
}

// ID is the ledger's own id.
func (l *Ledger) ID() string { return l.Process().Ledger }

// Read reads a few records by a command. It sees what is being committed, and waits until that is durable.
func (l *Ledger) Read(ctx context.Context, fn func(View) error) error { return read(ctx, l.Store, fn) }

func read(ctx context.Context, s Store, fn func(View) error) error {
	return s.Update(ctx, func(tx Tx) error { return fn(tx) })
}

// Connector returns the content of a pinned rule file.
func (l *Ledger) Connector(ctx context.Context, hash string) (content []byte, err error) {
	err = l.View(ctx, func(v View) error {
		content, err = v.Connector(hash)
		return err
	})
	return content, err
}

// MutationByID finds a record by its ID, or by a prefix that fits one only.
func (l *Ledger) MutationByID(ctx context.Context, id string) (*Mutation, error) {
	if id == "" {
		return nil, fmt.Errorf("a mutation without an id: %w", ErrNotFound)
	}
	page, err := l.Mutations(ctx, Filter{ID: id, Limit: 2})
	switch {
	case err != nil:
		return nil, err
	case len(page.Items) == 0:
		return nil, fmt.Errorf("mutation %q: %w", id, ErrNotFound)
	case len(page.Items) > 1:
		return nil, fmt.Errorf("mutation %q: %w: several begin so", id, ErrNotFound)
	}
	return page.Items[0], nil
}

// inFlight lists every record in flight, the oldest first.
func (l *Ledger) inFlight(ctx context.Context) (keys []Key, err error) {
	list, err := l.allIn(ctx, InFlight)
	for _, m := range slices.Backward(list) {
		keys = append(keys, m.Key)
	}
	return keys, err
}

// allIn lists every record in one of the states, the newest first.
func (l *Ledger) allIn(ctx context.Context, states ...State) ([]*Mutation, error) {
	return all(Filter{States: states}, func(f Filter) (Page[*Mutation], error) { return l.Mutations(ctx, f) })
}
