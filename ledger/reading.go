package ledger

import (
	"context"
	"fmt"
	"slices"
)

// ID is the ledger's own id.
func (l *Ledger) ID() string { return l.Process().Ledger }

// Read evaluates fn as a command that changes nothing, for reading a few records. It sees what is
// being committed, and then returns once that is durable. So it waits for nothing else.
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
