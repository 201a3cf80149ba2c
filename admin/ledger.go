package admin

import (
	"context"
	"io"
	"time"

	"keep-proxy/ledger"
)

// Ledger is what the API needs of a ledger; *[ledger.Ledger] has it all.
type Ledger interface {
	RunCommands
	Decisions
	Records
	History
	Bodies
	Condition
}

// RunCommands open, keep and end runs.
type RunCommands interface {
	OpenRun(ctx context.Context, r ledger.OpenRun) (*ledger.Run, error)
	FinishRun(ctx context.Context, id, outcome string, keepOpen bool) (*ledger.Run, error)
	// DecideItem is ledger.Ledger.DecideItem.
	DecideItem(ctx context.Context, d ledger.DecideItem) (*ledger.Item, error)
	EndRun(ctx context.Context, id string, class ledger.Class, reason, actor string) (*ledger.Run, error)
	Heartbeat(ctx context.Context, id string, ttl time.Duration) (*ledger.Run, error)
}

// Records are the listings, and the one lookup that takes what people type.
type Records interface {
	Mutations(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Mutation], error)
	Runs(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Run], error)
	Items(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Item], error)
	MutationByID(ctx context.Context, id string) (*ledger.Mutation, error)
}

// History is the durable snapshot and the events that led to it.
type History interface {
	View(ctx context.Context, fn func(ledger.View) error) error
	Events(ctx context.Context, mutation string, after uint64, limit int) ([]ledger.Event, error)
}

// Bodies is stored content.
type Bodies interface {
	WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error)
	Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error)
}

// Condition says which ledger this is and whether it takes records.
type Condition interface {
	ID() string
	Healthy() error
}

// Decisions are a person's, and what is open to decide.
type Decisions interface {
	Resolve(ctx context.Context, r ledger.Resolve) (ledger.Finished, error)
	Actions(m *ledger.Mutation, now ledger.Stamp) []ledger.Action
	RunObligation(ctx context.Context, q ledger.RunObligation) (*ledger.Mutation, error)
	// ConfirmGaps is ledger.Ledger.ConfirmGaps.
	ConfirmGaps(ctx context.Context, q ledger.ConfirmGap) (items int, err error)
}
