package badgerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"keep-proxy/ledger"
)

// Pages of a listing.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// errCursor refuses a cursor that no page returned.
var errCursor = errors.New("the cursor is not one of this listing")

func pageLimit(f ledger.Filter) int {
	if f.Limit <= 0 {
		return defaultLimit
	}
	return min(f.Limit, maxLimit)
}

// parseCursor returns the mark of the last record of the page before, nil at first.
func parseCursor(cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(cursor)
	if err != nil || len(b) != markSize {
		return nil, errCursor
	}
	return b, nil
}

// Mutations implements ledger.Store. It walks the narrowest index of the filter.
func (s *Store) Mutations(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Mutation], error) {
	if f.ID != "" {
		return s.mutationsByID(ctx, f)
	}
	return page(ctx, s, f, mutationPrefixes(f), spanned, func(v *view, name [32]byte) (m *ledger.Mutation, made time.Time, match bool, err error) {
		if m, err = v.Mutation(name); err != nil {
			return nil, made, false, err
		}
		return m, m.CreatedAt, matchMutation(m, f), nil
	})
}

// Runs implements ledger.Store.
func (s *Store) Runs(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Run], error) {
	prefix := []byte{xRunOpened}
	if f.Workflow != "" && f.Item != "" {
		prefix = named(xRunOfItem, f.Workflow, f.Item)
	}
	return page(ctx, s, f, [][]byte{prefix}, nil, func(v *view, name [32]byte) (r *ledger.Run, opened time.Time, match bool, err error) {
		if r, err = v.runBy(name); err != nil {
			return nil, opened, false, err
		}
		return r, r.OpenedAt, matchScope(f, r.Workflow, r.Item, r.ID) && (!f.Unresolved || !r.State.Ended()), nil
	})
}

// Items implements ledger.Store.
func (s *Store) Items(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Item], error) {
	prefix := []byte{xItemOpened}
	switch id := itemIDPrefix(f.ID); {
	case id != nil:
		prefix = key(xItemID, id)
	case slices.Equal(f.ItemStates, []ledger.ItemState{ledger.ItemNeedsAttention}):
		prefix = []byte{xItemWaits}
	}
	return page(ctx, s, f, [][]byte{prefix}, nil, func(v *view, name [32]byte) (i *ledger.Item, opened time.Time, match bool, err error) {
		if i, err = v.itemBy(name); err != nil {
			return nil, opened, false, err
		}
		return i, i.OpenedAt, matchScope(f, i.Workflow, i.Item, f.Run) && (f.ID == "" || f.ID == i.ID) &&
			(len(f.ItemStates) == 0 || slices.Contains(f.ItemStates, i.State)), nil
	})
}

func matchScope(f ledger.Filter, workflow, item, run string) bool {
	return (f.Workflow == "" || f.Workflow == workflow) &&
		(f.Item == "" || f.Item == item) && (f.Run == "" || f.Run == run)
}

func matchMutation(m *ledger.Mutation, f ledger.Filter) bool {
	ran := m.Run == f.Run || slices.ContainsFunc(m.Dispatches, func(d ledger.Dispatch) bool { return d.Run == f.Run })
	return (f.Run == "" || ran) && matchScope(f, m.Workflow, m.Item, f.Run) &&
		(len(f.States) == 0 || slices.Contains(f.States, m.State)) &&
		(f.Connector == "" || f.Connector == m.Connector) &&
		(f.ConnectorVersion == 0 || f.ConnectorVersion == m.ConnectorVersion) && f.Touched.Selects(m) &&
		(f.Operation == "" || f.Operation == m.Operation) &&
		(!f.Unresolved || m.Unresolved()) && (!f.Obligations || m.Undo != nil) &&
		(!f.Escalated || m.Escalation != nil && m.Escalation.ClosedAt.IsZero())
}

// mutationPrefixes picks the index that holds the fewest records besides those
// that are asked for.
func mutationPrefixes(f ledger.Filter) [][]byte {
	switch {
	case f.Run != "":
		return [][]byte{named(xByRun, f.Run)}
	case f.Workflow != "" && f.Item != "":
		return [][]byte{named(xByItem, f.Workflow, f.Item)}
	case f.Unresolved && f.Workflow != "":
		return [][]byte{named(xUnresolved, f.Workflow)}
	case f.Unresolved:
		return statePrefixes([]ledger.State{ledger.InFlight, ledger.NeedsReconcile, ledger.Indeterminate})
	case f.Escalated:
		return [][]byte{{xEscalated}}
	case f.Obligations && len(f.States) > 0 && !slices.ContainsFunc(f.States, settled):
		return [][]byte{{xOwed}}
	case len(f.States) > 0 && !slices.Contains(f.States, ledger.Applied):
		return statePrefixes(f.States)
	}
	return [][]byte{{xCreated}}
}

func settled(s ledger.State) bool { return !owed(s) }

