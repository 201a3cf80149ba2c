package admin

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// showStatus answers GET /v1/status.
func showStatus(s *Server, r *http.Request) (any, error) {
	out := wire.Status{LedgerID: s.config.Ledger.ID(), Healthy: true, Stopped: []wire.Stopped{}}
	if err := s.config.Ledger.Healthy(); err != nil {
		out.Healthy, out.Health = false, err.Error()
	} else if s.config.Ready != nil {
		if err := s.config.Ready(); err != nil {
			out.NotReady = err.Error()
		}
	}
	earliest := func(at time.Time) {
		if !at.IsZero() && (out.Since.IsZero() || at.Before(out.Since)) {
			out.Since = at
		}
	}
	err := s.walk(r.Context(), ledger.Filter{Unresolved: true}, func(m *ledger.Mutation) {
		out.Unknown++
		earliest(unknownSince(m))
		if b := blocksOf(m); b != nil {
			out.Stopped = append(out.Stopped, wire.Stopped{
				Blocks: *b, Mutation: m.ID, State: string(m.State), Since: unknownSince(m),
			})
		}
	})
	if err != nil {
		return nil, err
	}
	err = s.walk(r.Context(), ledger.Filter{Escalated: true}, func(m *ledger.Mutation) {
		if m.Escalated() {
			out.Escalated++
			earliest(m.Escalation.OpenedAt)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := s.countOwed(r.Context(), &out); err != nil {
		return nil, err
	}
	if out.ItemsWaiting, err = s.waitingItems(r.Context(), math.MaxInt, earliest); err != nil {
		return nil, err
	}
	if s.config.Modes != nil {
		mode := s.config.Modes.Mode()
		out.Mode = &mode
		earliest(mode.Since)
	}
	if s.config.LastReload != nil {
		out.Reload = s.config.LastReload()
	}
	if s.config.Destinations != nil {
		out.Destinations = s.config.Destinations()
	}
	if out.Gaps, err = s.openGaps(r.Context()); err != nil {
		return nil, err
	}
	for _, g := range out.Gaps {
		earliest(g.Until)
	}
	slices.SortStableFunc(out.Stopped, func(a, b wire.Stopped) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Mutation, b.Mutation))
	})
	return out, nil
}

// waitingItems counts up to atMost items that wait for a person, and tells since when each does.
func (s *Server) waitingItems(ctx context.Context, atMost int, since func(time.Time)) (n int, err error) {
	for f := (ledger.Filter{ItemStates: []ledger.ItemState{ledger.ItemNeedsAttention}}); ; {
		f.Limit = min(maxPage, atMost-n)
		page, err := s.config.Ledger.Items(ctx, f)
		if err != nil {
			return 0, err
		}
		for _, i := range page.Items {
			n++
			since(i.UpdatedAt)
		}
		if f.Cursor = page.Next; f.Cursor == "" || n >= atMost {
			return n, nil
		}
	}
}

// countOwed counts what is to be taken back. Nobody but a person goes on with what no
// rule has sent by itself, or what was given up.
func (s *Server) countOwed(ctx context.Context, out *wire.Status) error {
	return s.walk(ctx, ledger.Filter{Obligations: true, States: openObligations}, func(m *ledger.Mutation) {
		out.Owed++
		if standing := standingOf(m); standing == wire.StandingOwed || standing == wire.StandingGivenUp {
			out.OwedByPerson++
		}
	})
}

// unknownSince is when the outcome became unknown, or, where that isn't
// recorded, when the record was changed last.
func unknownSince(m *ledger.Mutation) time.Time {
	if at := m.UnknownSince.Wall; !at.IsZero() {
		return at
	}
	return m.UpdatedAt
}

// walk visits every record that f selects.
func (s *Server) walk(ctx context.Context, f ledger.Filter, visit func(*ledger.Mutation)) error {
	return s.walkSome(ctx, f, math.MaxInt, visit)
}

// walkSome visits up to atMost records that f selects, the newest first.
func (s *Server) walkSome(ctx context.Context, f ledger.Filter, atMost int, visit func(*ledger.Mutation)) error {
	for {
		f.Limit = min(maxPage, atMost)
		page, err := s.config.Ledger.Mutations(ctx, f)
		if err != nil {
			return err
		}
		for _, m := range page.Items {
			visit(m)
		}
		atMost -= len(page.Items)
		if f.Cursor = page.Next; f.Cursor == "" || atMost <= 0 {
			return nil
		}
	}
}
