package reconcilers

import (
	"context"
	"io"
	"time"

	"keep-proxy/ledger"
)

// Ledger is what reconciling needs of a [ledger.Ledger].
type Ledger interface {
	Commands
	Records
	Queue
}

// Commands move a record on. Each checks for itself, in its transaction, that the
// move is allowed now.
type Commands interface {
	Resend(ctx context.Context, c ledger.Resend) (*ledger.Mutation, *ledger.Dispatch, error)
	Redispatch(ctx context.Context, c ledger.Redispatch) (*ledger.Mutation, *ledger.Dispatch, error)
	CallOffRedispatch(ctx context.Context, key ledger.Key, version int64, until time.Time, reason string) (*ledger.Mutation, error)
	EndDispatch(ctx context.Context, c ledger.EndDispatch) (ledger.Moved, error)
	Observe(ctx context.Context, c ledger.Observe) (ledger.Moved, error)
	Exhaust(ctx context.Context, key ledger.Key, version int64, reason string) (ledger.Moved, error)
	// Unrecorded is told of outcomes that EndDispatch did not take.
	Unrecorded() *ledger.Unrecorded
	Recover(ctx context.Context, nextTryAt func(*ledger.Mutation) time.Time) (ledger.RecoverCounts, error)
}

// Records give what a try is made from.
type Records interface {
	View(ctx context.Context, fn func(ledger.View) error) error
	Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error)
	WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error)
	Spool() (ledger.Spool, error)
	LaterOfTarget(ctx context.Context, m *ledger.Mutation) (string, error)
	SentAlike(ctx context.Context, m *ledger.Mutation, alike func(other *ledger.Mutation) bool) (string, error)
}

// Queue says what the runner shall look at.
type Queue interface {
	Due(ctx context.Context, now time.Time) ([]ledger.Key, time.Time, error)
	ConnectorOf(k ledger.Key) string
	Read(ctx context.Context, fn func(ledger.View) error) error
	Process() ledger.Process
	Healthy() error
}

// Metrics counts the work.
type Metrics interface {
	// Tried counts one try and how long it took. The ledger recorded what seen says: applied, absent,
	// duplicate, retry, "exhausted" or a resend's verdict. It is "dropped" if the record moved meanwhile,
	// and "error" if the ledger failed.
	Tried(connector, operation, strategy, seen string, took time.Duration)
	// Working adds delta to the number of the runner's tries that are under way.
	Working(delta int)
	// Unrecorded adds delta to the number of outcomes that the ledger did not take yet.
	Unrecorded(delta int)
}

type noMetrics struct{}

func (noMetrics) Tried(_, _, _, _ string, _ time.Duration) {}
func (noMetrics) Working(int)                              {}
func (noMetrics) Unrecorded(int)                           {}