func statePrefixes(states []ledger.State) [][]byte {
	var out [][]byte
	for _, state := range states {
		p := []byte{xState, stateLetter(state)}
		if state.Valid() && !containsKey(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// page walks the indexes in prefixes together, newest first, from the cursor on. If parts isn't nil, it walks only
// the windows that parts returns. An entry counts only if its record has the entry's time and is asked for.
func page[T any](ctx context.Context, s *Store, f ledger.Filter, prefixes [][]byte,
	parts func(snapshot, ledger.Filter, []byte) windows, read func(*view, [32]byte) (T, time.Time, bool, error),
) (p ledger.Page[T], err error) {
	from, err := parseCursor(f.Cursor)
	if err != nil {
		return p, err
	}
	limit, since := pageLimit(f), nanos(f.Since)
	err = s.snapshot(func(src snapshot) error {
		w := newWalk(src, prefixes, from)
		defer w.close()
		v := &view{src: src, process: s.process}
		var within windows
		if parts != nil {
			within = parts(src, f, from)
		}
		var last []byte
		for n := 0; ; n++ {
			m := w.nextIn(within)
			if m == nil || binary.BigEndian.Uint64(m) < since {
				return nil
			}
			if n%256 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			record, at, match, err := read(v, markName(m))
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
			if err != nil || !match || mark(at, markName(m)) != [markSize]byte(m) || bytes.Equal(m, last) {
				continue
			}
			if len(p.Items) == limit {
				p.Next = hex.EncodeToString(last)
				return nil
			}
			p.Items = append(p.Items, record)
			last = m
		}
	})
	return p, err
}

// Events implements ledger.Store.
func (s *Store) Events(ctx context.Context, mutation string, after uint64, limit int) (out []ledger.Event, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	err = s.snapshot(func(src snapshot) error {
		r := newEvents(src)
		defer r.close()
		if mutation == "" {
			out, err = r.after(ctx, after, limit)
			return err
		}
		seqs, err := eventsOf(ctx, src, mutation, after, limit, s.lost)
		if err != nil {
			return err
		}
		for _, seq := range seqs {
			e, err := r.at(seq)
			if err != nil {
				return required(err, fmt.Sprintf("event %d", seq))
			}
			out = append(out, e.Event)
		}
		return ctx.Err()
	})
	return out, err
}

// eventsOf returns the numbers of a mutation's events, of the index and its record, without lost ones.
func eventsOf(ctx context.Context, src snapshot, mutation string, after uint64, limit int, lost lostEvents) ([]uint64, error) {
	seqs := numbersAfter(ctx, src, named(xHistory, mutation), after, limit, lost)
	listed, err := listedEvents(src, mutation)
	if err != nil {
		return nil, err
	}
	for _, seq := range listed {
		if seq > after && !lost.holds(seq) {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs[:min(len(seqs), limit)], nil
}

// listedEvents are those that the record with this id lists.
func listedEvents(src snapshot, id string) ([]uint64, error) {
	found, err := keysByID(src, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil // It is no mutation's id.
	}
	if err != nil {
		return nil, err
	}
	for _, k := range found {
		sk := mutationKey(k)
		content, err := src.get(sk)
		if err != nil {
			return nil, err
		}
		e, err := decodeMutation(sk, content)
		if err != nil {
			return nil, err
		}
		if e.ID != id {
			continue
		}
		seqs, err := e.history.seqs()
		if err != nil {
			return nil, damaged(sk, err.Error())
		}
		return seqs, nil
	}
	return nil, nil
}

// keysByID returns up to two keys whose id begins so.
func keysByID(src snapshot, id string) ([]ledger.Key, error) {
	digits, ok := strings.CutPrefix(id, "m-")
	prefix, err := hex.DecodeString(digits[:len(digits)&^1])
	if !ok || err != nil || len(digits) == 0 || len(digits) > 64 {
		return nil, fmt.Errorf("mutation %q: %w", id, ledger.ErrNotFound)
	}
	var found []ledger.Key
	src.each(key(kMutation, prefix), func(k []byte) bool {
		if name := ledger.Key(markName(k)); strings.HasPrefix(name.String(), digits) {
			found = append(found, name)
		}
		return len(found) < 2
	})
	return found, nil
}

// mutationsByID lists up to two mutations whose id begins so.
func (s *Store) mutationsByID(ctx context.Context, f ledger.Filter) (p ledger.Page[*ledger.Mutation], err error) {
	if err := ctx.Err(); err != nil {
		return p, err
	}
	err = s.snapshot(func(src snapshot) error {
		found, err := keysByID(src, f.ID)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		for _, k := range found {
			m, err := (&view{src: src}).Mutation(k)
			if err != nil {
				return err
			}
			if matchMutation(m, f) {
				p.Items = append(p.Items, m)
			}
		}
		return err
	})
	return p, err
}

// Due implements ledger.Store.
func (s *Store) Due(ctx context.Context, now time.Time) (due []ledger.Key, next time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	end := nanos(now)
	err = s.snapshot(func(src snapshot) (err error) {
		src.each([]byte{xDue}, func(k []byte) bool {
			if binary.BigEndian.Uint64(k[1:]) > end {
				return false
			}
			var is bool
			if is, err = src.counts(k); is {
				due = append(due, markName(k))
			}
			return err == nil
		})
		if err != nil {
			return err
		}
		later := binary.BigEndian.AppendUint64([]byte{xDue}, end+1)
		src.after([]byte{xDue}, later, func(k []byte) bool {
			var is bool
			if is, err = src.counts(k); is {
				next = markTime(k[1:])
			}
			return err == nil && !is
		})
		return err
	})
	return due, next, err
}

// inFlight lists every record in flight.
func (s *Store) inFlight(ctx context.Context) ([]ledger.Key, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []ledger.Key
	err := s.snapshot(func(src snapshot) (err error) {
		out, err = (&view{src: src}).mutationKeys([]byte{xState, stateLetter(ledger.InFlight)})
		return err
	})
	return out, err
}
