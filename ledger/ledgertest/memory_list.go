package ledgertest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"keep-proxy/ledger"
)

// Mutations implements ledger.Store.
func (s *Memory) Mutations(_ context.Context, f ledger.Filter) (page ledger.Page[*ledger.Mutation], err error) {
	s.read(func(v *view) {
		page, err = paged(v.layers.all(), f, func(m *ledger.Mutation) bool { return selects(f, m) })
	})
	for i, m := range page.Items {
		page.Items[i] = m.Clone()
	}
	return page, err
}

// selects reports whether the filter selects the mutation.
func selects(f ledger.Filter, m *ledger.Mutation) bool {
	return strings.HasPrefix(m.ID, f.ID) && (len(f.States) == 0 || slices.Contains(f.States, m.State)) &&
		wants(f.Connector, m.Connector) && wants(f.Operation, m.Operation) &&
		wants(f.Workflow, m.Workflow) && wants(f.Item, m.Item) && wants(f.Run, m.Run) &&
		(f.ConnectorVersion == 0 || f.ConnectorVersion == m.ConnectorVersion) && f.Touched.Selects(m) &&
		!m.CreatedAt.Before(f.Since) &&
		(!f.Unresolved || m.Unresolved()) && (!f.Obligations || m.Undo != nil) && (!f.Escalated || m.Escalated())
}

// wants reports whether a filter's word, if it has one, is the record's.
func wants(word, of string) bool { return word == "" || word == of }

// Runs implements ledger.Store.
func (s *Memory) Runs(_ context.Context, f ledger.Filter) (page ledger.Page[*ledger.Run], err error) {
	s.read(func(v *view) {
		page, err = paged(v.layers.runs(func(*ledger.Run) bool { return true }), f, func(r *ledger.Run) bool {
			return wants(f.Workflow, r.Workflow) && wants(f.Item, r.Item) && wants(f.Run, r.ID) &&
				!r.OpenedAt.Before(f.Since) && (!f.Unresolved || !r.State.Ended())
		})
	})
	for i, r := range page.Items {
		page.Items[i] = r.Clone()
	}
	return page, err
}

// Items implements ledger.Store.
func (s *Memory) Items(_ context.Context, f ledger.Filter) (page ledger.Page[*ledger.Item], err error) {
	s.read(func(v *view) {
		page, err = paged(v.layers.items(func(*ledger.Item) bool { return true }), f, func(i *ledger.Item) bool {
			return wants(f.Workflow, i.Workflow) && wants(f.Item, i.Item) && wants(f.ID, i.ID) && !i.OpenedAt.Before(f.Since) &&
				(len(f.ItemStates) == 0 || slices.Contains(f.ItemStates, i.State))
		})
	})
	for i, item := range page.Items {
		page.Items[i] = item.Clone()
	}
	return page, err
}

// paged selects a page of what is listed oldest first. The cursor counts from the oldest, so that new records don't
// move it.
func paged[T any](all []T, f ledger.Filter, ok func(T) bool) (ledger.Page[T], error) {
	end := len(all)
	if f.Cursor != "" {
		n, err := strconv.Atoi(f.Cursor)
		if err != nil || n < 0 || n > end {
			return ledger.Page[T]{}, fmt.Errorf("cursor %q is not one of a listing", f.Cursor)
		}
		end = n
	}
	limit := min(f.Limit, 1000)
	if limit <= 0 {
		limit = 100
	}
	var page ledger.Page[T]
	for i := end - 1; i >= 0; i-- {
		if !ok(all[i]) {
			continue
		}
		if len(page.Items) == limit {
			page.Next = strconv.Itoa(i + 1)
			break
		}
		page.Items = append(page.Items, all[i])
	}
	return page, nil
}

// Events implements ledger.Store.
func (s *Memory) Events(_ context.Context, mutation string, after uint64, limit int) ([]ledger.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ledger.Event
	for _, e := range s.durable.events {
		if e.Seq <= after || mutation != "" && e.Mutation != mutation {
			continue
		}
		if limit > 0 && len(out) == limit {
			break
		}
		out = append(out, e)
	}
	return out, nil
}

// Due implements ledger.Store.
func (s *Memory) Due(_ context.Context, now time.Time) ([]ledger.Key, time.Time, error) {
	var waiting []*ledger.Mutation
	s.read(func(v *view) {
		for _, m := range v.layers.all() {
			if m.Queued() {
				waiting = append(waiting, m)
			}
		}
	})
	slices.SortFunc(waiting, func(a, b *ledger.Mutation) int {
		if c := a.NextTryAt.Compare(b.NextTryAt); c != 0 {
			return c
		}
		return compareKeys(a.Key, b.Key)
	})
	var due []ledger.Key
	for _, m := range waiting {
		if m.NextTryAt.After(now) {
			return due, m.NextTryAt, nil
		}
		due = append(due, m.Key)
	}
	return due, time.Time{}, nil
}
