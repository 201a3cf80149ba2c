package ledger

import (
	"context"
	"fmt"
	"time"
)

// Bounds of looking for what was sent since a mutation was.
const (
	// wallJump is how far the wall clock may have been set back meanwhile.
	wallJump = 25 * time.Hour
	// maxSince is how many mutations are looked at.
	maxSince = 20_000
)

// touchedSince shows the other mutations of m's connector that matter and to which
// something happened since m was first sent, until told says something of one; "" if it said
// nothing. What can't be looked through is said, too: more than the bounds allow, and a time
// of which the ledger knows nothing.
func (l *Ledger) touchedSince(ctx context.Context, m *Mutation, matters func(other *Mutation) bool, told func(other *Mutation) string) (string, error) {
	first, since := m.Dispatches[0].Started, m.Dispatches[0].Started.Wall
	if shown, ok := l.config.Now().WallOf(first); ok && shown.Before(since) {
		since = shown // The clock was ahead then.
	}
	if why, err := l.gapSince(ctx, &m.Dispatches[0]); err != nil || why != "" {
		return why, err
	}
	filter := Filter{Connector: m.Connector, Touched: Touched{Since: since.Add(-wallJump)}, Limit: 1000}
	for looked := 0; looked < maxSince; {
		page, err := l.Mutations(ctx, filter)
		if err != nil {
			return "", fmt.Errorf("mutations since %s: %w", m.ID, err)
		}
		for _, other := range page.Items {
			if other.Key == m.Key || !matters(other) {
				continue
			}
			looked++
			if why := told(other); why != "" {
				return why, nil
			}
		}
		if filter.Cursor = page.Next; filter.Cursor == "" {
			return "", nil
		}
	}
	return "too many mutations were made since to look through", nil
}

// gapSince tells of a time of which the ledger knows nothing.
func (l *Ledger) gapSince(ctx context.Context, first *Dispatch) (why string, err error) {
	err = l.View(ctx, func(v View) error {
		gaps, err := v.Gaps()
		for i := range gaps {
			if gaps[i].Open() || gaps[i].Number > first.Gaps {
				why = "the ledger doesn't know all that was sent since"
			}
		}
		return err
	})
	return why, err
}
